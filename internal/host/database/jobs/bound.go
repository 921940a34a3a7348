package jobs

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	model "howdah/internal/model/backup"
	"howdah/internal/model/member"
)

// errRoom says that a drill would take the room that databases need.
var errRoom = errors.New("no room")

// roomEvery is how often it is looked whether there is room left.
const roomEvery = time.Second

// withRoom returns a context that ends with errRoom as its cause when the disk is nearly full. It
// returns that error at once if fewer bytes are free than are needed.
func (h *Host) withRoom(ctx context.Context, needed int64) (bounded context.Context, end func(), err error) {
	_, free, err := h.Room()
	if err != nil {
		return ctx, nil, err
	}
	if free < needed {
		return ctx, nil, fmt.Errorf("it needs %d MiB on its disk, and %d MiB are free: %w", needed>>20, free>>20, errRoom)
	}
	bounded, cancel := context.WithCancelCause(ctx)
	go func() {
		for pace.Sleep(bounded, roomEvery) {
			// Twice what makes a disk nearly full: members notice that themselves.
			if size, free, err := h.Room(); err == nil && member.NearlyFull(size, free/2) {
				cancel(fmt.Errorf("only %d of %d MiB are left on its disk: %w", free>>20, size>>20, errRoom))
			}
		}
	}()
	return bounded, func() { cancel(nil) }, nil
}

const (
	// leastMemory is what a server and a copying engine need.
	leastMemory = 512 << 20
	// unknownCPUs are for a database whose class nobody knows.
	unknownCPUs = 2
)

// boundsOf returns what a drill may use of a host with so many bytes of memory: what the database's
// class may, but at most a quarter of the memory, and it stands back for databases.
func boundsOf(args model.DrillJob, memory int64) proc.Limits {
	l := proc.Limits{CPUs: args.CPUs, MemoryBytes: args.Memory, IOPS: args.IOPS, Yields: true}
	if l.CPUs <= 0 {
		l.CPUs = unknownCPUs
	}
	l.CPUs = min(l.CPUs, float64(runtime.NumCPU()))
	if l.MemoryBytes <= 0 {
		l.MemoryBytes = memory / 8
	}
	l.MemoryBytes = max(min(l.MemoryBytes, memory/4), leastMemory)
	l.IOPS = max(l.IOPS, 0)
	return l
}

// totalMemory is that of the machine, in bytes; 0 if nobody knows.
func totalMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// hold puts a program of a drill under its limits, and returns what could not be limited. A drill
// goes on without: a backup that nobody tries is worse.
func (h *Host) hold(group *proc.Group, limits proc.Limits, p proc.Process) (unlimited []string) {
	warnings, err := group.Limit(limits)
	for _, w := range warnings {
		unlimited = append(unlimited, w.String())
	}
	if err == nil {
		err = group.MoveDatabase(p)
	}
	if err != nil && !errors.Is(err, proc.ErrGone) && !errors.Is(err, proc.ErrMoving) {
		unlimited = append(unlimited, "all: "+err.Error())
	}
	return unlimited
}
