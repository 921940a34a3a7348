// Package operation takes operations about databases, which last for minutes or hours, from
// one named step to the next. It runs in the control plane that leads. How an operation is
// recorded, and how many there may be, is said by model/operation; why no step is taken twice,
// and no two control planes work against each other, in docs/design/operation.md.
//
// Invariants: a step is in the record before it begins. The record is changed only by
// compare-and-swap, and only by the control plane that leads. What a step changes in etcd is
// changed in the transaction that records its outcome, so that it happens once. What it does
// elsewhere is idempotent by name, and carries the record's turn, which only grows. Whatever
// becomes of the control plane, one that leads goes on with the step that is recorded. An
// operation that fails for good, or is cancelled, undoes its steps, the last one first.
package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"howdah/internal/model/operation"
	"howdah/internal/state"
)

// Definition is how operations of a kind are carried out.
type Definition struct {
	operation.Kind
	First string // step
	Steps map[string]Step
}

// Step is one step of an operation.
type Step struct {
	// Do takes the step, or a part of it: what lasts is begun, and looked at after naps.
	Do Func
	// Undo removes whatever Do may have made, also where it never got to make it. nil: Do
	// leaves nothing. It is tried until it succeeds, unless it says that it cannot. That of the
	// first step also removes what was made in the transaction that began the operation.
	Undo Func
	// Tries is after how many failures in a row the operation fails; 0: it goes on trying,
	// and the deadline's alarm tells.
	Tries int
	// Within is how long one call may take; 0: callWithin.
	Within time.Duration
}

// Func takes or undoes a step. It must be idempotent: after a crash it is called again. It
// returns soon after its context ends. An error is followed by another try after a pause, and
// one of Final by none.
type Func func(ctx context.Context, run *Run) (Outcome, error)

type outcome int

const (
	ends outcome = iota
	goesOn
	naps
)

// Outcome is what follows a step.
type Outcome struct {
	kind outcome
	step string
	nap  time.Duration
	why  string
	ops  []state.Op
}

// Next is that another step follows.
func Next(step string) Outcome { return Outcome{kind: goesOn, step: step} }

// Nap is that the step is to be called again after a while.
func Nap(d time.Duration) Outcome { return Outcome{kind: naps, nap: max(d, leastNap)} }

// End is that nothing follows: the operation is done, or the step undone.
func End() Outcome { return Outcome{kind: ends} }

// With is the outcome with changes of the state, which happen once, in the transaction that
// records it; if one of their conditions does not hold the step is called again. That counts as
// a failure only where it happens again and again.
func (o Outcome) With(ops ...state.Op) Outcome {
	o.ops = append(o.ops, ops...)
	return o
}

// Because says to people what is waited for.
func (o Outcome) Because(err error) Outcome {
	o.why = err.Error()
	return o
}

// errFinal marks what another try would not mend.
var errFinal = errors.New("for good")

// Final is a failure that lasts: the operation fails, and is undone. An Undo that cannot
// succeed says so by it, and what it should have removed stays.
func Final(err error) error { return finalError{err} }

type finalError struct{ error }

func (f finalError) Unwrap() []error { return []error{f.error, errFinal} }

// ErrOvertaken says that another control plane leads, or has changed the operation: whoever
// gets it stops at once.
var ErrOvertaken = errors.New("another one goes on with the operation")

// Run is one call of a step.
type Run struct {
	// Record is the operation as it was recorded before the call. It must not be changed.
	Record operation.Record

	progress operation.Progress
	notes    map[string]string
	report   func(context.Context, operation.Progress) error
}

// Turn is what goes along with everything that the step makes outside of etcd. Who keeps such
// things refuses a turn lower than one that it has seen for the operation.
func (r *Run) Turn() int64 { return r.Record.Turn }

// Name is that of something that the step makes: the same however often it is called.
func (r *Run) Name() string { return r.Record.ID + "/" + r.Record.Step }

// Args decodes the operation's arguments.
func (r *Run) Args(into any) error {
	if err := json.Unmarshal(r.Record.Args, into); err != nil {
		return Final(fmt.Errorf("read the arguments of operation %s: %w", r.Record.ID, err))
	}
	return nil
}

// Progress tells how far the step is; it is recorded with its outcome.
func (r *Run) Progress(done, of int64, unit string) {
	r.progress = r.progress.Advance(operation.Progress{Done: done, Of: of, Unit: unit})
}

// Report records the progress while the step goes on, at most once in reportEvery. It answers
// ErrOvertaken if the step is not this control plane's any more.
func (r *Run) Report(ctx context.Context, done, of int64, unit string) error {
	r.Progress(done, of, unit)
	return r.report(ctx, r.progress)
}

// Note leaves a short text for later steps, in Record.Notes; it is recorded with the outcome.
func (r *Run) Note(name, text string) { r.notes[name] = text }
