package backup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	step "howdah/internal/control/operation"
	"howdah/internal/model/backup"
	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/state"
	"howdah/internal/view"
)

// The steps of Take and Final.
const (
	stepChoose = "choose"
	stepRun    = "run"
	stepRecord = "record"
)

func (b *Backups) taking(record step.Func) map[string]step.Step {
	return map[string]step.Step{
		stepChoose: {Do: b.choose, Undo: b.unmake},
		stepRun:    {Do: b.run, Undo: b.endRun},
		stepRecord: {Do: record},
	}
}

// errInTheClear says why a backup of encrypted storage is not made.
var errInTheClear = errors.New("it encrypts nothing, and the storage of the database is encrypted: make an encrypted repository the default")

// choose finds where the backup is made, and which kind of one. It is called again after a job failed
// or its host was lost: then another host may have the primary.
func (b *Backups) choose(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.TakeArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	t, err := b.backable(run.Record.About)
	if err != nil {
		return step.Outcome{}, err
	}
	repository, err := state.View[backup.Repository](b.Cache, state.Repository(args.Repository))
	switch {
	case err != nil:
		return step.Outcome{}, step.Final(fmt.Errorf("back up to repository %s: %w", args.Repository, errNoRepo))
	case t.common().StorageKey != "" && !repository.Value.Encrypted():
		return step.Outcome{}, step.Final(fmt.Errorf("back up to repository %s: %w", args.Repository, errInTheClear))
	}
	if out, paused := pausing(run); paused {
		return out, b.tooLate(run, args)
	}
	primary, why := b.place(t, args.Repository)
	if why != nil {
		return b.wait(run, why), b.tooLate(run, args)
	}
	p := b.prefer(run, t, primary, args.Repository)
	taken, why, err := b.take(ctx, run, args.Repository)
	if err != nil {
		return step.Outcome{}, err
	}
	if why == nil && !b.slots.take(b.Cache, p.host, run.Record.ID) {
		why = fmt.Errorf("%d other backups are being made on host %s", perHost, p.host)
	}
	if why != nil {
		return b.wait(run, why), nil
	}
	asks(run, p.host)
	run.Note(noteMember, p.member)
	b.noteKind(run, args, t, primary)
	return step.Next(stepRun).With(taken), nil
}

// pausing reports whether it is too early for another try after a failure.
func pausing(run *step.Run) (step.Outcome, bool) {
	again, err := time.Parse(time.RFC3339Nano, run.Record.Notes[noteAgain])
	// A pause that is longer than one may be comes from another clock.
	if left := time.Until(again); err == nil && left > 0 && left <= longestPause {
		return step.Nap(left).Because(errors.New(run.Record.Notes[noteWhy])), true
	}
	return step.Outcome{}, false
}

// tooLate ends an automated backup that could not be made for a day: the next one is due. What users
// asked for is tried until they cancel it.
func (b *Backups) tooLate(run *step.Run, args backup.TakeArgs) error {
	if !args.Automated || !time.Now().After(run.Record.Deadline) {
		return nil
	}
	why := run.Record.Trouble
	if why == "" {
		why = "nobody knows why"
	}
	return step.Final(fmt.Errorf("no backup could be made within %s: %s", backup.Take.Within, why))
}

// noteKind notes whether the backup is to be a full one, and whether WAL was lost before it. What was
// lost before the first try stays noted: that try may have made the backup which mends it, so that the
// primary's host knows of nothing any more.
func (b *Backups) noteKind(run *step.Run, args backup.TakeArgs, t target, p place) {
	if run.Record.Notes[noteGap] != "" {
		return
	}
	full, gap := "", ""
	id := t.common().ResourceID
	all, d := b.backups(id, args.Repository), b.drillOf(id, args.Repository)
	lost := d.Lost(all)
	switch broken := p.archived.Broken; {
	case broken != "":
		full, lost = "WAL was lost from "+broken+" on", true
	case d.Heal(all) != "":
		full = d.Heal(all)
	case args.Full:
		full = "it was asked for"
	case backup.NeedsFull(all, t.common().Major, time.Now()):
		full = "there is none to build upon, or it is too old"
	}
	if lost {
		gap = "none"
		if at := d.Latest(all, p.archived.Restorable.At); !at.IsZero() {
			gap = at.UTC().Format(time.RFC3339Nano)
		}
	}
	run.Note(noteFull, full)
	run.Note(noteGap, gap)
}

