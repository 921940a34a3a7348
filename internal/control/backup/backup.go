// Package backup makes backups of databases, and removes what nobody needs of them. It runs in the
// control plane that leads. Take and Final are operations that make a backup, Tidy is one that
// removes, Drill tries one, Copy copies one into another repository, and Download makes one ready to be
// fetched; Keep begins what nobody asks for: the automated backup of each day, a backup that heals
// an archive, and Tidy. docs/design/backup.md says how this works together with the hosts.
//
// Invariants: what is recorded as a backup is whole in its repository. A record goes before its
// files do, and the files of a backup that a record needs stay. A database's part of a repository is
// changed by one operation at a time. An automated backup is begun once for each window, whichever
// control plane leads.
package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	step "howdah/internal/control/operation"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/state"
)

// Config is what backups need. All fields are required, but for Repository and Low.
type Config struct {
	Store *state.Store
	Cache *state.Cache // of state.Root and patroni.Namespace
	Hosts step.Hosts
	// Repository returns what opens the part of a database in a repository. nil: copies that nobody
	// knows are not looked for after the home was restored.
	Repository func(ctx context.Context, name, database string) (member.Repository, error)
	// Low says how little room is left in a repository, so that no automated backup begins there, or
	// "". nil: there is always enough.
	Low func(repository string) string
	Log *slog.Logger
}

// Backups makes and removes backups. Make it with New.
type Backups struct {
	Config
	slots  slots
	pace   pace
	finder finder
	// These belong to Keep's goroutine: when a part was tidied last, and what was told of failures.
	tidied map[string]time.Time
	tried  map[string]time.Time // when a drill was begun last
	told   map[string]string
}

// New returns Backups.
func New(cfg Config) *Backups {
	return &Backups{
		Config: cfg, slots: slots{host: map[string]string{}}, pace: usual,
		finder: finder{running: map[string]bool{}, found: map[string][]foundCopy{}, failed: map[string]error{}},
		tidied: map[string]time.Time{}, tried: map[string]time.Time{}, told: map[string]string{},
	}
}

// Definitions returns the operations, for the runner of operations.
func (b *Backups) Definitions() []*step.Definition {
	return []*step.Definition{
		{Kind: backup.Take, First: stepChoose, Steps: b.taking(b.record)},
		{Kind: backup.Final, First: stepChoose, Steps: b.taking(b.recordFinal)},
		{Kind: backup.Tidy, First: stepFind, Steps: map[string]step.Step{
			stepFind:   {Do: b.find, Undo: b.letGo},
			stepList:   {Do: b.list, Undo: b.endJob},
			stepForget: {Do: b.forget, Undo: b.letGo},
			stepRemove: {Do: b.remove, Undo: b.endJob},
		}},
		{Kind: backup.Drill, First: stepPick, Steps: b.drilling()},
		{Kind: backup.Copy, First: stepSite, Steps: b.copying()},
		{Kind: backup.Download, First: stepPlace, Steps: b.downloading()},
	}
}

// pace is how often operations look at what they wait for.
type pace struct {
	look time.Duration // at a job
	// wait is the pause before something that is waited for is looked at again. The longer it is
	// waited for the longer the pause gets, up to longestWait.
	wait time.Duration
	// pause is before a job that failed is asked for again, or another host. It doubles each time, up
	// to longestPause.
	pause time.Duration
}

var usual = pace{look: 2 * time.Second, wait: 2 * time.Second, pause: 10 * time.Second}

const (
	longestWait  = 30 * time.Second
	longestPause = 10 * time.Minute
)

// What steps note for later ones, or for others to see.
const (
	noteHost     = backup.NoteHost
	noteMember   = "member"
	noteJob      = backup.NoteJob // its name
	noteFull     = "full"         // why the backup is a full one
	noteGap      = "gap"          // the newest moment before a break in the WAL, or "none"
	noteFailures = "failures"
	// The primary whose standby is backed up, where it is served to the standby, and by which job. All
	// are "" if the primary itself is backed up.
	notePrimary = "primary"
	noteServer  = "server"
	noteServing = "serving"
	// noteDirect names a primary of whose standby no backup could be made.
	noteDirect = "direct"
	noteWhy    = "why" // the last one failed
	noteAgain  = "again"
)

