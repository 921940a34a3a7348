package rewind

import (
	"context"
	"errors"
	"slices"
	"time"

	step "howdah/internal/control/operation"
	"howdah/internal/control/plan"
	"howdah/internal/identity/secret"
	"howdah/internal/model/backup"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// exchange is the last step: in one transaction the hidden database gets the name of the other one, its
// endpoint, and all that users have set, and the other one is hidden, and deleted. Its automated
// backups stay as those of any database that is deleted with them retained.
func (r *rewinds) exchange(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.RewindArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	made, err := r.shot(ctx, args)
	if err != nil {
		return step.Outcome{}, err
	}
	old, err := r.about(ctx, run)
	if err != nil {
		return step.Outcome{}, err
	}
	inside, err := r.inside(ctx, args)
	if err != nil {
		return step.Outcome{}, err
	}
	if why := r.serves(args.Database); why != "" {
		return r.wait("what is restored does not serve just now, and the database is closed: %s; cancel the operation to have it opened as it was", why), nil
	}
	next, gone := exchanged(old.Value, inside.Value)
	ops := []state.Op{
		state.Swap(old.Key, old.Revision, next), state.Swap(inside.Key, inside.Revision, gone), state.Delete(state.Route(gone.ResourceID)),
		state.Put(state.Address(next.Address), next.ResourceID), state.Put(state.Address(gone.Address), gone.ResourceID),
	}
	moved, err := r.secret(ctx, old.Value, next)
	if err != nil {
		return step.Outcome{}, err
	}
	retained, err := r.retain(ctx, run, old.Value, next)
	if err != nil {
		return step.Outcome{}, err
	}
	where := "the snapshot " + made.Name
	if len(retained) > 0 {
		where += ", and the automated backups of " + gone.ResourceID
	}
	told, err := r.tell(run, "H018", args.To, stamp(run.Record.Notes[noteClosed]), where)
	if err != nil {
		return step.Outcome{}, step.Final(err)
	}
	ops = append(append(ops, moved...), retained...)
	return step.End().With(append(ops, told)...), nil
}

// mostReplaced is how many databases an instance knows whose place it took.
const mostReplaced = 16

// exchanged returns the records of two databases after one took the place of the other. What users see
// and set stays as it was: also what they changed since the hidden one was made. What belongs to the
// data, and what the planner counts, goes with them.
func exchanged(old, inside spec.Instance) (next, gone spec.Instance) {
	next = old
	next.ResourceID, next.StorageKey, next.Origin = inside.ResourceID, inside.StorageKey, inside.Origin
	next.PasswordSerial = max(old.PasswordSerial, inside.PasswordSerial)
	next.Taken, next.ClusterTaken, next.SharedMemory = inside.Taken, inside.ClusterTaken, inside.SharedMemory
	next.Reboot, next.Restart, next.Failover, next.FailoverTarget = inside.Reboot, inside.Restart, inside.Failover, ""
	next.Source, next.Promoted = "", false
	next.Replaced = append(slices.Clone(old.Replaced), old.ResourceID)
	next.Replaced = next.Replaced[max(0, len(next.Replaced)-mostReplaced):]
	next.MadeBy, next.ClosedBy, next.Expects = "", "", ""
	next.Generation = max(old.Generation, inside.Generation) + 1
	// It is available again when an edge leads there.
	next.Change, next.ChangeStatus, next.ChangeEvents, next.Before = inside.Change+1, plan.Modifying, nil, nil

	gone = old
	gone.Name, gone.Address, gone.Former = inside.Name, inside.Address, nil
	gone.MadeBy, gone.ClosedBy, gone.Expects = inside.MadeBy, "", ""
	gone.Deleting = true
	gone.Generation++
	return next, gone
}

// secret returns the changes with which the master user's password that Howdah manages is found with
// the other database.
func (r *rewinds) secret(ctx context.Context, old, next spec.Instance) ([]state.Op, error) {
	kept, err := state.Get[secret.Secret](ctx, r.Store, state.Secret(old.ResourceID))
	if errors.Is(err, state.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	moved := kept.Value.Move(next.ResourceID, old.PasswordSerial, next.PasswordSerial)
	return []state.Op{state.Remove(kept.Key, kept.Revision), state.Swap(state.Secret(next.ResourceID), 0, moved)}, nil
}

// retain returns the changes with which the automated backups outlive the database, and with which the
// next one is backed up to the same repositories. There are none if it has none.
func (r *rewinds) retain(ctx context.Context, run *step.Run, old, next spec.Instance) ([]state.Op, error) {
	a, err := state.Get[backup.Automated](ctx, r.Store, state.Automated(old.ResourceID))
	if errors.Is(err, state.ErrNotFound) || err == nil && old.BackupRetention == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	follows := backup.Automated{
		Scope: a.Value.Scope, Name: next.Name, Database: next.ResourceID, Retention: next.BackupRetention, Created: time.Now().UTC(),
		Repository: a.Value.Repository, Second: a.Value.Second, SecondRegion: a.Value.SecondRegion, SecondKey: a.Value.SecondKey,
	}
	follows.Keep(&next, nil)
	a.Value.Keep(&old, nil)
	a.Value.Name, a.Value.Retention = old.Name, old.BackupRetention
	a.Value.Retained, a.Value.Deleted = true, time.Now().UTC()
	until, _ := time.Parse(time.RFC3339Nano, run.Record.Notes[noteRestorable]) // zero if it is not known
	for _, at := range []time.Time{until, r.restorable(old.ResourceID)} {
		if at.After(a.Value.Until) {
			a.Value.Until = at
		}
	}
	return []state.Op{state.Swap(a.Key, a.Revision, a.Value), state.Swap(state.Automated(next.ResourceID), 0, follows)}, nil
}

// stamp is a noted moment as texts have it.
func stamp(noted string) string {
	at, err := time.Parse(time.RFC3339Nano, noted)
	if err != nil {
		return "it was closed"
	}
	return at.UTC().Format("2006-01-02 15:04:05") + "Z"
}
