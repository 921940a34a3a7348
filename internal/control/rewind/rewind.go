// Package rewind gives a database the data of an earlier moment, in its place. It is an operation that
// runs in the control plane that leads. A hidden database, which was made with the operation, is
// restored beside the database. Then the database is closed, and the records of the two are exchanged.
// docs/design/backup.md says why it is done so.
//
// Invariants: until the exchange, which is one transaction, nothing of the database has changed, and an
// operation that ends otherwise opens it again and removes the hidden one. The database is closed
// before the exchange, and every process of it is known to have ended, so that no write is acknowledged
// by what is no longer led to. The snapshot of the database as it was is whole before that.
package rewind

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	step "howdah/internal/control/operation"
	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// The steps. The snapshot is waited for, then the restore, which goes on meanwhile. close ends the
// processes of the database, and exchange puts the other one in its place.
const (
	stepSnapshot = "snapshot"
	stepRestore  = "restore"
	stepClose    = "close"
	stepExchange = "exchange"
)

// What steps note for later ones.
const (
	noteClosed = "closed" // when the database was closed
	// noteRestorable is the newest moment that could be restored when the database was closed.
	noteRestorable = "restorable"
	noteLed        = "led" // who was its last primary
)

// Config is what rewinds need. All fields are required.
type Config struct {
	Store *state.Store
	Cache *state.Cache // of state.Root and patroni.Namespace
	Log   *slog.Logger
	// Look is how often what is waited for is looked at.
	Look time.Duration
}

// LookEvery is the usual Look.
const LookEvery = time.Second

type rewinds struct{ Config }

// Definition returns the operation, for the runner of operations.
func Definition(cfg Config) *step.Definition {
	r := &rewinds{cfg}
	return &step.Definition{Kind: backup.Rewind, First: stepSnapshot, Steps: map[string]step.Step{
		stepSnapshot: {Do: r.snapshot, Undo: r.remove},
		stepRestore:  {Do: r.restore},
		stepClose:    {Do: r.close, Undo: r.open},
		stepExchange: {Do: r.exchange},
	}}
}

// wait has the step called again, and says what for.
func (r *rewinds) wait(format string, args ...any) step.Outcome {
	return step.Nap(r.Look).Because(fmt.Errorf(format, args...))
}

var (
	errGone   = errors.New("the database is gone")
	errInside = errors.New("the database that was being restored beside it is gone")
	errShot   = errors.New("the snapshot of the database as it is could not be made")
	errFails  = errors.New("the data cannot be restored")
	errClone  = errors.New("a clone of the database has not got its data")
	errLast   = errors.New("what was committed last is not in the archive")
)

// about returns the record of the database that the operation is about.
func (r *rewinds) about(ctx context.Context, run *step.Run) (state.Record[spec.Instance], error) {
	about := run.Record.About
	return r.record(ctx, state.Instance(about.Account, about.Region, about.Name), about.Database, errGone)
}

// inside returns the record of the hidden database.
func (r *rewinds) inside(ctx context.Context, args backup.RewindArgs) (state.Record[spec.Instance], error) {
	return r.record(ctx, args.Key, args.Database, errInside)
}

// record reads the record of a database. None that is being deleted counts: then the error is gone, for
// good.
func (r *rewinds) record(ctx context.Context, key, id string, gone error) (state.Record[spec.Instance], error) {
	found, err := state.Get[spec.Instance](ctx, r.Store, key)
	if errors.Is(err, state.ErrNotFound) || err == nil && (found.Value.ResourceID != id || found.Value.Deleting) {
		return found, step.Final(fmt.Errorf("%s: %w", id, gone))
	}
	return found, err
}

