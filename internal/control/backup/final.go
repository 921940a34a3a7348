package backup

import (
	"context"
	"errors"
	"time"

	step "howdah/internal/control/operation"
	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/state"
)

// recordFinal is the last step of Final: the snapshot is available, and the database is deleted, in
// one transaction.
func (b *Backups) recordFinal(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.TakeArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	out, made, err := b.recorded(ctx, run)
	if err != nil || made.Label == "" {
		return out, err
	}
	t, ok := b.target(run.Record.About)
	if !ok || t.common().Deleting {
		return out, nil
	}
	next := *t.common()
	next.Deleting = true
	retained, err := b.retains(ctx, t, args, made, time.Now().UTC())
	return out.With(t.put(next)).With(retained...), err
}

// retains returns the changes with which the automated backups outlive their database, unless they
// are to go with it.
func (b *Backups) retains(ctx context.Context, t target, args backup.TakeArgs, made backup.Backup, now time.Time) ([]state.Op, error) {
	id := t.common().ResourceID
	a, err := state.Get[backup.Automated](ctx, b.Store, state.Automated(id))
	if errors.Is(err, state.ErrNotFound) || args.DropAutomated {
		return nil, nil // the keeper removes them
	}
	if err != nil {
		return nil, err
	}
	a.Value.Retained, a.Value.Deleted = true, now
	if a.Value.Until = made.Stop; b.restorable(id).At.After(made.Stop) {
		a.Value.Until = b.restorable(id).At
	}
	return []state.Op{state.Swap(a.Key, a.Revision, a.Value)}, nil
}

// stays returns the change with which a database goes on that was to be deleted after its final
// snapshot.
func (b *Backups) stays(about operation.About) []state.Op {
	t, ok := b.target(about)
	if !ok || t.common().Deleting || t.common().Final == "" {
		return nil
	}
	next := *t.common()
	next.Final = ""
	return []state.Op{t.put(next)}
}
