package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	step "howdah/internal/control/operation"
	"howdah/internal/model/backup"
	"howdah/internal/model/event"
	"howdah/internal/model/regain"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// restored returns the last restoration of the home. Its ID is "" if there was none.
func (b *Backups) restored() regain.Home {
	r, err := state.View[regain.Home](b.Cache, state.Restored())
	if err != nil {
		return regain.Home{}
	}
	return *r.Value
}

// find takes the part. If the home was restored since the part was tidied last, there may be backups
// that were made after the home's own backup. They have no record, and would be removed. So a host is
// asked for them first, and they get one.
func (b *Backups) find(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.TidyArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	if out, paused := pausing(run); paused {
		return out, nil
	}
	database := run.Record.About.Database
	taken, why, err := b.take(ctx, run, args.Repository)
	if err != nil {
		return step.Outcome{}, err
	}
	if why != nil {
		return b.wait(run, why), nil
	}
	if err := b.fresh(ctx); err != nil {
		return step.Outcome{}, err
	}
	if backup.IsCopy(database) || !b.unlisted(database, args.Repository) {
		return step.Next(stepForget).With(taken), nil
	}
	host, err := b.tidier(database)
	if err != nil {
		return b.wait(run, err), nil
	}
	asks(run, host)
	return step.Next(stepList).With(taken), nil
}

// listedOf returns the restoration since which backups of a part were looked for.
func (b *Backups) listedOf(database, repository string) string {
	r, err := state.View[backup.Part](b.Cache, state.BackupPart(database, repository))
	if err != nil {
		return ""
	}
	return r.Value.Listed
}

// list has a host list the backups that are not known, and records them.
func (b *Backups) list(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.TidyArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	j := jobOf(run)
	report, err := b.reported(ctx, j)
	if err != nil {
		return step.Outcome{}, err
	}
	switch report.State {
	case step.InProgress:
		return b.lookAgain(report), nil
	case step.Succeeded:
		return b.listed(ctx, run, args, report.Result)
	case step.Lost:
		given, err := b.gives(ctx, run, args.Repository, false)
		b.failed(run, fmt.Errorf("host %s could not list the backups: %s", j.host, report.Detail))
		return step.Next(stepFind).With(append(given, b.endsJob(run)...)...), err
	case step.NotAsked:
	}
	if err := b.fresh(ctx); err != nil {
		return step.Outcome{}, err
	}
	job := backup.ListJob{Database: run.Record.About.Database, Repository: args.Repository}
	for _, known := range b.backups(job.Database, job.Repository) {
		job.Known = append(job.Known, known.Label)
	}
	return b.ask(run, backup.JobList, job)
}

// mostFound is how many backups are recorded in one transaction.
const mostFound = 20

// listed records what was found. What was made since the home was restored is known, or was cancelled.
func (b *Backups) listed(ctx context.Context, run *step.Run, args backup.TidyArgs, result json.RawMessage) (step.Outcome, error) {
	var listed backup.Listed
	if err := json.Unmarshal(result, &listed); err != nil {
		return step.Outcome{}, step.Final(fmt.Errorf("read what the host says of the repository: %w", err))
	}
	if err := b.fresh(ctx); err != nil {
		return step.Outcome{}, err
	}
	home, now, database := b.restored(), time.Now().UTC(), run.Record.About.Database
	part, err := state.Get[backup.Part](ctx, b.Store, state.BackupPart(database, args.Repository))
	if err != nil {
		return step.Outcome{}, err
	}
	var ops []state.Op
	sight := b.look()
	if len(listed.Backups) > mostFound {
		listed.Backups, listed.More = listed.Backups[:mostFound], true
	}
	given := map[string]bool{} // keys
	for _, found := range slices.Backward(listed.Backups) {
		if found.Database != database || found.Repository != args.Repository || found.Label == "" || strings.Contains(found.Label, "/") {
			return step.Outcome{}, step.Final(fmt.Errorf("the host lists %q of %s, and was asked for those of %s", found.Label, found.Database, database))
		}
		// The clock of the host may differ from that of whoever restored the home.
		found.Found = now
		if found.Stop.Before(home.At.Add(backup.Day)) || listed.More {
			ops = append(ops, sight.adopt(run, found, now, given)...)
		}
	}
	next := stepFind
	if !listed.More {
		part.Value.Listed, next = home.ID, stepForget
	}
	ops = append(ops, state.Swap(part.Key, part.Revision, part.Value))
	return step.Next(next).With(append(ops, b.endsJob(run)...)...), nil
}

