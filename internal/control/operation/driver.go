package operation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/state"
)

const (
	// callWithin is how long one call of a step may take.
	callWithin = time.Minute
	// reportEvery is how often progress is recorded while a step goes on.
	reportEvery = time.Second
	// Pauses while etcd does not take what is to be recorded.
	firstRetry   = 500 * time.Millisecond
	longestRetry = 30 * time.Second
	// restAtMost is how long an operation that waits is left alone: a wish may have been missed.
	restAtMost = 30 * time.Second
)

// errCancelled ends a call whose operation is to be cancelled.
var errCancelled = errors.New("the operation is to be cancelled")

// driver takes one operation as far as it goes while this control plane leads.
type driver struct {
	id    string
	def   *Definition // nil: not known here
	owner string
	books ledger
	wake  chan struct{}
	log   *slog.Logger
	// heard says that a job has ended since the step was called last: its nap is over.
	heard atomic.Bool

	mu       sync.Mutex
	record   operation.Record // guarded by mu, as are those below
	revision int64
	reported time.Time

	// races counts the outcomes in a row that could not be recorded, because of what the step
	// wanted changed with them. Only run uses it.
	races int
}

// poke has the driver look whether something is wanted of it.
func (d *driver) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// hear has a step that naps be called now, because one of the operation's jobs has ended.
func (d *driver) hear() {
	d.heard.Store(true)
	d.poke()
}

