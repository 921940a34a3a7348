package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	step "howdah/internal/control/operation"
	"howdah/internal/model/backup"
	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/state"
)

// The steps of Copy. What is copied lies in a part of its own, which the operation is about. So
// whatever becomes of the copy, Tidy removes the part as soon as nobody needs it.
const (
	stepSite = "site"
	stepCopy = "copy"
	stepShow = "show"
)

func (b *Backups) copying() map[string]step.Step {
	return map[string]step.Step{
		stepSite: {Do: b.site, Undo: b.uncopied},
		stepCopy: {Do: b.copy, Undo: b.endJob},
		stepShow: {Do: b.copied},
	}
}

// site takes the part, and chooses the host that copies.
func (b *Backups) site(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.CopyArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	if out, paused := pausing(run); paused {
		return out, nil
	}
	if _, _, err := b.toCopy(args); err != nil {
		return step.Outcome{}, err
	}
	taken, why, err := b.take(ctx, run, args.Repository)
	if err != nil {
		return step.Outcome{}, err
	}
	if why != nil {
		return b.wait(run, why), nil
	}
	host, err := b.tidier(run.Record.About.Database)
	if err != nil {
		return b.wait(run, err), nil
	}
	asks(run, host)
	return step.Next(stepCopy).With(taken), nil
}

var errNotKept = errors.New("its backup is not in the repository any more")

// toCopy returns the backup that is to be copied, and the snapshot that the copy is for. It fails for
// good if the backup, or one of the repositories, is no more.
func (b *Backups) toCopy(args backup.CopyArgs) (from backup.Backup, shot backup.Snapshot, err error) {
	for _, repository := range []string{args.Source.Repository, args.Repository} {
		if _, _, known := b.Cache.Raw(state.Repository(repository)); !known {
			return from, shot, step.Final(fmt.Errorf("copy %s: %w: %s", args.From, errNoRepo, repository))
		}
	}
	r, err := state.Load[backup.Backup](b.Cache, state.Backup(args.Source.Database, args.Source.Repository, args.Label))
	if err != nil {
		return from, shot, step.Final(fmt.Errorf("copy %s: %w", args.From, errNotKept))
	}
	s, err := state.Load[backup.Snapshot](b.Cache, args.Snapshot)
	if err != nil {
		return from, shot, step.Final(fmt.Errorf("copy %s: the copy was deleted meanwhile", args.From))
	}
	return r.Value, s.Value, nil
}

// copy has a host copy the backup.
func (b *Backups) copy(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.CopyArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	report, err := b.follow(ctx, run)
	if err != nil {
		return step.Outcome{}, err
	}
	switch report.State {
	case step.Succeeded:
		return step.Next(stepShow), nil
	case step.Lost:
		return b.again(run, report)
	case step.InProgress:
		return b.lookAgain(report), nil
	case step.NotAsked:
	}
	from, shot, err := b.toCopy(args)
	if err != nil {
		return step.Outcome{}, err
	}
	made := backup.CopyOf(from, backup.PartRef{Database: run.Record.About.Database, Repository: args.Repository}, run.Record.ID, 0)
	return b.ask(run, backup.JobCopy, backup.CopyJob{
		Database: made.Database, Repository: args.Repository, Source: args.Source, Backup: from,
		MaxBytes: backup.MostCopied(from, shot.Storage()),
		Note:     backup.CopyNote{Snapshot: asShown(shot, made, time.Now().UTC()), Backup: made},
	})
}

// again follows a job that failed: a host is chosen anew after a pause. What was copied stays, and is
// not copied again.
func (b *Backups) again(run *step.Run, report step.JobReport) (step.Outcome, error) {
	err := fmt.Errorf("host %s could not copy: %s", jobOf(run).host, report.Detail)
	if report.Final {
		return step.Outcome{}, step.Final(err)
	}
	b.failed(run, err)
	return step.Next(stepSite).With(b.endsJob(run)...), nil
}

