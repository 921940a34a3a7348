package backup

import (
	"context"
	"encoding/json"
	"fmt"

	step "howdah/internal/control/operation"
	"howdah/internal/model/backup"
	"howdah/internal/state"
)

// The steps of Download, of which the last is backup.StepServe. place chooses a host, make has it
// restore the backup, and then it is waited until somebody has fetched what the host made.
const (
	stepPlace = "place"
	stepMake  = "make"
)

func (b *Backups) downloading() map[string]step.Step {
	return map[string]step.Step{
		stepPlace:        {Do: b.placeDownload},
		stepMake:         {Do: b.makeDownload, Undo: b.endJob},
		backup.StepServe: {Do: b.serveDownload, Undo: b.endJob},
	}
}

// placeDownload chooses a host with room for the backup.
func (b *Backups) placeDownload(ctx context.Context, run *step.Run) (step.Outcome, error) {
	var args backup.DownloadArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	if out, paused := pausing(run); paused {
		return out, nil
	}
	if err := b.fresh(ctx); err != nil {
		return step.Outcome{}, err
	}
	key := state.Backup(run.Record.About.Database, args.Repository, args.Label)
	r, err := state.Load[backup.Backup](b.Cache, key)
	if err != nil {
		return step.Outcome{}, step.Final(fmt.Errorf("download %s: %w", args.Snapshot, errNotKept))
	}
	host, why := b.scratchHost(scratch{
		database: run.Record.About.Database, of: r.Value, times: args.DownloadRoom(), encrypted: args.Encrypted, refused: run.Record.Notes[noteRefused],
	})
	if why != nil {
		return b.wait(run, why), nil
	}
	run.Note(NoteLabel, args.Label)
	asks(run, host)
	// Tidy took the record away before it looked who uses the backup, or it sees the note.
	return step.Next(stepMake).With(state.Unchanged(r.Key, r.Revision)), nil
}

// makeDownload has the host make ready what is asked for.
func (b *Backups) makeDownload(ctx context.Context, run *step.Run) (step.Outcome, error) {
	report, err := b.follow(ctx, run)
	if err != nil {
		return step.Outcome{}, err
	}
	switch report.State {
	case step.InProgress:
		if isReady(report) {
			return step.Next(backup.StepServe), nil
		}
		return b.lookAgain(report), nil
	case step.Succeeded:
		return step.End().With(b.endsJob(run)...), nil
	case step.Lost:
		return b.placeAgain(run, report)
	case step.NotAsked:
	}
	return b.askDownload(run)
}

// serveDownload waits until somebody has fetched what the host made ready.
func (b *Backups) serveDownload(ctx context.Context, run *step.Run) (step.Outcome, error) {
	report, err := b.follow(ctx, run)
	if err != nil {
		return step.Outcome{}, err
	}
	switch report.State {
	case step.InProgress:
		if !isReady(report) {
			return step.Next(stepMake), nil // its agent was started again
		}
		return b.lookAgain(report), nil
	case step.Succeeded:
		return step.End().With(b.endsJob(run)...), nil
	case step.Lost:
		return b.placeAgain(run, report)
	case step.NotAsked:
	}
	return step.Next(stepPlace), nil
}

// isReady reports whether a host has told that it is ready.
func isReady(report step.JobReport) bool {
	var ready backup.Ready
	return len(report.Result) > 0 && json.Unmarshal(report.Result, &ready) == nil && ready.Files > 0
}

// placeAgain follows a job that failed: a host is chosen anew after a pause.
func (b *Backups) placeAgain(run *step.Run, report step.JobReport) (step.Outcome, error) {
	host := jobOf(run).host
	err := fmt.Errorf("host %s: %s", host, report.Detail)
	if report.Final {
		return step.Outcome{}, step.Final(err)
	}
	b.failed(run, err)
	run.Note(noteRefused, host)
	return step.Next(stepPlace).With(b.endsJob(run)...), nil
}

func (b *Backups) askDownload(run *step.Run) (step.Outcome, error) {
	var args backup.DownloadArgs
	if err := run.Args(&args); err != nil {
		return step.Outcome{}, err
	}
	r, err := state.View[backup.Backup](b.Cache, state.Backup(run.Record.About.Database, args.Repository, args.Label))
	if err != nil {
		return step.Outcome{}, step.Final(fmt.Errorf("download %s: %w", args.Snapshot, errNotKept))
	}
	job := backup.DownloadJob{Downloading: args.Downloading, DrillJob: backup.DrillJob{
		Database: run.Record.About.Database, Repository: args.Repository, Label: args.Label, Major: r.Value.Major, Encrypted: args.Encrypted,
		Room: args.DownloadRoom() * r.Value.Size,
	}}
	if t, ok := b.target(run.Record.About); ok {
		l := b.limitsOf(t)
		job.CPUs, job.Memory, job.IOPS = l.CPUs, l.MemoryBytes, l.IOPS
	}
	return b.ask(run, backup.JobDownload, job)
}