// wait has the step called again, and says what for.
func (b *Backups) wait(run *step.Run, why error) step.Outcome {
	nap := min(max(time.Since(run.Record.StepBegan)/10, b.pace.wait), longestWait)
	return step.Nap(nap).Because(why)
}

// job is what a step asked a host for.
type job struct{ host, name string }

func jobOf(run *step.Run) job {
	return job{run.Record.Notes[noteHost], run.Record.Notes[noteJob]}
}

// asks notes a job that a later step has done by a host. Each has a name of its own, so that what a
// host says of an earlier one is not taken for its answer.
func asks(run *step.Run, host string) {
	run.Note(noteHost, host)
	run.Note(noteJob, fmt.Sprintf("%s/%d", run.Record.ID, run.Turn()))
}

// lookAgain has a job looked at again, and says what it waits for.
func (b *Backups) lookAgain(report step.JobReport) step.Outcome {
	nap := step.Nap(b.pace.look)
	if report.Detail == "" {
		return nap
	}
	return nap.Because(errors.New(report.Detail))
}

// follow looks how far the job is that was noted, and notes its progress.
func (b *Backups) follow(ctx context.Context, run *step.Run) (step.JobReport, error) {
	report, err := b.reported(ctx, jobOf(run))
	if err != nil {
		return report, err
	}
	run.Progress(report.Progress.Done, report.Progress.Of, report.Progress.Unit)
	return report, nil
}

// reported returns what a host says of a job.
func (b *Backups) reported(ctx context.Context, j job) (step.JobReport, error) {
	report, err := b.Hosts.Look(ctx, j.host, j.name)
	if err != nil {
		return report, fmt.Errorf("look at %s on %s: %w", j.name, j.host, err)
	}
	return report, nil
}

// ask asks for the job that was noted.
func (b *Backups) ask(run *step.Run, kind string, args any) (step.Outcome, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return step.Outcome{}, step.Final(err)
	}
	j := jobOf(run)
	job := step.Job{Host: j.host, Name: j.name, Turn: run.Turn(), Kind: kind, Args: text}
	return step.Nap(b.pace.look).With(b.Hosts.Ask(job)...), nil
}

// endJob is the undo of a step that asked for a job.
func (b *Backups) endJob(_ context.Context, run *step.Run) (step.Outcome, error) {
	return step.End().With(b.endsJob(run)...), nil
}

// endsJob returns the changes that end a job, and have the host forget it. The one by which a primary
// is served goes with it.
func (b *Backups) endsJob(run *step.Run) []state.Op {
	var ops []state.Op
	if j := jobOf(run); j.name != "" {
		ops = b.Hosts.Forget(j.host, j.name)
	}
	if j := servingOf(run); j.name != "" {
		ops = append(ops, b.Hosts.Forget(j.host, j.name)...)
	}
	return ops
}

var (
	errGone   = errors.New("the database is gone")
	errNoRepo = errors.New("there is no such repository")
)

// fresh waits until everything can be read that was written before the call.
func (b *Backups) fresh(ctx context.Context) error {
	revision, err := b.Store.Commit(ctx, state.Unchanged(state.BackupPartRoot, 0))
	if err != nil {
		return fmt.Errorf("read what is new: %w", err)
	}
	return b.Cache.WaitRevision(ctx, revision)
}

// active returns the operations of some kinds about a database that have not ended. "" stands for all
// databases.
func (b *Backups) active(database string, kinds ...operation.Kind) []*operation.Record {
	var all []*operation.Record
	for _, r := range state.ViewAll[operation.Record](b.Cache, state.OperationRoot) {
		if r.Value.State.Ended() || database != "" && r.Value.About.Database != database {
			continue
		}
		for _, k := range kinds {
			if r.Value.Kind == k.Name {
				all = append(all, r.Value)
			}
		}
	}
	return all
}
