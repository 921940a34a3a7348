package fault

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"howdah/internal/host/proc/cgroup"
	"howdah/internal/observe/machine"
)

// group is a control group of version 2, as nft names it: its path below nftRoot, and how deep it is in the
// hierarchy.
type group struct {
	name  string
	level int
}

// nftRoot is where nft looks for control groups.
const nftRoot = "/sys/fs/cgroup"

var errVersion2 = errors.New("there is no control group of version 2 below " + nftRoot + " for it")

// hierarchy finds out where control groups of version 2 are, and in which one a process is.
func hierarchy(pid int) (mount, own string, err error) {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", "", fmt.Errorf("find the control group of process %d: %w", pid, err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", "", err
	}
	own = machine.ParseGroups(string(groups))[""]
	for _, m := range cgroup.ParseMounts(string(mounts)) {
		if m.FSType == "cgroup2" && m.Root == "/" && (m.Point == nftRoot || strings.HasPrefix(m.Point, nftRoot+"/")) && own != "" {
			return m.Point, own, nil
		}
	}
	return "", "", errVersion2
}

// groupOf finds the group of this name that a process is in, at whatever depth.
func groupOf(pid int, name string) (group, error) {
	mount, own, err := hierarchy(pid)
	if err == nil {
		if g, ok := chooseLevel(mount, own, name); ok {
			return g, nil
		}
		err = errVersion2
	}
	return group{}, fmt.Errorf("%w: partition: process %d: %w", ErrImpossible, pid, err)
}

func chooseLevel(mount, own, name string) (group, bool) {
	parts := strings.Split(strings.Trim(own, "/"), "/")
	at := slices.Index(parts, name)
	if at < 0 {
		return group{}, false
	}
	return nftGroup(mount, path.Join(parts[:at+1]...)), true
}

// nftGroup names a group that is so far below the mount.
func nftGroup(mount, below string) group {
	return group{
		name:  strings.TrimPrefix(path.Join(strings.TrimPrefix(mount, nftRoot), below), "/"),
		level: len(strings.Split(strings.Trim(below, "/"), "/")),
	}
}

// place is a group that may be made, and where a process is now.
type place struct {
	group
	dir, current string
}

// groupAt is a group of this name at the top of the hierarchy. What has a limit is not above it.
func groupAt(pid int, name string) (place, error) {
	mount, own, err := hierarchy(pid)
	if err != nil {
		return place{}, fmt.Errorf("%w: partition: process %d: %w", ErrImpossible, pid, err)
	}
	return place{group: nftGroup(mount, name), dir: filepath.Join(mount, name), current: filepath.Join(mount, own)}, nil
}

// back returns all processes to where they came from, and removes the group. What a process starts meanwhile
// is in the group, too, so it looks again until the group is empty.
func (m Moved) back() error {
	const tries = 50
	var err error
	for range tries {
		err = m.tryBack()
		if err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // a kernel that lets go of a group tells nobody
	}
	return err
}

func (m Moved) tryBack() error {
	all, err := cgroup.Processes(m.Group)
	if err != nil {
		return err
	}
	for _, pid := range all {
		if err := cgroup.Add(m.Back, pid); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return cgroup.Remove(m.Group)
}

// connection is a socket of TCP that has another end.
type connection struct{ local, remote netip.AddrPort }

// connections lists the sockets of a process.
func connections(pid int) ([]connection, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list the sockets of process %d: %w", pid, err)
	}
	inodes := map[string]bool{}
	for _, f := range files {
		link, err := os.Readlink(filepath.Join(dir, f.Name()))
		if inode, found := strings.CutPrefix(link, "socket:["); err == nil && found {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	var all []connection
	for _, name := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("list the sockets of process %d: %w", pid, err)
		}
		all = append(all, parseSockets(string(text), inodes)...)
	}
	return all, nil
}

// parseSockets reads a table of the kernel's sockets (proc_net_tcp.rst of Linux). It leaves out those that
// listen, and those that do not speak version 4 of IP.
func parseSockets(text string, inodes map[string]bool) (all []connection) {
	const local, remote, inode = 1, 2, 9
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) <= inode || !inodes[fields[inode]] {
			continue
		}
		from, okFrom := parseEnd(fields[local])
		to, okTo := parseEnd(fields[remote])
		if okFrom && okTo && to.Port() > 0 {
			all = append(all, connection{from, to})
		}
	}
	return all
}

// parseEnd reads an end of a socket. Each word of the address has the byte order of the machine.
func parseEnd(text string) (netip.AddrPort, bool) {
	address, port, _ := strings.Cut(text, ":")
	number, err := strconv.ParseUint(port, 16, 16)
	raw, errRaw := hex.DecodeString(address)
	if err != nil || errRaw != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for n := 0; n < len(raw); n += 4 {
		slices.Reverse(raw[n : n+4])
	}
	ip, ok := netip.AddrFromSlice(raw)
	if ip = ip.Unmap(); !ok || !ip.Is4() {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(ip, uint16(number)), true
}
