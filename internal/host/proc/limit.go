package proc

import (
	"errors"
	"fmt"

	"howdah/internal/host/proc/cgroup"
	"howdah/internal/host/proc/table"
)

var (
	// ErrLimits says that limits make no sense, such as negative ones.
	ErrLimits = errors.New("not a limit")
	// ErrMoving says that PostgreSQL forked faster than it could be moved. Try again.
	ErrMoving = errors.New("processes are left to be moved")
)

// Device is a disk, by its numbers.
type Device = cgroup.Device

// DeviceOf returns the disk on which a path is stored, for a limit of its IOPS. It returns
// cgroup.ErrNoDevice if the path is on no disk, such as tmpfs.
func DeviceOf(path string) (Device, error) { return cgroup.System{}.DeviceOf(path) }

// Limits are the limits of an instance class and its storage. Zero means none.
type Limits struct {
	CPUs        float64 `json:"cpus"` // CPU seconds a second
	MemoryBytes int64   `json:"memory_bytes"`
	IOPS        int64   `json:"iops"`   // reads and writes a second, each
	Device      Device  `json:"device"` // whose operations IOPS limits; also to count them
	// Yields says that the group stands back for all others that want a processor or a disk. A group
	// that once stood back does so as long as it is there.
	Yields bool `json:"yields,omitempty"`
}

// Warning says what could not be applied, in words for the user.
type Warning struct {
	Resource string `json:"resource"` // cpu, memory or io
	Reason   string `json:"reason"`
	Err      error  `json:"-"` // e.g. cgroup.ErrInUse, for which a later try may do
}

func (w Warning) String() string { return w.Resource + ": " + w.Reason }

// Limit limits the database's processes (see MoveDatabase) from now on, also running ones. It
// applies what can be applied, and warns of the rest: if there is no controller, or if more memory
// is in use than the limit allows and cannot be given back. Then the old limit stays: a running
// database is never killed for a limit. It is idempotent. It may return ErrLimits.
func (g *Group) Limit(limits Limits) ([]Warning, error) {
	if limits.CPUs < 0 || limits.MemoryBytes < 0 || limits.IOPS < 0 {
		return nil, fmt.Errorf("limit %s to %+v: %w", g.name, limits, ErrLimits)
	}
	if limits.IOPS > 0 && limits.Device == (Device{}) {
		return nil, fmt.Errorf("limit IOPS of %s without a device: %w", g.name, ErrLimits)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.ensure(); err != nil {
		return nil, err
	}
	g.setDevice(limits.Device)
	layout := g.host.layout
	var warnings []Warning
	apply := func(resource string, asked bool, controller cgroup.Controller, set func(dir string) error) {
		if controller.Version == cgroup.None {
			if asked {
				warnings = append(warnings, Warning{Resource: resource, Reason: controller.Reason})
			}
			return
		}
		if err := set(g.limitDir(controller)); err != nil {
			warnings = append(warnings, Warning{Resource: resource, Reason: err.Error(), Err: err})
		}
	}
	apply("cpu", limits.CPUs > 0, layout.CPU, func(dir string) error {
		return cgroup.SetCPU(layout.CPU.Version, dir, limits.CPUs)
	})
	apply("memory", limits.MemoryBytes > 0, layout.Memory, func(dir string) error {
		return cgroup.SetMemory(layout.Memory.Version, dir, limits.MemoryBytes)
	})
	apply("io", limits.IOPS > 0, layout.IO, func(dir string) error {
		return cgroup.SetIOPS(layout.IO.Version, dir, limits.Device, limits.IOPS)
	})
	if limits.Yields {
		apply("cpu", true, layout.CPU, func(string) error { return cgroup.YieldCPU(layout.CPU.Version, g.weightDir(layout.CPU)) })
		apply("io", true, layout.IO, func(string) error { return cgroup.YieldIO(layout.IO.Version, g.weightDir(layout.IO)) })
	}
	return warnings, nil
}

func (g *Group) setDevice(device Device) {
	g.disk.Lock()
	defer g.disk.Unlock()
	g.device = device
}

// moveRounds bounds how often MoveDatabase looks for what was forked meanwhile.
const moveRounds = 20

// MoveDatabase moves a postmaster and all its descendants to where limits hold. What they fork
// later is there from the start. Patroni stays outside, so that a busy database cannot keep it from
// renewing its lease. Memory that was touched before stays on the old account, so call it soon
// after the start. It is idempotent, and cheap if there is nothing to move. It returns ErrGone if
// the postmaster has ended.
func (g *Group) MoveDatabase(postmaster Process) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.ensure(); err != nil {
		return err
	}
	for range moveRounds {
		family, err := g.family(postmaster)
		if err != nil {
			return fmt.Errorf("move database of %s: %w", g.name, err)
		}
		moved := 0
		for _, dir := range g.databaseDirs() {
			n, err := g.moveInto(dir, family)
			if err != nil {
				return fmt.Errorf("move database of %s: %w", g.name, err)
			}
			moved += n
		}
		if moved == 0 {
			return nil
		}
	}
	return fmt.Errorf("move database of %s: %w", g.name, ErrMoving)
}

// moveInto moves processes that are not in the group yet, and returns how many.
func (g *Group) moveInto(dir string, family []table.Entry) (int, error) {
	pids, err := cgroup.Processes(dir)
	if err != nil {
		return 0, err
	}
	inside := make(map[int]bool, len(pids))
	for _, pid := range pids {
		inside[pid] = true
	}
	moved := 0
	for _, entry := range family {
		if inside[entry.PID] || !g.host.Alive(entry.ID) {
			continue
		}
		// A process that ends meanwhile cannot be moved, and need not be.
		if err := cgroup.Add(dir, entry.PID); err != nil && g.host.Alive(entry.ID) {
			return moved, err
		}
		moved++
	}
	return moved, nil
}

// family returns a live process and its descendants, parents first.
func (g *Group) family(head Process) ([]table.Entry, error) {
	all, err := g.host.processes.All()
	if err != nil {
		return nil, err
	}
	first, err := g.host.processes.Live(head)
	if err != nil {
		return nil, err
	}
	children := map[int][]table.Entry{}
	for _, entry := range all {
		children[entry.Parent] = append(children[entry.Parent], entry)
	}
	family := []table.Entry{first}
	for i := 0; i < len(family); i++ { // grows while it runs
		family = append(family, children[family[i].PID]...)
	}
	return family, nil
}
