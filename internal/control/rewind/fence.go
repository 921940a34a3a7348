package rewind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	step "howdah/internal/control/operation"
	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// serves says what a hidden database lacks, or "": it has been available, and its primary takes writes.
func (r *rewinds) serves(id string) (lacks string) {
	layout := r.layout(id)
	if !layout.Created {
		if n := len(layout.Steps); n > 0 {
			return layout.Steps[n-1].Name
		}
		return "it waits for a host"
	}
	leader := view.Leader(r.Cache, id)
	for _, m := range layout.Members {
		if report := r.report(id, m); m.Name == leader && r.alive(m.Host) && report.Ready && !report.InRecovery {
			return ""
		}
	}
	return "it has no primary that serves"
}

// close ends all processes of the database, in good order, so that everything that it acknowledged is
// in the archive. From then on nobody writes to it.
func (r *rewinds) close(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.RewindArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	old, err := r.about(ctx, run)
	if err != nil {
		return step.Outcome{}, err
	}
	run.Progress(0, 0, "") // what was counted before is done
	if old.Value.ClosedBy == "" {
		if why := r.mayClose(run, args, old.Value); why != "" {
			return r.wait("it is closed as soon as that is possible: %s", why), nil
		}
		if name := r.cloned(old.Value.ResourceID); name != "" {
			return r.waitForClone(run, name)
		}
		next := old.Value
		next.ClosedBy = run.Record.ID
		next.Generation++
		run.Note(noteClosed, time.Now().UTC().Format(time.RFC3339Nano))
		r.noteLed(run, old.Value.ResourceID)
		run.Note(noteRestorable, r.restorable(old.Value.ResourceID).Format(time.RFC3339Nano))
		return r.wait("its processes end").With(state.Swap(old.Key, old.Revision, next)), nil
	}
	if r.noteLed(run, old.Value.ResourceID) {
		return r.wait("its processes end"), nil // what follows goes by the note
	}
	if why := r.runs(old.Value.ResourceID); why != "" {
		return r.wait("%s", why), nil
	}
	if name := r.cloned(old.Value.ResourceID); name != "" {
		return step.Outcome{}, noClone(name)
	}
	if why := r.unarchived(run, old.Value); why != "" {
		return step.Outcome{}, step.Final(fmt.Errorf("%w: %s; see that WAL is archived, and try again", errLast, why))
	}
	return step.Next(stepExchange), nil
}

// longestClone is for how long a clone of the database is waited for. It may wait for something itself,
// such as room on a host.
const longestClone = time.Hour

// waitForClone waits until a clone has its data, but not for ever: room is taken meanwhile by what is to
// take the place.
func (r *rewinds) waitForClone(run *step.Run, name string) (step.Outcome, error) {
	if time.Since(run.Record.StepBegan) > longestClone {
		return step.Outcome{}, noClone(name)
	}
	return r.wait("it is closed as soon as that is possible: its clone %s gets its data first", name), nil
}

func noClone(name string) error {
	return step.Final(fmt.Errorf("%w: wait until %s is available, or delete it, and try again", errClone, name))
}

// noteLed notes who leads a database that is being closed, and reports whether that is somebody else than
// before. It may be promoted only now, as a failover went on when the database was closed.
func (r *rewinds) noteLed(run *step.Run, id string) bool {
	leader := view.Leader(r.Cache, id)
	if leader == "" || leader == run.Record.Notes[noteLed] {
		return false
	}
	run.Note(noteLed, leader)
	return true
}

// unarchived says why the archive may lack what the closed database acknowledged last, or "". It is
// opened again then: nobody could restore that. What counts is the word of the member that led last. If
// its host is forgotten, that of every other one counts, as one of them may have led after it.
func (r *rewinds) unarchived(run *step.Run, old spec.Instance) (why string) {
	if old.BackupRetention == 0 {
		return "" // whoever asked was told
	}
	for _, m := range r.layout(old.ResourceID).Members {
		if _, _, known := r.Cache.Raw(state.Host(m.Host)); !known {
			continue
		}
		said := r.report(old.ResourceID, m).Unarchived
		if m.Name == run.Record.Notes[noteLed] {
			return said
		}
		why = cmp.Or(why, said)
	}
	return why
}

