package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"howdah/internal/host/proc/cgroup"
)

// ErrNotEmpty says that a group still has processes.
var ErrNotEmpty = errors.New("processes are left in the group")

// Group holds the processes of one member. Its methods may be called at any time and in any order.
// Those that change something wait for each other.
type Group struct {
	host *Host
	name string

	mu     sync.Mutex    // held by whatever starts, moves, limits, kills or removes
	disk   sync.Mutex    // guards device
	device cgroup.Device // whose IO Usage counts; known after a Limit
	noting sync.Mutex    // guards noted
	noted  *record       // nil until it was read
}

// memberSuffix keeps members apart from the kernel's own files, because a member may be called
// "tasks".
const memberSuffix = ".member"

// Name returns the name that the group was asked for with.
func (g *Group) Name() string { return g.name }

// marker returns the assignment in a process's environment that tells its group.
func (g *Group) marker() string { return "HOWDAH_MEMBER=" + g.host.config.Parent + "/" + g.name }

func (g *Group) below(top string) string { return filepath.Join(top, g.name+memberSuffix) }

// control has Patroni, and database has PostgreSQL. Version 2 allows processes only in groups
// without groups below them, and limits are to hold for PostgreSQL alone.
func (g *Group) control() string  { return filepath.Join(g.below(g.host.layout.Unified), "ctl") }
func (g *Group) database() string { return filepath.Join(g.below(g.host.layout.Unified), "db") }

// limitDir returns where a controller limits the database of this member, or "" if it cannot.
func (g *Group) limitDir(controller cgroup.Controller) string {
	switch controller.Version {
	case cgroup.V1:
		return g.below(controller.Top)
	case cgroup.V2:
		return g.database()
	default:
		return ""
	}
}

// databaseDirs lists every group that PostgreSQL is to be moved to.
func (g *Group) databaseDirs() []string {
	layout := g.host.layout
	var dirs []string
	if layout.Unified != "" {
		dirs = append(dirs, g.database())
	}
	if layout.Unified == "" && layout.Accounting != "" {
		dirs = append(dirs, g.below(layout.Accounting))
	}
	for _, controller := range []cgroup.Controller{layout.CPU, layout.Memory, layout.IO} {
		if dir := g.limitDir(controller); dir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// tops lists the top groups that may have a group of this member.
func (g *Group) tops() []string {
	layout := g.host.layout
	var tops []string
	for _, top := range []string{layout.Unified, layout.Freezer, layout.Accounting, layout.CPU.Top, layout.Memory.Top, layout.IO.Top} {
		if top != "" && !slices.Contains(tops, top) {
			tops = append(tops, top)
		}
	}
	return tops
}

// ensure makes the groups of this member. It is idempotent.
func (g *Group) ensure() error {
	layout := g.host.layout
	dirs := g.databaseDirs()
	if layout.Unified != "" {
		dirs = append(dirs, g.control())
	}
	if g.host.containment == Freezer {
		dirs = append(dirs, g.below(layout.Freezer))
	}
	for _, dir := range dirs {
		if err := cgroup.Make(dir); err != nil {
			return err
		}
	}
	if layout.Unified != "" {
		// Open found out which controllers cannot be enabled, and Describe says so.
		_ = cgroup.Enable(filepath.Dir(layout.Unified), g.below(layout.Unified))
	}
	return nil
}

// containedDir returns the group that contains all processes, or "" in tree containment.
func (g *Group) containedDir() string {
	switch g.host.containment {
	case Cgroup2:
		return g.below(g.host.layout.Unified)
	case Freezer:
		return g.below(g.host.layout.Freezer)
	default:
		return ""
	}
}

// Has reports whether a process is one of the member's. It guards against a recycled id in a stale
// pid file.
func (g *Group) Has(p Process) (bool, error) {
	all, err := g.Processes()
	return slices.Contains(all, p), err
}

// Processes lists all live processes of the member: those that the kernel has in its control group,
// and those outside (see Outside). It reads the whole process table, which takes some tens of
// microseconds for each process.
func (g *Group) Processes() ([]Process, error) {
	contained, err := g.contained()
	if err != nil {
		return nil, err
	}
	found, err := g.scanned()
	if err != nil {
		return nil, err
	}
	for _, process := range found {
		if !slices.Contains(contained, process) {
			contained = append(contained, process)
		}
	}
	return contained, nil
}

// Inside lists what Processes does, but none of those outside the control group. So it need not read
// the process table, where there are control groups.
func (g *Group) Inside() ([]Process, error) {
	if g.containedDir() == "" {
		return g.scanned()
	}
	return g.contained()
}

// Outside lists live processes that belong to the member by all signs, although they are not in its
// control group. An administrator may have started a PostgreSQL by hand, or an earlier life of this
// process without control groups. Kill kills them, too. There are none in tree containment. It
// costs as much as Processes.
func (g *Group) Outside() ([]Process, error) {
	if g.host.containment == Tree {
		return nil, nil
	}
	found, err := g.scanned()
	if err != nil {
		return nil, err
	}
	contained, err := g.contained()
	return slices.DeleteFunc(found, func(process Process) bool {
		return slices.Contains(contained, process) || !g.host.Alive(process)
	}), err
}

// scanned lists what a scan of the process table finds.
func (g *Group) scanned() ([]Process, error) {
	r, err := g.record()
	if err != nil {
		return nil, err
	}
	found, err := g.scanner(r).find()
	if err != nil {
		return nil, err
	}
	var processes []Process
	for _, entry := range found.members {
		processes = append(processes, entry.ID)
	}
	return processes, nil
}

// contained lists the processes in the group that contains all.
func (g *Group) contained() ([]Process, error) {
	dir := g.containedDir()
	if dir == "" {
		return nil, nil
	}
	pids, err := cgroup.Processes(dir)
	if err != nil {
		return nil, err
	}
	return g.identify(pids)
}

// identify returns the processes of these ids, without those that have ended.
func (g *Group) identify(pids []int) ([]Process, error) {
	var processes []Process
	for _, pid := range pids {
		process, err := g.host.Find(pid)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		processes = append(processes, process)
	}
	return processes, nil
}

// Leader returns the process that was started last and still runs. This life of the agent may have
// started it, or an earlier one, also one that was killed in the middle of a Start. It returns
// ErrGone if there is none.
func (g *Group) Leader() (Process, error) {
	r, err := g.record()
	if err != nil {
		return Process{}, err
	}
	for _, process := range slices.Backward(r.Sessions) {
		if g.host.Alive(process) {
			return process, nil
		}
	}
	if r.Begun != nil {
		if process, err := g.adoptBegun(); !errors.Is(err, ErrGone) {
			return process, err
		}
	}
	return Process{}, fmt.Errorf("leader of %s: %w", g.name, ErrGone)
}

// Remove removes the group and all that was recorded about it. It returns ErrNotEmpty if a process
// is left. It is idempotent.
func (g *Group) Remove() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	left, err := g.Processes()
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("remove %s: %d processes: %w", g.name, len(left), ErrNotEmpty)
	}
	for _, top := range g.tops() {
		if err := cgroup.Remove(g.below(top)); err != nil {
			return fmt.Errorf("remove %s: %w", g.name, err)
		}
		// The last member also removes the top group. Until then that is not empty.
		_ = syscall.Rmdir(top)
	}
	if err := os.Remove(g.host.recordPath(g.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record of %s: %w", g.name, err)
	}
	g.remember(record{})
	return nil
}
