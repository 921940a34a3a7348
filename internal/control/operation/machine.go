package operation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"howdah/internal/model/operation"
	"howdah/internal/state"
)

// Pauses after failures in a row, and the limits of what one outcome may change.
const (
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	leastNap     = 100 * time.Millisecond
	// mostRaces is how often in a row others may have changed what a step wanted to change. Each
	// time after that counts as a failure of the step: its condition may be one that never holds.
	mostRaces = 8
	maxOps    = 90
	maxBytes  = 512 << 10
	// spare is what is left of a record for the reasons of its failure.
	spare = 4 << 10
)

// The functions below are the state machine: each makes the next record of one.

// knows reports whether the operation can be gone on with: a newer control plane may have begun
// it, and may lead again.
func (d *Definition) knows(r operation.Record) bool {
	if d == nil || r.State != operation.Running && r.State != operation.Undoing {
		return false
	}
	unknown := func(step string) bool { _, known := d.Steps[step]; return !known }
	return (r.Step == "" || !unknown(r.Step)) && !slices.ContainsFunc(r.Entered, unknown)
}

// take is that an owner takes the operation over, and its step.
func (d *Definition) take(r operation.Record, owner string, now time.Time) operation.Record {
	r.Owner = owner
	r.Turn++
	if r.Step == "" {
		return d.enter(r, d.First, now)
	}
	return r
}

// enter is that a step begins.
func (d *Definition) enter(r operation.Record, step string, now time.Time) operation.Record {
	r.Step, r.StepBegan, r.Failures, r.Trouble, r.Next = step, now.UTC(), 0, "", time.Time{}
	if !slices.Contains(r.Entered, step) {
		r.Entered = append(slices.Clone(r.Entered), step)
	}
	return r
}

// after is what follows a call of the step: ops are to happen with it.
func (d *Definition) after(r operation.Record, run *Run, out Outcome, err error, now time.Time) (operation.Record, []state.Op) {
	before := r
	r.Progress = r.Progress.Advance(run.progress)
	if len(run.notes) > 0 {
		r.Notes = maps.Clone(r.Notes)
		if r.Notes == nil {
			r.Notes = map[string]string{}
		}
		maps.Copy(r.Notes, run.notes)
	}
	if err == nil {
		err = d.refuses(r, out)
	}
	if err != nil {
		before.Progress = r.Progress
		return d.failed(before, err, now), nil
	}
	r.Failures, r.Trouble = 0, ""
	switch {
	case out.kind == naps:
		r.Next, r.Trouble = now.UTC().Add(out.nap), operation.Reason(out.why)
	case out.kind == goesOn:
		r.Turn++
		r = d.enter(r, out.step, now)
	case r.State == operation.Undoing:
		r = d.undone(r, now)
	default:
		r = ended(r, operation.Done, now)
	}
	return r, out.ops
}

// refuses an outcome that would never get into etcd, or leads nowhere.
func (d *Definition) refuses(r operation.Record, out Outcome) error {
	if err := r.Fits(operation.MaxSize - spare); err != nil {
		return Final(err)
	}
	bytes := 0
	for _, op := range out.ops {
		bytes += op.Size()
	}
	if len(out.ops) > maxOps || bytes > maxBytes {
		return Final(fmt.Errorf("step %s changes %d keys with %d bytes at once: %w", r.Step, len(out.ops), bytes, operation.ErrTooLarge))
	}
	if out.kind != goesOn {
		return nil
	}
	if _, known := d.Steps[out.step]; !known || r.State == operation.Undoing {
		return Final(fmt.Errorf("step %s cannot be followed by %q: %w", r.Step, out.step, operation.ErrInvalid))
	}
	return nil
}

// failed is that a call failed.
func (d *Definition) failed(r operation.Record, err error, now time.Time) operation.Record {
	r.Failures++
	r.Trouble = operation.Reason(err.Error())
	r.Next = now.UTC().Add(pause(r.Failures))
	final := errors.Is(err, errFinal)
	switch {
	case r.State == operation.Undoing && final:
		r.Left = append(slices.Clone(r.Left), r.Step)
		return d.undone(r, now)
	case r.State == operation.Undoing:
		return r
	case final || d.Steps[r.Step].Tries > 0 && r.Failures >= d.Steps[r.Step].Tries:
		r.Reason = r.Trouble
		return d.undo(r, operation.Failed, now)
	}
	return r
}

// raced is that a call succeeded, but what it wanted changed with its outcome had been changed by
// others, for so many times in a row. That is no failure of the step: it is called again, and sees
// what the others did.
func raced(r operation.Record, run *Run, err error, times int, now time.Time) operation.Record {
	r.Progress = r.Progress.Advance(run.progress)
	r.Trouble = operation.Reason(err.Error())
	r.Next = now.UTC().Add(pause(times))
	return r
}

// pause after so many failures in a row.
func pause(failures int) time.Duration {
	d := firstPause
	for range failures - 1 {
		if d *= 2; d >= longestPause {
			return longestPause
		}
	}
	return d
}

// cancel is that somebody wants the operation to end.
func (d *Definition) cancel(r operation.Record, wish operation.Wish, now time.Time) operation.Record {
	switch {
	case r.State.Ended():
	case wish.Abandon:
		if r.State == operation.Running {
			r.Ending = operation.Cancelled
		}
		r.Left = append(slices.Clone(r.Left), r.Entered...)
		return ended(r, r.Ending, now)
	case r.State == operation.Running && d.knows(r):
		r.Reason = operation.Reason("cancelled by " + wish.By)
		return d.undo(r, operation.Cancelled, now)
	}
	return r
}

// undo is that the operation begins to be undone, beginning with the step that was being taken. Where
// none was, whoever began it may have made something in the same transaction, such as the record of a
// snapshot: the first step sees to that.
func (d *Definition) undo(r operation.Record, ending operation.State, now time.Time) operation.Record {
	r.State, r.Ending = operation.Undoing, ending
	if len(r.Entered) == 0 {
		r.Entered = []string{d.First}
	}
	return d.unwind(r, now)
}

// undone is that the step's undo is over.
func (d *Definition) undone(r operation.Record, now time.Time) operation.Record {
	r.Entered = r.Entered[:len(r.Entered)-1]
	return d.unwind(r, now)
}

// unwind goes on with the last of the steps that have something to undo.
func (d *Definition) unwind(r operation.Record, now time.Time) operation.Record {
	for n := len(r.Entered) - 1; n >= 0; n-- {
		if d.Steps[r.Entered[n]].Undo != nil {
			r.Turn++
			r.Entered = slices.Clone(r.Entered[:n+1])
			return d.enter(r, r.Entered[n], now)
		}
	}
	return ended(r, r.Ending, now)
}

func ended(r operation.Record, how operation.State, now time.Time) operation.Record {
	r.State, r.Ended = how, now.UTC()
	r.Step, r.Entered, r.Next, r.Ending, r.Failures = "", nil, time.Time{}, "", 0
	r.Trouble = ""
	return r
}
