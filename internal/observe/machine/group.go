package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"howdah/internal/host/proc/cgroup"
	"howdah/internal/observe/series"
)

// group is the control group of a server in one hierarchy. The zero value is none.
type group struct {
	version cgroup.Version
	dir     string
	top     string // where its hierarchy is mounted
}

func (g group) there() bool { return g.dir != "" }

// groups has the control groups that are the server's own: a group that holds us too says nothing
// of the server alone.
type groups struct {
	unified    group // version 2, whatever controllers it has
	cpu        group // limits and throttling
	accounting group // version 1's cpuacct
	memory     group
	io         group
}

// groupsOf finds the own groups of a process.
func (s System) groupsOf(pid int) (groups, error) {
	mountinfo, err := os.ReadFile(s.proc("self/mountinfo"))
	if err != nil {
		return groups{}, fmt.Errorf("read mounts: %w", err)
	}
	// A kernel without control groups has no such file. Then there are none.
	theirs, _ := os.ReadFile(s.proc(fmt.Sprintf("%d/cgroup", pid)))
	ours, _ := os.ReadFile(s.proc("self/cgroup"))
	f := finder{mounts: cgroup.ParseMounts(string(mountinfo)), theirs: ParseGroups(string(theirs)), ours: ParseGroups(string(ours))}
	g := groups{unified: f.find("")}
	g.cpu = f.either(g.unified, "cpu.max", "cpu")
	g.accounting = f.find("cpuacct")
	g.memory = f.either(g.unified, "memory.current", "memory")
	g.io = f.either(g.unified, "io.stat", "blkio")
	return g, nil
}

type finder struct {
	mounts       []cgroup.Mount
	theirs, ours map[string]string
}

// find returns the group of the server in one hierarchy, or none if it is not its own.
func (f finder) find(controller string) group {
	name, known := f.theirs[controller]
	if !known || name == "/" || within(f.ours[controller], name) {
		return group{}
	}
	at := slices.IndexFunc(f.mounts, func(m cgroup.Mount) bool {
		if controller == "" {
			return m.FSType == "cgroup2"
		}
		return m.FSType == "cgroup" && slices.Contains(m.Options, controller)
	})
	if at < 0 {
		return group{}
	}
	mount := f.mounts[at]
	inside, err := filepath.Rel(mount.Root, name)
	if err != nil || strings.HasPrefix(inside, "..") {
		return group{} // outside of what we see
	}
	version := cgroup.V1
	if controller == "" {
		version = cgroup.V2
	}
	return group{version: version, dir: filepath.Join(mount.Point, inside), top: mount.Point}
}

// either prefers version 2, if the group has the file of the controller there.
func (f finder) either(unified group, file, controller string) group {
	if unified.there() {
		if _, err := os.Stat(filepath.Join(unified.dir, file)); err == nil {
			return unified
		}
	}
	return f.find(controller)
}

func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

func (g group) read(file string) (string, bool) {
	if !g.there() {
		return "", false
	}
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	return string(text), err == nil
}

// above lists the group and those above it, without the hierarchy's top: a limit of any of them
// holds for the group.
func (g group) above() []group {
	var all []group
	for dir := g.dir; dir != g.top && within(dir, g.top); dir = filepath.Dir(dir) {
		all = append(all, group{version: g.version, dir: dir, top: g.top})
	}
	return all
}

// cpuLimit returns the CPUs that a group may use, and the group that says so. It returns 0 if
// nothing limits it.
func (g group) cpuLimit() (float64, group) {
	least, by := 0.0, group{}
	for _, above := range g.above() {
		limit := above.ownCPULimit()
		if limit > 0 && (least == 0 || limit < least) {
			least, by = limit, above
		}
	}
	return least, by
}

func (g group) ownCPULimit() float64 {
	if g.version == cgroup.V2 {
		text, _ := g.read("cpu.max")
		return ParseCPUMax(text)
	}
	micros, _ := g.read("cpu.cfs_quota_us")
	period, _ := g.read("cpu.cfs_period_us")
	return quota(micros, period)
}

