package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/host/kernelcut"
	"howdah/internal/host/proc"
	"howdah/internal/host/proc/table"
	"howdah/internal/lab/own"
)

// Record is what has to be undone. It is on the disk before anything is done.
type Record struct {
	Kind  string    `json:"kind"`
	Began time.Time `json:"began"`
	// Era is the machine's life in which process numbers mean something.
	Era string `json:"era"`
	// Frozen go on when the fault is undone. Ending are killed then: whoever supervises them starts
	// them again.
	Frozen []proc.Process `json:"frozen,omitempty"`
	Ending []proc.Process `json:"ending,omitempty"`
	// Placed is removed.
	Placed *Placed `json:"placed,omitempty"`
	// Limits are put back.
	Limits []Limit `json:"limits,omitempty"`
	// Clock is how far the wall clock was from the time since the machine's start, before it was set;
	// nil: it was not. With that, undoing it twice does not set it back twice.
	Clock *time.Duration `json:"clock,omitempty"`
	// Table is removed from the kernel's rules.
	Table string `json:"table,omitempty"`
	// Moved are where they were before.
	Moved *Moved `json:"moved,omitempty"`
}

// Limit is a line of a control group, and what it was.
type Limit struct {
	Path   string `json:"path"`
	Before string `json:"before"`
}

// recordName is the file of the record, in the directory of a run.
const recordName = "fault.json"

// write keeps the record, whole or not at all, also if the machine ends.
func (r Record) write(dir string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := own.WriteFile(filepath.Join(dir, recordName), text); err != nil {
		return fmt.Errorf("remember a fault: %w", err)
	}
	return nil
}

// Heal undoes what a lab that was killed left behind. It is idempotent.
func Heal(_ context.Context, dir string) error {
	text, err := own.ReadFile(filepath.Join(dir, recordName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var r Record
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return fmt.Errorf("read which fault was left: %w", err)
	}
	era, err := table.System.Era()
	if err != nil {
		return err
	}
	return r.in(era).undo(dir)
}

// in leaves out what a record means no more. Numbers of processes are those of an era. Limits, the clock and
// rules last longer: until the machine is started anew, which the first word of an era tells.
func (r Record) in(era string) Record {
	if r.Era == era {
		return r
	}
	r.Frozen, r.Ending = nil, nil
	then, _, _ := strings.Cut(r.Era, " ")
	if now, _, _ := strings.Cut(era, " "); then != now {
		r.Limits, r.Clock, r.Table, r.Moved = nil, nil, "", nil
	}
	return r
}

// undo undoes a fault, and forgets it once all is undone.
func (r Record) undo(dir string) error {
	var errs []error
	for _, p := range r.Ending {
		errs = append(errs, send(p, syscall.SIGKILL))
	}
	for _, p := range r.Frozen {
		errs = append(errs, send(p, syscall.SIGCONT))
	}
	for _, l := range r.Limits {
		err := os.WriteFile(l.Path, []byte(l.Before), 0o600)
		if !errors.Is(err, os.ErrNotExist) { // with its processes the group went
			errs = append(errs, err)
		}
	}
	if r.Placed != nil {
		errs = append(errs, r.Placed.remove())
	}
	if r.Clock != nil {
		errs = append(errs, putClock(*r.Clock))
	}
	if r.Table != "" {
		errs = append(errs, kernelcut.Remove(context.Background(), r.Table))
	}
	if r.Moved != nil {
		errs = append(errs, r.Moved.back())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("undo the fault %s: %w", r.Kind, err)
	}
	if err := os.Remove(filepath.Join(dir, recordName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget a fault: %w", err)
	}
	return nil
}

// send sends a signal to exactly this process, if it is still there.
func send(p proc.Process, signal syscall.Signal) error {
	if err := proc.Signal(p, signal); !errors.Is(err, proc.ErrGone) {
		return err
	}
	return nil
}

// standing returns how many of these processes are there and stand still, and how many are there.
func standing(all []proc.Process) (still, there int) {
	for _, p := range all {
		e, err := table.System.Live(p)
		if errors.Is(err, table.ErrGone) {
			continue
		}
		there++ // also one that cannot be looked at
		if err == nil && strings.ContainsRune("Tt", rune(e.State)) {
			still++
		}
	}
	return still, there
}

// clocks returns how far the wall clock is from the time since the machine's start.
func clocks() (time.Duration, error) {
	var wall, started unix.Timespec
	err := errors.Join(unix.ClockGettime(unix.CLOCK_REALTIME, &wall), unix.ClockGettime(unix.CLOCK_BOOTTIME, &started))
	if err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return time.Duration(wall.Nano() - started.Nano()), nil
}

// clockTolerance is how far a clock may be off that is left alone.
const clockTolerance = time.Second

// putClock sets the wall clock to be so far from the time since the machine's start, unless it is.
func putClock(offset time.Duration) error {
	now, err := clocks()
	if err != nil {
		return err
	}
	if (now - offset).Abs() < clockTolerance {
		return nil
	}
	var started unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &started); err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	ts := unix.NsecToTimespec(started.Nano() + int64(offset))
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &ts); err != nil {
		return fmt.Errorf("set the clock: %w", err)
	}
	return nil
}