// unlisted reports whether there may be backups in a part that nobody knows since the home was restored.
// Copies are looked for in all of a repository at once: see findCopies.
func (b *Backups) unlisted(database, repository string) bool {
	home := b.restored()
	if backup.IsCopy(database) {
		if database = allCopies; b.Repository == nil {
			return false
		}
	}
	return home.ID != "" && b.listedOf(database, repository) != home.ID
}

// automatic reports whether an operation with this id made a backup that belongs to automated ones.
func automatic(operation string) bool {
	return slices.ContainsFunc([]string{"auto-", healing, "backup-"}, func(begin string) bool { return strings.HasPrefix(operation, begin) })
}

// adopt returns the changes that record a backup which was found. If users asked for it, it has a
// snapshot again, which they can restore and delete.
func (s sight) adopt(run *step.Run, found backup.Backup, now time.Time, given map[string]bool) []state.Op {
	found.Automated = automatic(found.Operation)
	key := state.Backup(found.Database, found.Repository, found.Label)
	if found.Automated {
		return []state.Op{state.Swap(key, 0, found)}
	}
	shot, revision, ok := s.snapshotOf(run, found, given)
	if !ok {
		return []state.Op{state.Swap(key, 0, found)}
	}
	found.Found = time.Time{}
	given[snapshotKey(shot)] = true
	shot.State, shot.Label, shot.Taken, shot.Done, shot.Size, shot.Stored, shot.Reason = backup.Available, found.Label, found.Stop, now, found.Size, found.Stored, ""
	return []state.Op{state.Swap(key, 0, found), state.Swap(snapshotKey(shot), revision, shot)}
}

// snapshotOf returns the record of the snapshot that an operation made: the one that is there, or a
// new one, of the database as it is known here. ok is false if nobody knows what it was.
func (s sight) snapshotOf(run *step.Run, found backup.Backup, given map[string]bool) (shot backup.Snapshot, revision int64, ok bool) {
	for _, r := range s.snapshots[found.Database] {
		if r.Value.Operation == found.Operation && r.Value.Label == "" && !given[r.Key] {
			return *r.Value, r.Revision, true
		}
	}
	name, asked := strings.CutPrefix(found.Operation, "snap-")
	cut := strings.LastIndexByte(name, '-')
	if !asked || cut < 1 {
		return shot, 0, false
	}
	shot = backup.Snapshot{
		Scope: run.Record.About.Scope, Name: name[:cut], Database: found.Database, Repository: found.Repository, Operation: found.Operation, Asked: found.Start,
		Tags: []spec.Tag{},
	}
	switch t, lives := s.targets[found.Database]; {
	case lives:
		shot.Keep(t.instance, t.cluster)
	case s.automated[found.Database].Value != nil:
		a := s.automated[found.Database].Value
		shot.Instance, shot.Cluster = a.Instance, a.Cluster
	case len(s.snapshots[found.Database]) > 0:
		other := s.snapshots[found.Database][0].Value
		shot.Instance, shot.Cluster = other.Instance, other.Cluster
	}
	if shot.Instance == nil && shot.Cluster == nil || (shot.Cluster != nil) != (run.Record.About.Type == event.Cluster) {
		return shot, 0, false
	}
	shot.KMSKey = shot.Common().StorageKey
	if _, _, taken := s.cache.Raw(snapshotKey(shot)); taken || given[snapshotKey(shot)] {
		shot.Name = name // with what is random in it
	}
	return shot, 0, true
}
