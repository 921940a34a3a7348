package backup

import (
	"context"
	"encoding/json"
	"fmt"

	step "howdah/internal/control/operation"
	"howdah/internal/model/backup"
)

// prefer chooses the member that is backed up: a standby, where there is one that can be. If that has
// failed under this primary, the primary itself.
func (b *Backups) prefer(run *step.Run, t target, primary place, repository string) place {
	run.Note(notePrimary, "")
	run.Note(noteServer, "")
	run.Note(noteServing, "")
	if run.Record.Notes[noteDirect] == primary.member {
		return primary
	}
	standby, ok := b.standby(t, primary, repository)
	if !ok {
		return primary
	}
	run.Note(notePrimary, primary.member)
	run.Note(noteServer, primary.host)
	run.Note(noteServing, fmt.Sprintf("%s/%d/primary", run.Record.ID, run.Turn()))
	return standby
}

// servingOf is the job by which the primary is served to the standby that is backed up.
func servingOf(run *step.Run) job {
	return job{run.Record.Notes[noteServer], run.Record.Notes[noteServing]}
}

// served returns how a standby uses its primary, once that is known. Until then, out is what the step
// answers. lost says that it cannot.
func (b *Backups) served(ctx context.Context, run *step.Run) (served *backup.Served, out step.Outcome, lost string, err error) {
	j := servingOf(run)
	if j.name == "" {
		return nil, out, "", nil
	}
	report, err := b.reported(ctx, j)
	if err != nil {
		return nil, out, "", err
	}
	switch report.State {
	case step.NotAsked:
		text, err := json.Marshal(backup.ServeJob{
			Database: run.Record.About.Database, Member: run.Record.Notes[notePrimary], Standby: run.Record.Notes[noteMember],
		})
		if err != nil {
			return nil, out, "", step.Final(err)
		}
		asked := step.Job{Host: j.host, Name: j.name, Turn: run.Turn(), Kind: backup.JobServe, Args: text}
		return nil, step.Nap(b.pace.look).With(b.Hosts.Ask(asked)...), "", nil
	case step.InProgress:
		if len(report.Result) == 0 {
			return nil, b.lookAgain(report), "", nil
		}
		served = &backup.Served{}
		if err := json.Unmarshal(report.Result, served); err != nil {
			return nil, out, fmt.Sprintf("host %s says nothing of how the primary is used: %v", j.host, err), nil
		}
		return served, out, "", nil
	default:
		return nil, out, fmt.Sprintf("host %s does not let the standby use the primary: %s", j.host, report.Detail), nil
	}
}

// direct notes that the standby of a primary could not be backed up. If another member is the primary
// by now, its standby is tried.
func (b *Backups) direct(run *step.Run) {
	if primary := run.Record.Notes[notePrimary]; primary != "" {
		run.Note(noteDirect, primary)
	}
}