func (g group) memoryLimit() float64 {
	file := "memory.limit_in_bytes"
	if g.version == cgroup.V2 {
		file = "memory.max"
	}
	least := 0.0
	for _, above := range g.above() {
		text, _ := above.read(file)
		if limit := parseMemoryLimit(text); limit > 0 && (least == 0 || limit < least) {
			least = limit
		}
	}
	return least
}

// counted returns the group by which the server's CPU is counted, and the CPU time of all processes that
// ever were in it.
func (g groups) counted() (group, time.Duration, bool) {
	for _, each := range []group{g.unified, g.accounting} {
		if !each.there() {
			continue
		}
		if used, err := cgroup.CPU(each.version, each.dir); err == nil {
			return each, used, true
		}
	}
	return group{}, 0, false
}

func (g groups) cpuSeconds() (float64, bool) {
	_, used, ok := g.counted()
	return used.Seconds(), ok
}

// processes lists those of the group by which CPU is counted, and of the groups in it.
func (g groups) processes() []int {
	by, _, ok := g.counted()
	if !ok {
		return nil
	}
	all, _ := cgroup.Processes(by.dir) // what cannot be read is gone
	return all
}

// throttling adds for how long, and how often, the group was held back. Version 1 counts in
// nanoseconds, and version 2 in microseconds.
func (g groups) throttling(counters map[string]float64, gauges map[string]float64) {
	limit, by := g.cpu.cpuLimit()
	if limit == 0 {
		return
	}
	gauges[series.ServerCPULimit] = limit
	text, ok := by.read("cpu.stat")
	if !ok {
		return
	}
	stat := ParseKeyed(text)
	if periods, known := stat["nr_throttled"]; known {
		counters[series.ServerThrottled] = periods
	}
	if micros, known := stat["throttled_usec"]; known {
		counters["server.throttled_seconds"] = micros / 1e6
	} else if nanos, known := stat["throttled_time"]; known {
		counters["server.throttled_seconds"] = nanos / 1e9
	}
}

// memoryBytes returns the group's memory without the page cache that could be given back at once.
func (g group) memoryBytes() (float64, bool) {
	if !g.there() {
		return 0, false
	}
	used, err := cgroup.Memory(g.version, g.dir)
	text, ok := g.read("memory.stat")
	if err != nil || !ok {
		return 0, false
	}
	stat := ParseKeyed(text)
	inactive, known := stat["total_inactive_file"] // version 1, with the groups below
	if !known {
		inactive = stat["inactive_file"]
	}
	return max(0, float64(used)-inactive), true
}

// ioOf sums up what the group did on these devices. Version 1 counts a device only if it has, or
// had, a limit: the others are not known.
func (g group) ioOf(devices []cgroup.Device) (IO, bool) {
	var all map[string]IO
	switch {
	case !g.there() || len(devices) == 0:
		return IO{}, false
	case g.version == cgroup.V2:
		text, ok := g.read("io.stat")
		if !ok {
			return IO{}, false
		}
		all = ParseIOStat(text)
		for _, device := range devices {
			all[device.String()] = all[device.String()] // no line: nothing was done yet
		}
	default:
		all = g.throttled()
	}
	var sum IO
	for _, device := range devices {
		io, known := all[device.String()]
		if !known {
			return IO{}, false
		}
		sum.ReadOps += io.ReadOps
		sum.WriteOps += io.WriteOps
		sum.ReadBytes += io.ReadBytes
		sum.WriteBytes += io.WriteBytes
	}
	return sum, true
}

// throttled prefers the files that count the groups below, too.
func (g group) throttled() map[string]IO {
	for _, end := range []string{"_recursive", ""} {
		ops, ok := g.read("blkio.throttle.io_serviced" + end)
		bytes, also := g.read("blkio.throttle.io_service_bytes" + end)
		if ok && also {
			return ParseThrottle(ops, bytes)
		}
	}
	return nil
}
