// Package target has what experiments are made against: any server by its address, or a Howdah, which
// makes a database for the experiment and removes it afterwards.
package target

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/own"
	"howdah/internal/lab/result"
)

// Schema is where all of the lab's own tables are, and the only one that it writes to.
const Schema = own.Schema

// mark is the comment on a schema that the lab made.
const mark = own.Mark

// Target is what experiments are made against. One run uses it at a time.
type Target interface {
	// Name tells it from all others: all points of a result are of one target. It is known before Open.
	Name() string
	// Able lists what it can do, in the words of package experiment.
	Able() []string
	// Open makes it ready, in the form that the first setting wants. What a run that was broken off
	// left is used or removed.
	Open(ctx context.Context, first experiment.Wanted) error
	// Become gives it another form. anew says that it has none of the data that it had.
	Become(ctx context.Context, w experiment.Wanted) (anew bool, err error)
	// At is how one connects now. It may be another server after Become, and after steps that restore.
	At() address.Server
	// Prepare checks that the lab may and can use the target, and makes the lab's schema. clients is
	// how many connections the experiment needs at most.
	Prepare(ctx context.Context, clients int) error
	// Describe says what the target is.
	Describe(ctx context.Context) (result.Target, error)
	// Close removes what Open and the others made, unless the user keeps it. It is called after every
	// Open, also one that failed.
	Close(ctx context.Context) error
}

var (
	// ErrUnable says that a target cannot do what an experiment needs.
	ErrUnable = errors.New("the experiment needs another target")
	// ErrStandby says that a target takes no writes.
	ErrStandby = errors.New("the target is a standby: give the address of its primary")
	// ErrForeign says that a target has somebody's data.
	ErrForeign = errors.New("the target has data that are not the lab's")
	// ErrSchema says that somebody else has made a schema of the lab's name.
	ErrSchema = errors.New("the target has a schema " + Schema + " that the lab has not made: drop or rename it")
	// ErrClients says that an experiment has more clients than the target takes.
	ErrClients = errors.New("the target takes fewer connections than the experiment needs")
	// ErrBusy says that another run measures the target.
	ErrBusy = errors.New("another run of the lab measures this database: wait for it, or end it (howdah lab list --runs)")
	// ErrOther says that another server answers than before.
	ErrOther = errors.New("another server answers behind this address than before: give an address that always leads to the same one")
	// ErrPath says that sessions do not look where the lab's tables are, and would make them elsewhere.
	ErrPath = errors.New("sessions do not keep the search path that they ask for, as behind some poolers, so that the lab would write elsewhere than to its schema: give the address of the server itself")
	// ErrRoom says that the target's disk is too small, as far as is known.
	ErrRoom = errors.New("there is too little room")
)

// Check refuses an experiment that needs more than a target can do.
func Check(t Target, e *experiment.Experiment) error {
	able := t.Able()
	for _, need := range e.Requires() {
		if !slices.Contains(able, need) {
			return fmt.Errorf("%w: for %s the target has to %s, and %s does not", ErrUnable, e.Name, experiment.Need(need), t.Name())
		}
	}
	return nil
}