// drillOf returns the newest drill of a database, if it was of this repository; zero: there is none.
func (b *Backups) drillOf(id, repository string) backup.DrillRecord {
	d, err := state.View[backup.DrillRecord](b.Cache, state.Drill(id))
	if err != nil || d.Value.Repository != repository {
		return backup.DrillRecord{}
	}
	return *d.Value
}

// backups returns the backups of a database in a repository.
func (b *Backups) backups(database, repository string) []backup.Backup {
	var all []backup.Backup
	for _, r := range state.ViewAll[backup.Backup](b.Cache, state.BackupPrefix(database)) {
		if r.Value.Repository == repository {
			all = append(all, *r.Value)
		}
	}
	return all
}

// run has the host of a member make the backup. If that is a standby, the host of the primary serves
// the primary to it meanwhile.
func (b *Backups) run(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.TakeArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	report, err := b.follow(ctx, run)
	if err != nil {
		return step.Outcome{}, err
	}
	switch report.State {
	case step.Succeeded:
		return step.Next(stepRecord), nil
	case step.Lost:
		return b.rechoose(ctx, run, args, report)
	case step.InProgress, step.NotAsked:
	}
	served, out, lost, err := b.served(ctx, run)
	switch {
	case err != nil:
		return step.Outcome{}, err
	case lost != "":
		return b.rechoose(ctx, run, args, step.JobReport{Detail: lost})
	case report.State == step.InProgress:
		_, err := b.backable(run.Record.About)
		return b.lookAgain(report), err
	case served == nil && servingOf(run).name != "":
		return out, nil
	}
	return b.ask(run, backup.JobBackup, backup.BackupJob{
		Database: run.Record.About.Database, Member: run.Record.Notes[noteMember], Repository: args.Repository,
		Full: run.Record.Notes[noteFull] != "", Operation: run.Record.ID, Primary: served,
	})
}

// rechoose follows a job that failed: the part is given back meanwhile, and another host is chosen
// after a pause, or the same one. After the backup of a standby that need not be later.
func (b *Backups) rechoose(ctx context.Context, run *step.Run, args backup.TakeArgs, report step.JobReport) (step.Outcome, error) {
	j := jobOf(run)
	err := fmt.Errorf("host %s could not make the backup: %s", j.host, report.Detail)
	if report.Final && servingOf(run).name == "" {
		return step.Outcome{}, step.Final(err)
	}
	given, lost := b.gives(ctx, run, args.Repository, false)
	if lost != nil {
		return step.Outcome{}, lost
	}
	b.failed(run, err)
	b.direct(run)
	b.slots.give(run.Record.ID)
	return step.Next(stepChoose).With(append(given, b.endsJob(run)...)...), nil
}

// failed notes a failure, and when the next try may be.
func (b *Backups) failed(run *step.Run, err error) {
	failures, _ := strconv.Atoi(run.Record.Notes[noteFailures]) // none is zero
	pause := longestPause
	if failures < 6 {
		pause = min(b.pace.pause<<failures, longestPause)
	}
	run.Note(noteFailures, strconv.Itoa(failures+1))
	run.Note(noteWhy, operation.Reason(err.Error()))
	run.Note(noteAgain, time.Now().UTC().Add(pause).Format(time.RFC3339Nano))
}

// endRun is the undo of run. A backup that is whole already is removed by the next Tidy.
func (b *Backups) endRun(ctx context.Context, run *step.Run) (step.Outcome, error) {
	b.slots.give(run.Record.ID)
	return b.endJob(ctx, run)
}

// record is the last step: the backup counts from now on.
func (b *Backups) record(ctx context.Context, run *step.Run) (step.Outcome, error) {
	out, _, err := b.recorded(ctx, run)
	return out, err
}