// snapshot waits for the snapshot of the database as it is now.
func (r *rewinds) snapshot(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.RewindArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	made, err := r.shot(ctx, args)
	switch {
	case err != nil:
		return step.Outcome{}, err
	case made.State == backup.Available:
		return step.Next(stepRestore), nil
	}
	why := ""
	if o, err := state.View[operation.Record](r.Cache, state.Operation(made.Operation)); err == nil {
		run.Progress(o.Value.Progress.Done, o.Value.Progress.Of, o.Value.Progress.Unit)
		if o.Value.Trouble != "" {
			why = ": " + o.Value.Trouble
		}
	}
	return r.wait("the snapshot %s is being made%s", made.Name, why), nil
}

// shot returns the snapshot that is made first. It fails for good if there will be none.
func (r *rewinds) shot(ctx context.Context, args backup.RewindArgs) (backup.Snapshot, error) {
	made, err := state.Get[backup.Snapshot](ctx, r.Store, args.Snapshot)
	switch {
	case errors.Is(err, state.ErrNotFound):
		return made.Value, step.Final(fmt.Errorf("%w: it was deleted, or its operation was cancelled", errShot))
	case err == nil && made.Value.State == backup.Failed:
		return made.Value, step.Final(fmt.Errorf("%w: %s", errShot, made.Value.Reason))
	}
	return made.Value, err
}

// restore waits until the hidden database serves.
func (r *rewinds) restore(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.RewindArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	if _, err := r.inside(ctx, args); err != nil {
		return step.Outcome{}, err
	}
	layout := r.layout(args.Database)
	for _, m := range layout.Members {
		report := r.report(args.Database, m)
		if p := report.Restoring; p != nil {
			run.Progress(p.Done, p.Of, "bytes of "+p.Phase)
		}
	}
	if why, never := r.never(layout); never {
		return step.Outcome{}, step.Final(fmt.Errorf("%w: %s", errFails, why))
	}
	if why := r.serves(args.Database); why != "" {
		return r.wait("the data are being restored: %s", why), nil
	}
	return step.Next(stepClose), nil
}

// never says why a database with this layout never gets its first data; ok is false if it may, or has
// them.
func (r *rewinds) never(layout plan.Layout) (why string, ok bool) {
	if layout.Created || layout.Restored {
		return "", false
	}
	if layout.Unrestorable != "" {
		return layout.Unrestorable, true
	}
	for _, m := range layout.Members {
		if report := r.report(layout.ID, m); !m.Leaving && report.Problem == member.RestoreFails {
			return report.Detail, true
		}
	}
	return "", false
}

// remove is the undo of all but close: the hidden database goes, and an event tells why. The snapshot
// stays.
func (r *rewinds) remove(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.RewindArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	told, err := r.tell(run, "H019", args.To, run.Record.Reason, run.Record.ID)
	if err != nil {
		return step.Outcome{}, step.Final(err)
	}
	found, err := r.inside(ctx, args)
	switch {
	case errors.Is(err, errInside):
		return step.End().With(told), nil
	case err != nil:
		return step.Outcome{}, err
	case found.Value.MadeBy != run.Record.ID:
		return step.End().With(told), nil
	}
	next := found.Value
	next.Deleting = true
	next.Generation++
	return step.End().With(told, state.Swap(found.Key, found.Revision, next)), nil
}

// tell returns the write of an event of the database.
func (r *rewinds) tell(run *step.Run, number string, args ...any) (state.Op, error) {
	src := run.Record.About.Source()
	e, err := event.Make(src, number, time.Now().UTC(), args...)
	if err != nil {
		return state.Op{}, fmt.Errorf("raise event: %w", err)
	}
	return state.Put(state.Event(src.Account, src.Region, e.Key(run.Record.ID)), e), nil
}

// layout is that of a database; it is empty if there is none yet.
func (r *rewinds) layout(id string) plan.Layout {
	l, err := state.View[plan.Layout](r.Cache, state.Layout(id))
	if err != nil {
		return plan.Layout{}
	}
	return *l.Value
}

// report is what a member said last; it is empty if it never did.
func (r *rewinds) report(id string, m plan.Placed) member.Report {
	report, err := state.View[member.Report](r.Cache, state.Report(m.Host, member.ID(id, m.Name)))
	if err != nil {
		return member.Report{}
	}
	return *report.Value
}
