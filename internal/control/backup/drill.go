package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	step "howdah/internal/control/operation"
	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/state"
	"howdah/internal/view"
)

// The steps of Drill. pick chooses the backup and a host, try has the host restore it, and conclude
// records what was found.
const (
	stepPick     = "pick"
	stepTry      = "try"
	stepConclude = "conclude"
)

// What a drill notes.
const (
	notePromised = "promised" // LatestRestorableTime when it began
	noteBegan    = "began"
	noteWAL      = "wal"     // replayed as far as there is some
	noteRefused  = "refused" // the host that could not make it last
)

func (b *Backups) drilling() map[string]step.Step {
	return map[string]step.Step{
		stepPick:     {Do: b.pick},
		stepTry:      {Do: b.try, Undo: b.endJob},
		stepConclude: {Do: b.conclude},
	}
}

var errNoBackup = errors.New("there is no backup that could be restored")

// pick chooses the newest backup, and a host with room for it.
func (b *Backups) pick(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.DrillArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	if out, paused := pausing(run); paused {
		return out, nil
	}
	if err := b.fresh(ctx); err != nil {
		return step.Outcome{}, err
	}
	id := run.Record.About.Database
	newest, ok := backup.Newest(b.backups(id, args.Repository))
	if !ok {
		return step.Outcome{}, step.Final(fmt.Errorf("try the backups of %s in repository %s: %w", run.Record.About.Name, args.Repository, errNoBackup))
	}
	host, why := b.scratchHost(scratch{
		database: id, of: newest, times: spareRoom, encrypted: b.encrypted(run.Record.About), refused: run.Record.Notes[noteRefused],
	})
	if why != nil {
		return b.wait(run, why), nil
	}
	run.Note(NoteLabel, newest.Label)
	// Also what an earlier drill found to be lost is looked at again.
	run.Note(noteWAL, strconv.FormatBool(!newest.Alone && !b.archivedUntil(id).At.Before(newest.Stop)))
	run.Note(notePromised, stamp(b.restorable(id).At))
	run.Note(noteBegan, stamp(time.Now()))
	asks(run, host)
	// Tidy took the record away before it looked who uses the backup, or it sees the note.
	key := state.Backup(id, args.Repository, newest.Label)
	_, revision, known := b.Cache.Raw(key)
	if !known {
		return step.Nap(b.pace.look), nil
	}
	return step.Next(stepTry).With(state.Unchanged(key, revision)), nil
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// encrypted reports whether what is restored of a database may be on no disk in the clear. Of one that
// is gone nobody knows.
func (b *Backups) encrypted(about operation.About) bool {
	t, ok := b.target(about)
	return !ok || t.common().StorageKey != ""
}

// spareRoom is how many times the size of a database has to be free on the host of its drill: its
// files, its WAL, and as much again for databases that live there.
const spareRoom = 2

// scratch is a backup that is to be restored to a place that is thrown away.
type scratch struct {
	database  string
	of        backup.Backup
	times     int64  // of its size that have to be free
	encrypted bool   // nothing of it may be on a disk in the clear
	refused   string // the host that could not do it last
}

func (s scratch) room() int64 { return s.times * s.of.Size }

// scratchHost returns the host that a restore disturbs least: one that does not have the primary, with
// the most room. It is the one that refused only if no other one can.
func (b *Backups) scratchHost(s scratch) (string, error) {
	primary := b.primaryHost(s.database)
	busy := map[string]bool{}
	for _, o := range b.active("", backup.Drill, backup.Download) {
		if (o.Step == stepTry || o.Step == stepMake) && o.About.Database != s.database {
			busy[o.Notes[noteHost]] = true
		}
	}
	var best, roomiest *member.Host
	why := errNoHost
	// behind reports whether a host is a worse choice than another one.
	behind := func(h, than *member.Host) bool {
		if (h.Name == s.refused) != (than.Name == s.refused) {
			return h.Name == s.refused
		}
		if (h.Name == primary) != (than.Name == primary) {
			return h.Name == primary
		}
		return h.DiskFree <= than.DiskFree
	}
	for _, r := range state.ViewAll[member.Host](b.Cache, state.HostRoot) {
		h := r.Value
		_, _, drained := b.Cache.Raw(state.Drain(h.Name))
		switch {
		case !b.alive(h.Name) || drained || h.Majors[s.of.Major] == "":
			continue
		case s.encrypted && h.WhyPlain != "":
			why = fmt.Errorf("no host can encrypt what is restored, as that of an encrypted database has to be (%s cannot: %s)", h.Name, h.WhyPlain)
			continue
		case h.DiskFree < s.room():
			if roomiest == nil || h.DiskFree > roomiest.DiskFree {
				roomiest = h
			}
			why = fmt.Errorf("no host has %d MiB free, %s the size of the database: %s, which has most, has %d MiB",
				s.room()>>20, timesText[s.times], roomiest.Name, roomiest.DiskFree>>20)
			continue
		case busy[h.Name]:
			why = errors.New("other backups are being restored for a while")
			continue
		}
		if best == nil || !behind(h, best) {
			best = h
		}
	}
	if best == nil {
		return "", why
	}
	return best.Name, nil
}

var timesText = map[int64]string{2: "twice", 3: "three times"}

// try has the host restore the backup and look at it.
func (b *Backups) try(ctx context.Context, run *step.Run) (step.Outcome, error) {
	report, err := b.follow(ctx, run)
	if err != nil {
		return step.Outcome{}, err
	}
	switch report.State {
	case step.InProgress:
		return step.Nap(b.pace.look), nil
	case step.Succeeded:
		return step.Next(stepConclude), nil
	case step.Lost:
		err := fmt.Errorf("host %s could not try the backup: %s", jobOf(run).host, report.Detail)
		if report.Final {
			return step.Outcome{}, step.Final(err)
		}
		b.failed(run, err)
		run.Note(noteRefused, jobOf(run).host)
		return step.Next(stepPick).With(b.endsJob(run)...), nil
	case step.NotAsked:
	}
	return b.askDrill(run)
}

func (b *Backups) askDrill(run *step.Run) (step.Outcome, error) {
	var args backup.DrillArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	label := run.Record.Notes[NoteLabel]
	r, err := state.View[backup.Backup](b.Cache, state.Backup(run.Record.About.Database, args.Repository, label))
	if err != nil {
		return step.Next(stepPick), nil //nolint:nilerr // it is gone: another one is the newest
	}
	job := backup.DrillJob{
		Database: run.Record.About.Database, Repository: args.Repository, Label: label, Major: r.Value.Major,
		Newest: run.Record.Notes[noteWAL] == "true", Encrypted: b.encrypted(run.Record.About), Room: spareRoom * r.Value.Size,
	}
	if t, ok := b.target(run.Record.About); ok {
		l := b.limitsOf(t)
		job.CPUs, job.Memory, job.IOPS = l.CPUs, l.MemoryBytes, l.IOPS
	}
	return b.ask(run, backup.JobDrill, job)
}

// limitsOf returns what the primary of a database may use; zero: nobody knows.
func (b *Backups) limitsOf(t target) member.Limits {
	id := t.common().ResourceID
	layout, err := state.View[plan.Layout](b.Cache, state.Layout(id))
	if err != nil {
		return member.Limits{}
	}
	leader := view.Leader(b.Cache, id)
	for _, m := range layout.Value.Members {
		told, known := view.LastAssigned(b.Cache, m.Host, member.ID(id, m.Name))
		if m.Name == leader && known {
			return told.Value.Limits
		}
	}
	return member.Limits{}
}

// conclude records what the drill found, and tells of it.
func (b *Backups) conclude(ctx context.Context, run *step.Run) (step.Outcome, error) {
	j := jobOf(run)
	report, err := b.reported(ctx, j)
	if err != nil {
		return step.Outcome{}, err
	}
	if report.State != step.Succeeded {
		return step.Next(stepPick).With(b.endsJob(run)...), nil
	}
	d, err := b.found(run, report.Result)
	if err != nil {
		return step.Outcome{}, step.Final(err)
	}
	ops := []state.Op{state.Put(state.Drill(d.Database), d)}
	marked, err := b.marks(ctx, d)
	if err != nil {
		return step.Outcome{}, err
	}
	number, more := "H015", []any{d.RTO().Round(time.Second).String(), lost(d)}
	if d.Failed != "" {
		number, more = "H016", []any{d.Failed, run.Record.About.Name}
	}
	told, err := tell(run, run.Record.About.Source(), number, d.Ended, more...)
	if err != nil {
		return step.Outcome{}, step.Final(err)
	}
	return step.End().With(append(append(ops, told), append(marked, b.endsJob(run)...)...)...), nil
}

// lost says in words how much would have been lost.
func lost(d backup.DrillRecord) string {
	rpo, known := d.RPO()
	if !known {
		return "nobody knows how much"
	}
	return rpo.Round(time.Second).String()
}

// found makes the record of a drill.
func (b *Backups) found(run *step.Run, result json.RawMessage) (backup.DrillRecord, error) {
	var args backup.DrillArgs
	if err := run.Args(&args); err != nil {
		return backup.DrillRecord{}, err
	}
	d := backup.DrillRecord{
		Database: run.Record.About.Database, Repository: args.Repository, Operation: run.Record.ID, Host: jobOf(run).host, Ended: time.Now().UTC(),
	}
	if err := json.Unmarshal(result, &d.Drilled); err != nil {
		return d, fmt.Errorf("read what the host says of the drill: %w", err)
	}
	if d.Label != run.Record.Notes[NoteLabel] {
		return d, fmt.Errorf("the host tried the backup %q, and not the one that it was asked for", d.Label)
	}
	if !walForm.MatchString(d.LostWAL) || slices.ContainsFunc(d.Backups, func(l string) bool { return !labelForm.MatchString(l) }) {
		return d, fmt.Errorf("the host found that %.80q and the backups %.400q are lost, and there are none of these names", d.LostWAL, d.Backups)
	}
	d.Began, _ = time.Parse(time.RFC3339Nano, run.Record.Notes[noteBegan])
	d.Promised, _ = time.Parse(time.RFC3339Nano, run.Record.Notes[notePromised]) // "": nothing was promised
	promised := d.Promised
	if run.Record.Notes[noteWAL] != "true" {
		promised = time.Time{}
	}
	if d.Failed = operation.Reason(d.Judge(promised)); d.Failed == "" {
		d.Worked = d.Ended
	} else if before, err := state.View[backup.DrillRecord](b.Cache, state.Drill(d.Database)); err == nil {
		d.Worked = before.Value.Worked
	}
	return d, nil
}

// walForm matches what may be the name of a file of WAL, or of a history.
var walForm = regexp.MustCompile(`^(?:[0-9A-F]{24}|[0-9A-F]{8}\.history)?$`)

// marks returns the changes of backups' records: the one that was tried is proved, or it is damaged, or
// those are that it needs. What a later drill finds whole may still be damaged: it replays more WAL,
// which may have the pages that are damaged in the backup. So it only clears what another drill could
// not restore at all.
func (b *Backups) marks(ctx context.Context, d backup.DrillRecord) ([]state.Op, error) {
	last := b.drillOf(d.Database, d.Repository)
	cleared := last.Label == d.Label && last.Unrestorable != "" && d.Failed == ""
	labels := append([]string{d.Label}, d.Backups...)
	if cleared {
		labels = append(labels, last.Backups...)
	}
	slices.Sort(labels)
	var ops []state.Op
	for _, label := range slices.Compact(labels) {
		r, err := state.Get[backup.Backup](ctx, b.Store, state.Backup(d.Database, d.Repository, label))
		if errors.Is(err, state.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if cleared {
			r.Value.Damaged, r.Value.Located = "", false
		}
		switch {
		case d.Failed == "" && label == d.Label:
			r.Value.Proved = d.Ended
		case d.Failed != "" && d.Spoils(r.Value):
			r.Value.Damaged, r.Value.Located = d.Failed, d.LostWAL != "" || len(d.Backups) > 0
		}
		ops = append(ops, state.Swap(r.Key, r.Revision, r.Value))
	}
	return ops, nil
}

// firstDrill is how long after its first backup the backups of a database are tried.
const firstDrill = time.Hour

// drill begins a drill of a database if one is due.
func (k *keeper) drill(ctx context.Context, t target) error {
	c := t.common()
	a, has := k.automated[c.ResourceID]
	if !has || c.Deleting || k.drills >= mostDrills || k.drilled[c.ResourceID] {
		return nil
	}
	all := k.backups(c.ResourceID, a.Value.Repository)
	newest, ok := backup.Newest(all)
	if !ok {
		return nil
	}
	due := slices.MinFunc(all, func(x, y backup.Backup) int { return x.Stop.Compare(y.Stop) }).Stop.Add(firstDrill)
	again := k.tried[c.ResourceID].Add(backup.Day)
	last, err := state.View[backup.DrillRecord](k.Cache, state.Drill(c.ResourceID))
	if err == nil {
		// One that failed is tried again when there is another backup, and at once if that one heals what
		// is damaged in the repository.
		if due = last.Value.Began.Add(backup.DrillEvery); last.Value.Failed != "" && newest.Label != last.Value.Label {
			due = newest.Stop.Add(firstDrill)
			if last.Value.Unrestorable != "" && newest.Kind == backup.Full && k.tried[c.ResourceID].Before(newest.Stop) {
				due, again = newest.Stop, newest.Stop
			}
		}
	}
	if k.now.Before(due) || k.now.Before(again) {
		return nil
	}
	id := "drill-" + strings.ToLower(c.ResourceID) + "-" + strconv.FormatInt(k.now.Unix(), 36)
	r, err := operation.New(id, backup.Drill, t.about(), backup.DrillArgs{Repository: a.Value.Repository}, k.now)
	if err != nil {
		return err
	}
	begun, err := view.Begin(k.Cache, r)
	if errors.Is(err, operation.ErrTooMany) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := k.commit(ctx, begun); err != nil {
		return err
	}
	k.tried[c.ResourceID] = k.now
	k.drills++
	return nil
}

// heals reports whether a backup was made because of damage in the repository.
func heals(b backup.Backup) bool { return strings.HasPrefix(b.Operation, healing) }

// healing begins the ids of the operations that make such backups.
const healing = "heal-"

// mostDrills is how many drills the keeper has under way.
const mostDrills = 2