// asShown is the record of a snapshot whose copy is whole.
func asShown(s backup.Snapshot, made backup.Backup, now time.Time) backup.Snapshot {
	s.State, s.Label, s.Size, s.Stored, s.Reason = backup.Available, made.Label, made.Size, made.Stored, ""
	s.Done = now
	return s
}

// copied is the last step: the copy counts from now on.
func (b *Backups) copied(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.CopyArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	j := jobOf(run)
	report, err := b.reported(ctx, j)
	if err != nil {
		return step.Outcome{}, err
	}
	if report.State != step.Succeeded {
		report.Detail, report.Final = "the host forgot what it had copied: "+report.Detail, false
		return b.again(run, report)
	}
	var done backup.Copied
	if err := json.Unmarshal(report.Result, &done); err != nil || done.Stored < 0 {
		return step.Outcome{}, step.Final(fmt.Errorf("read what the host says of the copy: %.80q", report.Result))
	}
	from, _, err := b.toCopy(args)
	if err != nil {
		return step.Outcome{}, err
	}
	given, err := b.gives(ctx, run, args.Repository, false)
	if err != nil {
		return step.Outcome{}, err
	}
	end := step.End().With(append(given, b.endsJob(run)...)...)
	s, ok, err := b.copyOf(ctx, run, args)
	if err != nil || !ok {
		return end, err // it was deleted: Tidy removes the part
	}
	now := time.Now().UTC()
	made := backup.CopyOf(from, backup.PartRef{Database: run.Record.About.Database, Repository: args.Repository}, run.Record.ID, done.Stored)
	told, err := tellCopy(run, s.Value, args, now, "0060", "0197")
	return end.With(told...).With(
		state.Put(state.Backup(made.Database, made.Repository, made.Label), made),
		state.Swap(s.Key, s.Revision, asShown(s.Value, made, now)),
	), err
}

// copyOf returns the record of the snapshot that an operation copies to. ok is false if it is gone.
func (b *Backups) copyOf(ctx context.Context, run *step.Run, args backup.CopyArgs) (s state.Record[backup.Snapshot], ok bool, err error) {
	s, err = state.Get[backup.Snapshot](ctx, b.Store, args.Snapshot)
	if errors.Is(err, state.ErrNotFound) {
		return s, false, nil
	}
	return s, err == nil && s.Value.Operation == run.Record.ID && s.Value.State == backup.Copying, err
}

// uncopied is the undo of site: a copy that was cancelled is gone, and one that failed says why.
func (b *Backups) uncopied(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.CopyArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	ops, err := b.gives(ctx, run, args.Repository, false)
	if err != nil {
		return step.Outcome{}, err
	}
	s, ok, err := b.copyOf(ctx, run, args)
	switch {
	case err != nil:
		return step.Outcome{}, err
	case !ok:
	case run.Record.Ending == operation.Failed:
		s.Value.State, s.Value.Reason = backup.Failed, run.Record.Reason
		ops = append(ops, state.Swap(s.Key, s.Revision, s.Value))
	default:
		told, err := tellCopy(run, s.Value, args, time.Now().UTC(), "0061", "0190")
		if err != nil {
			return step.Outcome{}, step.Final(err)
		}
		ops = append(append(ops, told...), state.Remove(s.Key, s.Revision))
	}
	return step.End().With(ops...), nil
}

// tellCopy returns the event of a copy from another region, or of one within a region. RDS has none
// for clusters.
func tellCopy(run *step.Run, s backup.Snapshot, args backup.CopyArgs, now time.Time, far, near string) ([]state.Op, error) {
	if s.Cluster != nil {
		return nil, nil
	}
	number := near
	if args.Region != s.Region {
		number = far
	}
	told, err := tell(run, event.Source{Scope: s.Scope, Type: event.Snapshot, Name: s.Name}, number, now, args.From, args.Region)
	return []state.Op{told}, err
}
