package proc

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"howdah/internal/host/proc/cgroup"
)

// Usage is what a member's database uses. If no control group tells, CPU and Memory are sums over
// the live processes of the database, or in tree containment of the whole member. CPU then lacks
// what orphans used before they died.
type Usage struct {
	CPU         time.Duration `json:"cpu_nanos"`    // since the group was made
	MemoryBytes int64         `json:"memory_bytes"` // now; with page cache where a control group tells
	IO          *cgroup.IO    `json:"io"`           // since the group was made; nil where nobody tells
}

// ticksPerSecond is USER_HZ, the unit of CPU times in /proc. Linux fixes it for all architectures
// that Go knows, except alpha.
const ticksPerSecond = 100

// Usage reads what is used now. Counters start again when the group is removed.
func (g *Group) Usage() (Usage, error) {
	layout := g.host.layout
	var usage Usage
	var errs [3]error
	switch {
	case layout.Unified != "":
		usage.CPU, errs[0] = cgroup.CPU(cgroup.V2, g.database())
	case layout.Accounting != "":
		usage.CPU, errs[0] = cgroup.CPU(cgroup.V1, g.below(layout.Accounting))
	default:
		usage.CPU, errs[0] = g.ticks()
	}
	if layout.Memory.Version == cgroup.None {
		usage.MemoryBytes, errs[1] = g.resident()
	} else {
		usage.MemoryBytes, errs[1] = cgroup.Memory(layout.Memory.Version, g.limitDir(layout.Memory))
	}
	if layout.IO.Version != cgroup.None {
		g.disk.Lock()
		device := g.device
		g.disk.Unlock()
		var io cgroup.IO
		io, errs[2] = cgroup.ReadIO(layout.IO.Version, g.limitDir(layout.IO), device)
		usage.IO = &io
	}
	if err := errors.Join(errs[:]...); err != nil {
		return Usage{}, fmt.Errorf("read usage of %s: %w", g.name, err)
	}
	return usage, nil
}

// counted lists the processes whose usage is summed if no control group counts it.
func (g *Group) counted() ([]Process, error) {
	if g.host.layout.Unified == "" {
		return g.Processes()
	}
	pids, err := cgroup.Processes(g.database())
	if err != nil {
		return nil, err
	}
	var processes []Process
	for _, pid := range pids {
		if process, err := g.host.Find(pid); err == nil {
			processes = append(processes, process)
		}
	}
	return processes, nil
}

func (g *Group) ticks() (time.Duration, error) {
	processes, err := g.counted()
	if err != nil {
		return 0, err
	}
	var sum uint64
	for _, process := range processes {
		if entry, err := g.host.processes.Live(process); err == nil {
			sum += entry.Ticks
		}
	}
	return time.Duration(sum) * time.Second / ticksPerSecond, nil
}

// resident returns the memory of each process's own, and once the memory that they share:
// PostgreSQL's buffers. Every process shows the part of these that it has touched.
func (g *Group) resident() (int64, error) {
	processes, err := g.counted()
	if err != nil {
		return 0, err
	}
	var own, shared int64
	for _, process := range processes {
		lines, err := g.host.processes.Status(process.PID, "RssAnon", "RssShmem")
		if err != nil {
			continue // it has ended
		}
		own += kilobytes(lines["RssAnon"])
		shared = max(shared, kilobytes(lines["RssShmem"]))
	}
	return own + shared, nil
}

func kilobytes(text string) int64 {
	number, _, _ := strings.Cut(text, " ")
	value, _ := strconv.ParseInt(number, 10, 64)
	return value * 1024
}