// mayClose says what to wait for before the database is closed, or "". A snapshot that somebody asked
// for meanwhile is made first.
func (r *rewinds) mayClose(run *step.Run, args backup.RewindArgs, old spec.Instance) string {
	if why := r.serves(args.Database); why != "" {
		return "what is restored does not serve just now: " + why
	}
	if why := r.silent(old.ResourceID); why != "" {
		return why
	}
	if why := r.lags(old); why != "" {
		return why
	}
	for _, o := range state.ViewAll[operation.Record](r.Cache, state.OperationRoot) {
		v := o.Value
		if v.ID != run.Record.ID && !v.State.Ended() && v.About.Database == run.Record.About.Database && slices.Contains(v.Excludes, operation.Delete) {
			return fmt.Sprintf("the operation %s (%s) ends first", v.ID, v.Kind)
		}
	}
	return ""
}

// lags says why the archive would not take the last WAL of a database, or "".
func (r *rewinds) lags(old spec.Instance) string {
	if old.BackupRetention == 0 {
		return ""
	}
	leader := view.Leader(r.Cache, old.ResourceID)
	if leader == "" {
		return "it has no primary just now, which would archive its last WAL"
	}
	for _, m := range r.layout(old.ResourceID).Members {
		a := r.report(old.ResourceID, m).Archived
		switch {
		case m.Name != leader || a == nil:
		case a.Failing != "":
			return "its WAL is not archived: " + a.Failing
		case a.Broken != "":
			return "WAL was given up, and the backup that mends it is not there yet"
		}
	}
	return ""
}

// cloned returns the name of a clone that has not got its data yet, or "". One that never gets them does
// not count.
func (r *rewinds) cloned(id string) string {
	for _, i := range state.ViewAll[spec.Instance](r.Cache, state.InstanceRoot) {
		if o := i.Value.Origin; o == nil || !o.Live || o.Database != id || i.Value.Deleting {
			continue
		}
		layout := r.layout(i.Value.ResourceID)
		if _, never := r.never(layout); !layout.Restored && !layout.Created && !never {
			return i.Value.Name
		}
	}
	return ""
}

// runs says which process of a closed database may still run, or "". What a host said before it was
// told that the database is closed does not count, nor does that a host is silent: its primary may
// still acknowledge writes there.
func (r *rewinds) runs(id string) string {
	for _, m := range r.layout(id).Members {
		name := member.ID(id, m.Name)
		if _, _, known := r.Cache.Raw(state.Host(m.Host)); !known {
			continue // an operator's word, after which nothing of it counts
		}
		if !r.alive(m.Host) {
			return mayRun(m)
		}
		told, err := state.View[member.Assignment](r.Cache, state.Assign(m.Host, name))
		report := r.report(id, m)
		if err != nil || told.Value.Want != member.Stopped || report.Generation < told.Value.Generation || report.Patroni || report.Postgres {
			return fmt.Sprintf("%s on host %s ends", m.Name, m.Host)
		}
	}
	return ""
}

// silent says which host of a database is silent, or "". If the database was closed now, clients would
// wait for that host.
func (r *rewinds) silent(id string) string {
	for _, m := range r.layout(id).Members {
		if _, _, known := r.Cache.Raw(state.Host(m.Host)); known && !r.alive(m.Host) {
			return mayRun(m)
		}
	}
	return ""
}

func mayRun(m plan.Placed) string {
	return fmt.Sprintf("host %s is silent, and may still run %s: bring it back, or say that it is gone (howdah host forget %s)", m.Host, m.Name, m.Host)
}

// open is the undo of close.
func (r *rewinds) open(ctx context.Context, run *step.Run) (step.Outcome, error) {
	old, err := r.about(ctx, run)
	switch {
	case errors.Is(err, errGone):
		return step.End(), nil
	case err != nil:
		return step.Outcome{}, err
	case old.Value.ClosedBy != run.Record.ID:
		return step.End(), nil
	}
	next := old.Value
	next.ClosedBy = ""
	next.Generation++
	return step.End().With(state.Swap(old.Key, old.Revision, next)), nil
}

// restorable is the newest moment that members of a database say can be restored, or zero.
func (r *rewinds) restorable(id string) (newest time.Time) {
	for _, report := range view.Reports(r.Cache, id, r.layout(id)) {
		if a := report.Archived; a != nil && a.Restorable.At.After(newest) {
			newest = a.Restorable.At
		}
	}
	return newest.UTC()
}

func (r *rewinds) alive(host string) bool {
	live, err := state.View[member.Liveness](r.Cache, state.Live(host))
	return err == nil && live.Value.Alive
}
