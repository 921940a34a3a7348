package machine

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/host/proc/table"
)

// program is PostgreSQL's name in the process table.
const program = "postgres"

// kernelParent is the process id of the parent of all threads of the kernel.
const kernelParent = 2

// startSlack is by how much the clocks of two readings of one start may differ: the kernel tells
// the start of the machine in whole seconds.
const startSlack = 2 * time.Second

// FindPostmaster returns the postmaster of a backend that says of itself that it has this process
// id and began at this time. It returns false if there is no such process on this machine, so the
// server is elsewhere or in a process namespace of its own. A stranger with the same id is told by
// its name and start.
func (s System) FindPostmaster(backend int, began time.Time) (table.ID, bool) {
	root := table.Root(s.proc(""))
	entry, err := root.Get(backend)
	if err != nil || entry.Name != program {
		return table.ID{}, false
	}
	stat, err := s.cpuTimes()
	if err != nil {
		return table.ID{}, false
	}
	start := float64(stat.Boot) + float64(entry.Start)/ticksPerSecond
	if math.Abs(start-float64(began.UnixMilli())/1000) > startSlack.Seconds() {
		return table.ID{}, false
	}
	parent, err := root.Get(entry.Parent)
	if err != nil || parent.Name != program {
		return table.ID{}, false
	}
	return parent.ID, true
}

// Tree is a set of processes with all that descend from them.
type Tree struct {
	Roots []table.ID
	Alone bool // without those that live
	// Except lists process ids that do not count, and nothing that descends from them.
	Except []int
}

// Has reports whether a process is one of the roots.
func (t Tree) Has(pid int) bool {
	return slices.ContainsFunc(t.Roots, func(id table.ID) bool { return id.PID == pid })
}

// TreeOf returns the tree of processes that run now. It leaves out those that do not.
func (s System) TreeOf(pids ...int) Tree {
	var tree Tree
	for _, pid := range pids {
		if entry, err := table.Root(s.proc("")).Get(pid); err == nil && !entry.Dead() {
			tree.Roots = append(tree.Roots, entry.ID)
		}
	}
	return tree
}

// String names the roots. It changes when another process takes an id.
func (t Tree) String() string { return fmt.Sprint(t.Roots) }

// cpuSeconds returns the CPU time of a tree, with that of children that ended and were waited for.
// It returns false if one of the roots has ended. What a process that nobody waited for used is
// lost.
func (s System) cpuSeconds(tree Tree) (float64, bool) {
	root, seen, ticks := table.Root(s.proc("")), map[int]bool{}, uint64(0)
	for _, pid := range tree.Except {
		seen[pid] = true
	}
	for _, id := range tree.Roots {
		entry, err := root.Live(id)
		if err != nil {
			return 0, false
		}
		if tree.Alone {
			ticks += entry.Ticks
			continue
		}
		ticks += s.ticksBelow(root, id.PID, seen)
	}
	return float64(ticks) / ticksPerSecond, len(tree.Roots) > 0
}

// ticksBelow reads a process before its children: one that ends in between is then missed for a
// moment, and not counted twice.
func (s System) ticksBelow(root table.Root, pid int, seen map[int]bool) uint64 {
	if seen[pid] {
		return 0
	}
	seen[pid] = true
	entry, err := root.Get(pid)
	if err != nil {
		return 0
	}
	ticks := entry.Ticks
	for _, child := range s.children(pid) {
		ticks += s.ticksBelow(root, child, seen)
	}
	return ticks
}

// children lists the children of all threads of a process.
func (s System) children(pid int) []int {
	var all []int
	tasks, _ := os.ReadDir(s.proc(fmt.Sprintf("%d/task", pid))) // none, if it ended
	for _, task := range tasks {
		text, _ := os.ReadFile(s.proc(fmt.Sprintf("%d/task/%s/children", pid, task.Name())))
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// kernelSeconds returns the CPU time of the kernel's threads, or false if they cannot be seen, as
// in a process namespace.
func (s System) kernelSeconds() (float64, bool) {
	root := table.Root(s.proc(""))
	parent, err := root.Get(kernelParent)
	if err != nil || !parent.Kernel {
		return 0, false
	}
	ticks := parent.Ticks
	for _, pid := range s.children(kernelParent) {
		if entry, err := root.Get(pid); err == nil {
			ticks += entry.Ticks
		}
	}
	return float64(ticks) / ticksPerSecond, true
}

// resident returns the memory of a tree in bytes: each process's own, and once what they share.
func (s System) resident(tree Tree) (float64, bool) {
	pids := []int{}
	for _, id := range tree.Roots {
		pids = append(pids, id.PID)
	}
	own, shared := 0.0, 0.0
	for i := 0; i < len(pids); i++ {
		text, err := os.ReadFile(s.proc(fmt.Sprintf("%d/statm", pids[i])))
		fields := strings.Fields(string(text))
		if err != nil || len(fields) < 3 {
			continue // it has ended
		}
		resident, _ := strconv.ParseFloat(fields[1], 64)
		common, _ := strconv.ParseFloat(fields[2], 64)
		own += resident - common
		shared = max(shared, common)
		for _, child := range s.children(pids[i]) {
			if !slices.Contains(pids, child) {
				pids = append(pids, child)
			}
		}
	}
	return (own + shared) * float64(os.Getpagesize()), own+shared > 0
}
