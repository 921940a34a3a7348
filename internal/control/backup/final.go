package backup

import (
	"context"
	"errors"
	"slices"
	"time"

	step "howdah/internal/control/operation"
	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
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
	return out.With(t.put(next)).With(retained...).With(b.followersGo(*t.common())...), err
}

// followersGo returns the changes that make the databases which follow one independent, as it is deleted
// now.
func (b *Backups) followersGo(from spec.Common) (ops []state.Op) {
	for _, r := range state.ViewAll[spec.Instance](b.Cache, state.InstanceRoot) {
		if r.Value.Source != from.ResourceID || !r.Value.Follows() || r.Value.Deleting {
			continue
		}
		next := *r.Value
		next.Promote(from)
		next.Begin(plan.Modifying, nil, "0057")
		next.Generation++
		ops = append(ops, state.Swap(r.Key, r.Revision, next))
	}
	return ops
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
	a.Value.Until = until(b.backups(id, a.Value.Repository), made, b.restorable(id).At)
	return []state.Op{state.Swap(a.Key, a.Revision, a.Value)}, nil
}

// until is the newest moment that can be restored of a database that is no more: its newest mark. Later
// ones are not promised, although there may be later commits: without one that follows a moment nobody
// knows whether all that came before it is there. Only a newest backup that is the first one stands
// for itself.
func until(all []backup.Backup, newest backup.Backup, mark time.Time) time.Time {
	if _, ok := backup.Base(append(slices.Clone(all), newest), mark); ok {
		return mark
	}
	return newest.Stop
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