// recorded returns the end of an operation with all changes that make its backup count. made is zero
// if the backup has to be made again, or has to be looked for by another host: a primary that was cut
// off, and knows nothing of it, may have ended a backup after the branch on which its successor goes on.
func (b *Backups) recorded(ctx context.Context, run *step.Run) (out step.Outcome, made backup.Backup, err error) {
	var args backup.TakeArgs
	if err := run.Args(&args); err != nil {
		return out, made, err
	}
	j := jobOf(run)
	report, err := b.reported(ctx, j)
	if err != nil {
		return out, made, err
	}
	if err := b.fresh(ctx); err != nil {
		return out, made, err
	}
	switch leader := view.Leader(b.Cache, run.Record.About.Database); {
	case report.State != step.Succeeded:
		report.Detail = "the host forgot what it had made: " + report.Detail
	case leader != "" && leader != primaryOf(run):
		report = step.JobReport{Detail: leader + " was promoted meanwhile, and has to find out whether the backup is on its branch"}
	default:
		return b.counted(ctx, run, args, report)
	}
	report.Final = false
	out, err = b.rechoose(ctx, run, args, report)
	return out, made, err
}

// primaryOf is the name of the primary that began and ended a backup.
func primaryOf(run *step.Run) string {
	return cmp.Or(run.Record.Notes[notePrimary], run.Record.Notes[noteMember])
}

// counted returns the end of an operation whose backup is made.
func (b *Backups) counted(ctx context.Context, run *step.Run, args backup.TakeArgs, report step.JobReport) (out step.Outcome, made backup.Backup, err error) {
	made, err = b.made(run, args, report.Result)
	if err != nil {
		return out, backup.Backup{}, step.Final(err)
	}
	now := time.Now().UTC()
	ops := []state.Op{state.Put(state.Backup(made.Database, made.Repository, made.Label), made)}
	for _, more := range []func() ([]state.Op, error){
		func() ([]state.Op, error) { return b.gives(ctx, run, args.Repository, false) },
		func() ([]state.Op, error) { return b.shows(ctx, run, args, made, now) },
		func() ([]state.Op, error) { return b.keeps(ctx, run, args) },
	} {
		some, err := more()
		if err != nil {
			return out, backup.Backup{}, err
		}
		ops = append(ops, some...)
	}
	b.slots.give(run.Record.ID)
	return step.End().With(append(ops, b.endsJob(run)...)...), made, nil
}

// labelForm is what engines call backups. A label is a part of a key, and is shown on terminals.
var labelForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// plausible refuses a backup that no engine makes: whoever owns the user of a database writes what
// the engine lists there.
func plausible(made backup.Backup) error {
	for _, label := range append([]string{made.Label}, made.Needs...) {
		if !labelForm.MatchString(label) {
			return fmt.Errorf("the host made a backup with a label that none has: %.80q", label)
		}
	}
	if made.Size < 0 || made.Stored < 0 {
		return fmt.Errorf("the host made the backup %s of %d bytes, with %d in the repository", made.Label, made.Size, made.Stored)
	}
	return nil
}

// made returns the backup that a host says it made.
func (b *Backups) made(run *step.Run, args backup.TakeArgs, result json.RawMessage) (backup.Backup, error) {
	var made backup.Backup
	if err := json.Unmarshal(result, &made); err != nil {
		return made, fmt.Errorf("read what the host says of the backup: %w", err)
	}
	about := run.Record.About
	if made.Database != about.Database || made.Repository != args.Repository || made.Operation != run.Record.ID || made.Stop.IsZero() {
		return made, fmt.Errorf("the host made another backup than it was asked for: %.80q of %.80q by %.80q", made.Label, made.Database, made.Operation)
	}
	if err := plausible(made); err != nil {
		return made, err
	}
	made.Automated, made.Damaged, made.Proved = args.Automated, operation.Reason(made.Damaged), time.Time{}
	made.Member, made.Standby = run.Record.Notes[noteMember], servingOf(run).name != ""
	if gap := run.Record.Notes[noteGap]; gap != "" {
		made.Heals = true
		made.Gap, _ = time.Parse(time.RFC3339Nano, gap) // "none": zero
		if t, ok := b.target(about); ok && t.common().BackupRetention > 0 {
			made.Automated = true // the moments after it are promised because of it
		}
	}
	return made, nil
}