// run drives until the operation has ended, or ctx does. What is not known to be recorded, as
// when etcd did not answer, is read again.
func (d *driver) run(ctx context.Context) {
	for wait := firstRetry; ctx.Err() == nil; wait = min(2*wait, longestRetry) {
		before := d.at()
		err := d.live(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if d.at() > before+1 {
			wait = firstRetry // it got on
		}
		d.log.Warn("operation", "id", d.id, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

func (d *driver) at() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.record.Turn
}

// load reads the record anew.
func (d *driver) load(ctx context.Context) error {
	r, revision, err := d.books.read(ctx, d.id)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.record, d.revision = r, revision
	return err
}

func (d *driver) now() (operation.Record, int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.record, d.revision
}

// change records what alter makes of the record, unless that is nothing, with other changes.
func (d *driver) change(ctx context.Context, alter func(operation.Record) (operation.Record, []state.Op)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	next, ops := alter(d.record)
	revision, err := d.books.write(ctx, next, d.revision, ops...)
	if err != nil {
		return err
	}
	d.record, d.revision = next, revision
	return nil
}

// only is an alteration without other changes.
func only(alter func(operation.Record) operation.Record) func(operation.Record) (operation.Record, []state.Op) {
	return func(r operation.Record) (operation.Record, []state.Op) { return alter(r), nil }
}

// live takes step after step. It returns nil when the operation has ended.
func (d *driver) live(ctx context.Context) error {
	if err := d.load(ctx); errors.Is(err, state.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	for ctx.Err() == nil {
		r, _ := d.now()
		if r.State.Ended() {
			return nil
		}
		if err := d.move(ctx, r, time.Now()); err != nil {
			return err
		}
		if now, _ := d.now(); now.State != r.State {
			// What hosts were doing for steps that are over is not wanted. What is missed here is
			// swept later.
			if err := d.books.forget(ctx, d.id); err != nil && ctx.Err() == nil {
				d.log.Warn("remove the jobs of an operation", "id", d.id, "error", err)
			}
		}
	}
	return ctx.Err()
}

// move does the one thing that is to be done now.
func (d *driver) move(ctx context.Context, r operation.Record, now time.Time) error {
	wish, wanted := d.books.wish(d.id)
	knows := d.def.knows(r)
	switch {
	case wanted && (wish.Abandon || r.State == operation.Running && knows):
		d.log.Info("operation is cancelled", "id", d.id, "by", wish.By, "abandon", wish.Abandon)
		return d.change(ctx, only(func(r operation.Record) operation.Record { return d.def.cancel(r, wish, now) }))
	case r.Late(now) && !r.Told:
		return d.tell(ctx)
	case !knows || now.Before(r.Next) && !d.heard.Load():
		d.rest(ctx, r, now)
		return nil
	case r.Owner != d.owner:
		return d.change(ctx, only(func(r operation.Record) operation.Record { return d.def.take(r, d.owner, now) }))
	}
	return d.call(ctx)
}

// tell raises the alarm of the deadline, once.
func (d *driver) tell(ctx context.Context) error {
	return d.change(ctx, func(r operation.Record) (operation.Record, []state.Op) {
		r.Told = true
		d.log.Warn("operation takes longer than it should", "id", r.ID, "kind", r.Kind, "database", r.About.Name)
		e, err := event.Make(r.About.Source(), "H013", time.Now().UTC(), r.ID, r.ID)
		if err != nil {
			d.log.Error("raise event", "error", err)
			return r, nil
		}
		return r, []state.Op{state.Put(state.Event(r.About.Account, r.About.Region, e.Key(r.ID)), e)}
	})
}

// rest waits until there may be something to do.
func (d *driver) rest(ctx context.Context, r operation.Record, now time.Time) {
	wait := restAtMost
	if nap := r.Next.Sub(now); nap > 0 {
		wait = min(wait, nap)
	}
	if left := r.Deadline.Sub(now); left >= 0 && !r.Told {
		wait = min(wait, left+time.Millisecond)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-d.wake:
	}
}

// result is that of a call.
type result struct {
	out Outcome
	err error
}

// call calls the step once, and records the outcome.
func (d *driver) call(ctx context.Context) error {
	d.heard.Store(false)
	r, revision := d.now()
	// Who was paused since this was recorded may find that others have gone on.
	if err := d.books.prove(ctx, d.id, revision); err != nil {
		return err
	}
	run := &Run{Record: r, progress: r.Progress, notes: map[string]string{}}
	run.report = d.report
	got := d.await(ctx, run)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(got.err, ErrOvertaken) {
		return got.err
	}
	err := d.settle(ctx, run, got)
	if !errors.Is(err, state.ErrConflict) {
		d.races = 0
		return err
	}
	// Either the operation is another's, or what the step wanted changed meanwhile.
	if _, revision := d.now(); d.books.prove(ctx, d.id, revision) != nil {
		return fmt.Errorf("operation %s: %w", d.id, ErrOvertaken)
	}
	if d.races++; d.races <= mostRaces {
		d.log.Info("step of an operation is called again", "id", d.id, "step", run.Record.Step, "error", err)
		return d.change(ctx, only(func(r operation.Record) operation.Record { return raced(r, run, err, d.races, time.Now()) }))
	}
	return d.settle(ctx, run, result{err: err})
}

// settle records the outcome of a call.
func (d *driver) settle(ctx context.Context, run *Run, got result) error {
	return d.change(ctx, func(r operation.Record) (operation.Record, []state.Op) {
		if errors.Is(got.err, errCancelled) {
			r.Progress = r.Progress.Advance(run.progress)
			return r, nil // the wish is seen to next
		}
		next, ops := d.def.after(r, run, got.out, got.err, time.Now())
		switch {
		case got.err != nil:
			d.log.Warn("step of an operation failed", "id", r.ID, "step", r.Step, "failures", next.Failures, "error", got.err)
		case next.State != r.State || next.Step != r.Step:
			d.log.Info("operation goes on", "id", r.ID, "kind", r.Kind, "database", r.About.Name, "state", next.State, "step", next.Step)
		}
		return next, ops
	})
}

// await waits for a call, and sees meanwhile to what cannot wait for it: the deadline's alarm,
// and that the operation is to be cancelled.
func (d *driver) await(ctx context.Context, run *Run) result {
	r := run.Record
	step := d.def.Steps[r.Step]
	do, within := step.Do, step.Within
	if r.State == operation.Undoing {
		do = step.Undo
	}
	if within <= 0 {
		within = callWithin
	}
	calling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	calling, end := context.WithTimeout(calling, within)
	defer end()
	done := make(chan result, 1)
	go func() { done <- d.guarded(calling, do, run) }()
	alarm := time.NewTimer(max(0, time.Until(r.Deadline)) + time.Millisecond)
	defer alarm.Stop()
	for {
		select {
		case got := <-done:
			if errors.Is(context.Cause(calling), errCancelled) && got.err != nil {
				got.err = errCancelled // what it says of its end says nothing
			}
			return got
		case <-alarm.C:
			if now, _ := d.now(); !now.Told && ctx.Err() == nil {
				if err := d.tell(ctx); err != nil {
					d.log.Warn("tell of an operation that is late", "id", d.id, "error", err)
				}
			}
		case <-d.wake:
			if wish, wanted := d.books.wish(d.id); wanted && (wish.Abandon || r.State == operation.Running) {
				cancel(errCancelled)
			}
		}
	}
}

// guarded calls a step, which may not take the control plane with it.
func (d *driver) guarded(ctx context.Context, do Func, run *Run) (got result) {
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("step of an operation panicked", "id", d.id, "step", run.Record.Step, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			got = result{err: fmt.Errorf("step %s panicked: %v", run.Record.Step, p)}
		}
	}()
	out, err := do(ctx, run)
	return result{out, err}
}

// report records progress while a step goes on.
func (d *driver) report(ctx context.Context, p operation.Progress) error {
	d.mu.Lock()
	soon := time.Since(d.reported) < reportEvery
	if !soon {
		d.reported = time.Now()
	}
	d.mu.Unlock()
	if soon {
		return nil
	}
	err := d.change(ctx, only(func(r operation.Record) operation.Record {
		r.Progress = r.Progress.Advance(p)
		return r
	}))
	if errors.Is(err, state.ErrConflict) {
		return fmt.Errorf("operation %s: %w", d.id, ErrOvertaken)
	}
	return err
}
