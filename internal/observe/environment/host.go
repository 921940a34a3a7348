package environment

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"howdah/internal/host/proc/cgroup"
	"howdah/internal/observe/machine"
)

// sysctls are settings of the kernel that change what a database can do.
var sysctls = []string{
	"vm.swappiness", "vm.overcommit_memory", "vm.overcommit_ratio", "vm.dirty_background_ratio", "vm.dirty_ratio",
	"vm.dirty_background_bytes", "vm.dirty_bytes", "vm.nr_hugepages", "vm.zone_reclaim_mode", "kernel.numa_balancing",
	"kernel.sched_autogroup_enabled", "net.core.somaxconn",
}

// ReadHost reads what a machine is. What it does not tell is left out.
func ReadHost(system machine.System) Host {
	r := roots{system}
	h := Host{Sysctl: map[string]string{}}
	cpuinfo := r.proc("cpuinfo")
	h.CPUModel = field(cpuinfo, "model name", ":")
	h.Virtualisation = r.virtualisation(cpuinfo)
	if stat, err := machine.ParseStat(r.proc("stat")); err == nil {
		h.CPUs = stat.CPUs
	}
	h.ThreadsPerCore = threads(r.sys("devices/system/cpu/cpu0/topology/thread_siblings_list"))
	h.Governor = r.sys("devices/system/cpu/cpu0/cpufreq/scaling_governor")
	h.ClockSource = r.sys("devices/system/clocksource/clocksource0/current_clocksource")
	h.TransparentHP = chosen(r.sys("kernel/mm/transparent_hugepage/enabled"))
	memory := machine.ParseKeyed(r.proc("meminfo"))
	h.MemoryBytes, h.SwapBytes = memory["MemTotal"], memory["SwapTotal"]
	h.HugePages, h.HugePageBytes = memory["HugePages_Total"], memory["Hugepagesize"]
	h.Kernel = r.proc("sys/kernel/osrelease")
	h.System = strings.Trim(field(r.text("/etc/os-release"), "PRETTY_NAME", "="), `"`)
	for _, name := range sysctls {
		if value := r.proc("sys/" + strings.ReplaceAll(name, ".", "/")); value != "" {
			h.Sysctl[name] = value
		}
	}
	return h
}

// roots reads files that hold one text. What cannot be read is "".
type roots struct{ system machine.System }

func (roots) text(path string) string {
	text, _ := os.ReadFile(path)
	return strings.TrimSpace(string(text))
}

func (r roots) proc(name string) string {
	if r.system.Proc == "" {
		return r.text(filepath.Join("/proc", name))
	}
	return r.text(filepath.Join(r.system.Proc, name))
}

func (r roots) sys(name string) string {
	if r.system.Sys == "" {
		return r.text(filepath.Join("/sys", name))
	}
	return r.text(filepath.Join(r.system.Sys, name))
}

// field returns the value of the first line that begins with a name.
func field(text, name, separator string) string {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, separator)
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// chosen returns what is in brackets among several, as in "none [mq-deadline] kyber".
func chosen(text string) string {
	_, rest, opened := strings.Cut(text, "[")
	name, _, closed := strings.Cut(rest, "]")
	if !opened || !closed {
		return text
	}
	return name
}

// threads counts a list of CPUs, as in "0,64" or "0-1". It returns 0 if there is none.
func threads(list string) int {
	count := 0
	for part := range strings.SplitSeq(list, ",") {
		var first, last int
		switch n, _ := fmt.Sscanf(part, "%d-%d", &first, &last); n {
		case 1:
			count++
		case 2:
			count += last - first + 1
		}
	}
	return count
}

// virtualisation names the hypervisor, by what the firmware says.
func (r roots) virtualisation(cpuinfo string) string {
	flags := " " + field(cpuinfo, "flags", ":") + " "
	kind := r.sys("hypervisor/type")
	if kind == "" && !strings.Contains(flags, " hypervisor ") {
		return ""
	}
	firmware := strings.TrimSpace(r.sys("class/dmi/id/sys_vendor") + " " + r.sys("class/dmi/id/product_name"))
	if named := strings.TrimSpace(kind + " " + firmware); named != "" {
		return named
	}
	return "a hypervisor"
}

// readStorage tells on what the parts of a server's data are.
func readStorage(system machine.System, server *machine.Server) ([]Storage, error) {
	r := roots{system}
	dir := server.DataDir()
	mounts := cgroup.ParseMounts(r.proc(fmt.Sprintf("%d/mountinfo", server.Postmaster.PID)))
	parts := []struct{ name, path string }{{"data", dir}, {"wal", filepath.Join(dir, "pg_wal")}}
	spaces, err := os.ReadDir(filepath.Join(dir, "pg_tblspc"))
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	for _, space := range spaces {
		parts = append(parts, struct{ name, path string }{space.Name(), filepath.Join(dir, "pg_tblspc", space.Name())})
	}
	var all []Storage
	for _, part := range parts {
		s, err := r.storage(part.path, mounts)
		if err != nil {
			return all, fmt.Errorf("storage of %s: %w", part.name, err)
		}
		s.Part = part.name
		all = append(all, s)
	}
	return all, nil
}

func (r roots) storage(path string, mounts []cgroup.Mount) (Storage, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return Storage{}, err
	}
	block := float64(stat.Bsize)
	s := Storage{SizeBytes: float64(stat.Blocks) * block, FreeBytes: float64(stat.Bavail) * block}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		mount := nearest(mounts, resolved)
		s.FileSystem, s.Options = mount.FSType, strings.Join(append(flags(stat.Flags), mount.Options...), ",")
	}
	device, err := cgroup.System{Proc: r.system.Proc, Sys: r.system.Sys}.DeviceOf(path)
	if err != nil {
		return s, nil //nolint:nilerr // memory, or a network: there is no disk to tell of
	}
	sys := "dev/block/" + device.String() + "/"
	s.Device = field(r.sys(sys+"uevent"), "DEVNAME", "=")
	s.Model = r.sys(sys + "device/model")
	s.Scheduler = chosen(r.sys(sys + "queue/scheduler"))
	s.Rotational = r.sys(sys+"queue/rotational") == "1"
	s.WriteCache = r.sys(sys + "queue/write_cache")
	var ahead float64
	if _, err := fmt.Sscan(r.sys(sys+"queue/read_ahead_kb"), &ahead); err == nil {
		s.ReadAheadBytes = ahead * 1024
	}
	return s, nil
}

// flags names what statfs says of a mount. Its options name those of the file system.
func flags(bits int64) []string {
	var names []string
	for _, f := range []struct {
		bit  int64
		name string
	}{{unix.ST_NOATIME, "noatime"}, {unix.ST_RELATIME, "relatime"}, {unix.ST_NODIRATIME, "nodiratime"}, {unix.ST_SYNCHRONOUS, "sync"}} {
		if bits&f.bit != 0 {
			names = append(names, f.name)
		}
	}
	return names
}

// nearest returns the mount that a path is in. The last one covers those before it.
func nearest(mounts []cgroup.Mount, path string) cgroup.Mount {
	var found cgroup.Mount
	for _, mount := range mounts {
		inside := path == mount.Point || strings.HasPrefix(path, strings.TrimSuffix(mount.Point, "/")+"/")
		if inside && len(mount.Point) >= len(found.Point) {
			found = mount
		}
	}
	return found
}
