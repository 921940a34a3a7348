package agent

import (
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/model/member"
	"howdah/internal/state/format"
)

// IsMemberID reports whether a text is the id of a member, which fits into names of files,
// control groups and etcd keys.
func IsMemberID(text string) bool { return memberIDForm.MatchString(text) }

var memberIDForm = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}\.m[0-9]{1,9}$`)

// hostFacts looks at the machine.
func (a *Agent) hostFacts(started time.Time) (member.Host, error) {
	var memory unix.Sysinfo_t
	if err := unix.Sysinfo(&memory); err != nil {
		return member.Host{}, fmt.Errorf("read memory of the host: %w", err)
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(a.Dir, &disk); err != nil {
		return member.Host{}, fmt.Errorf("read disk of the host: %w", err)
	}
	can := a.Procs.Describe()
	a.encrypts.look(a.Dir, time.Now())
	a.shares.look(a, time.Now())
	size := int64(disk.Blocks) * disk.Bsize
	free, err := a.limits.look(a.Dir, size, int64(disk.Bavail)*disk.Bsize)
	if err != nil {
		a.Log.Warn("limit storage", "error", err)
	}
	h := member.Host{
		Name: a.Name, Zone: a.Zone, Address: a.Address,
		CPUs: runtime.NumCPU(), Memory: int64(memory.Totalram) * int64(memory.Unit),
		Disk: size, DiskFree: free,
		Containment: string(can.Containment), Limits: can.String(),
		Warnings: can.Notes, Shared: a.whyShared(), Started: started, Version: a.Version, Listen: a.listen, Reads: format.Newest,
		Encrypts: a.encrypts.how, WhyPlain: a.encrypts.why, LimitsStorage: a.limits.why == "", WhyWatched: a.limits.why,
		Shares: a.shares.can,
	}
	err = a.Kind.Facts(&h)
	return h, err
}

// sameHost: nothing changed that would be worth a write. Free disk space counts
// in steps of a hundredth of the disk.
func sameHost(a, b member.Host) bool {
	step := max(a.Disk/100, 1)
	a.DiskFree, b.DiskFree = a.DiskFree/step, b.DiskFree/step
	return reflect.DeepEqual(a, b)
}