// shows returns the changes that make a snapshot available, and its events.
func (b *Backups) shows(ctx context.Context, run *step.Run, args backup.TakeArgs, made backup.Backup, now time.Time) ([]state.Op, error) {
	var ops []state.Op
	if run.Record.About.Type == event.Instance {
		told, err := tell(run, run.Record.About.Source(), "0002", now)
		if err != nil {
			return nil, err
		}
		ops = append(ops, told)
	}
	s, ok, err := b.snapshot(ctx, run, args)
	if err != nil || !ok {
		return ops, err
	}
	s.Value.State, s.Value.Label, s.Value.Taken, s.Value.Done = backup.Available, made.Label, made.Stop, now
	s.Value.Size, s.Value.Stored, s.Value.Reason = made.Size, made.Stored, ""
	src := event.Source{Scope: s.Value.Scope, Type: event.Snapshot, Name: s.Value.Name}
	number := "0042"
	switch {
	case s.Value.Cluster != nil && s.Value.Automated:
		src.Type, number = event.ClusterSnapshot, "0169"
	case s.Value.Cluster != nil:
		src.Type, number = event.ClusterSnapshot, "0075"
	case s.Value.Automated:
		number = "0091"
	}
	told, err := tell(run, src, number, now)
	return append(ops, told, state.Swap(s.Key, s.Revision, s.Value)), err
}

// snapshot returns the record of the snapshot that an operation makes. ok is false if it is gone, or
// if the operation makes none.
func (b *Backups) snapshot(ctx context.Context, run *step.Run, args backup.TakeArgs) (s state.Record[backup.Snapshot], ok bool, err error) {
	if args.Snapshot == "" {
		return s, false, nil
	}
	s, err = state.Get[backup.Snapshot](ctx, b.Store, args.Snapshot)
	if errors.Is(err, state.ErrNotFound) {
		return s, false, nil
	}
	return s, err == nil && s.Value.Operation == run.Record.ID && s.Value.State == backup.Creating, err
}

// keeps returns the changes that note that the automated backup of a window was made.
func (b *Backups) keeps(ctx context.Context, run *step.Run, args backup.TakeArgs) ([]state.Op, error) {
	if args.Window.IsZero() {
		return nil, nil
	}
	a, err := state.Get[backup.Automated](ctx, b.Store, state.Automated(run.Record.About.Database))
	if errors.Is(err, state.ErrNotFound) {
		return nil, nil // automated backups were given up meanwhile
	}
	if err != nil {
		return nil, err
	}
	a.Value.Made = args.Window
	return []state.Op{state.Swap(a.Key, a.Revision, a.Value)}, nil
}

// unmake is the undo of choose: nothing is left of a snapshot that was cancelled. One that failed says
// why, unless it was an automated one: another one is tried.
func (b *Backups) unmake(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.TakeArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	b.slots.give(run.Record.ID)
	ops, err := b.gives(ctx, run, args.Repository, false)
	if err != nil {
		return step.Outcome{}, err
	}
	s, ok, err := b.snapshot(ctx, run, args)
	if err != nil {
		return step.Outcome{}, err
	}
	failed := run.Record.Ending == operation.Failed
	switch {
	case ok && failed && !s.Value.Automated:
		s.Value.State, s.Value.Reason = backup.Failed, run.Record.Reason
		ops = append(ops, state.Swap(s.Key, s.Revision, s.Value))
	case ok:
		ops = append(ops, state.Remove(s.Key, s.Revision))
	}
	if t, there := b.target(run.Record.About); failed && there && !t.common().Deleting {
		told, err := tell(run, run.Record.About.Source(), "H014", time.Now().UTC(), run.Record.Reason, run.Record.ID)
		if err != nil {
			return step.Outcome{}, step.Final(err)
		}
		ops = append(ops, told)
	}
	if run.Record.Kind == backup.Final.Name {
		ops = append(ops, b.stays(run.Record.About)...)
	}
	return step.End().With(ops...), nil
}

// tell returns the write of an event that an operation causes.
func tell(run *step.Run, src event.Source, number string, now time.Time, args ...any) (state.Op, error) {
	e, err := event.Make(src, number, now, args...)
	if err != nil {
		return state.Op{}, fmt.Errorf("raise event: %w", err)
	}
	return state.Put(state.Event(src.Account, src.Region, e.Key(run.Record.ID)), e), nil
}
