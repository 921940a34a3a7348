package agent

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/engine/postgres"
	"howdah/internal/model/member"
	"howdah/internal/state/format"
)

var errNoModule = errors.New("the module howdah is not installed for it: run scripts/install")

// memberIDForm fits into names of files, control groups and etcd keys.
var memberIDForm = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}\.m[0-9]{1,9}$`)

// findModules is the directory with our PostgreSQL modules for a major version.
func findModules(major int) (string, error) {
	for _, prefix := range postgres.Prefixes() {
		dir := filepath.Join(prefix, "lib", strconv.Itoa(major))
		if _, err := os.Stat(filepath.Join(dir, "howdah.so")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("PostgreSQL %d: %w", major, errNoModule)
}

func currentUserName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// hostFacts looks at the machine.
func (a *Agent) hostFacts(started time.Time) (member.Host, error) {
	installs, err := postgres.Installed()
	if err != nil {
		return member.Host{}, err
	}
	majors := map[int]string{}
	for _, i := range installs {
		majors[i.Major] = i.Full
	}
	var memory unix.Sysinfo_t
	if err := unix.Sysinfo(&memory); err != nil {
		return member.Host{}, fmt.Errorf("read memory of the host: %w", err)
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(a.Dir, &disk); err != nil {
		return member.Host{}, fmt.Errorf("read disk of the host: %w", err)
	}
	can := a.procs.Describe()
	a.encrypts.look(a.Dir, time.Now())
	return member.Host{
		Name: a.Name, Zone: a.Zone, Address: a.Address,
		CPUs: runtime.NumCPU(), Memory: int64(memory.Totalram) * int64(memory.Unit),
		Disk: int64(disk.Blocks) * disk.Bsize, DiskFree: int64(disk.Bavail) * disk.Bsize,
		Majors: majors, Containment: string(can.Containment), Limits: can.String(), Cut: a.cut.name(),
		Warnings: can.Notes, Shared: a.whyShared(), Started: started, Version: a.Version, Listen: a.listen, OwnNames: true, OwnKeys: true, Reads: format.Newest,
		Encrypts: a.encrypts.how, WhyPlain: a.encrypts.why,
	}, nil
}

// sameHost: nothing changed that would be worth a write. Free disk space counts
// in steps of a hundredth of the disk.
func sameHost(a, b member.Host) bool {
	step := max(a.Disk/100, 1)
	a.DiskFree, b.DiskFree = a.DiskFree/step, b.DiskFree/step
	return reflect.DeepEqual(a, b)
}
