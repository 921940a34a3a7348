package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"howdah/internal/model/operation"
	"howdah/internal/state"
)

// Job is work that a host does, and goes on with whatever becomes of the control plane. It is
// idempotent by its name: a host does what has one name once, and keeps how it ended.
type Job struct {
	Host string
	Name string // Run.Name
	// Turn is Run.Turn when the job was asked for. A host begins nothing of a lower turn than
	// it has seen of the operation.
	Turn int64
	Kind string
	Args json.RawMessage
	// Tries is after how many failures the step fails for good; 0: never.
	Tries int
}

// JobState is how far a job is.
type JobState int

// The states of a job.
const (
	NotAsked JobState = iota
	InProgress
	Succeeded
	Lost // it failed
)

// JobReport is what a host tells of a job.
type JobReport struct {
	State    JobState
	Progress operation.Progress
	Result   json.RawMessage // what came of it, as its kind says, or what it tells while it goes on
	Detail   string          // why it failed, or what it waits for
	Final    bool            // another try would fail too
}

// Hosts do jobs. What is asked of them goes through etcd, in the transaction that records the
// step, so that a control plane that leads no more cannot ask.
type Hosts interface {
	// Ask asks for a job.
	Ask(Job) []state.Op
	// Forget ends a job if it goes on, and has the host forget it.
	Forget(host, name string) []state.Op
	// Look answers how far a job is, from what is known here.
	Look(ctx context.Context, host, name string) (JobReport, error)
}

// jobLook is how often a job is looked at.
const jobLook = 2 * time.Second

// errJob says that a job failed.
var errJob = errors.New("the host could not")

// Await is a step that has a host do a job: it asks once, looks how far it is, and goes on with
// then when it is done, with what came of it. The job is forgotten in the transaction that records
// what follows, unless that is a nap: then it is looked at again, and then called again.
func Await(ctx context.Context, run *Run, hosts Hosts, job Job, then func(result json.RawMessage) (Outcome, error)) (Outcome, error) {
	job.Turn = run.Turn()
	report, err := hosts.Look(ctx, job.Host, job.Name)
	if err != nil {
		return Outcome{}, fmt.Errorf("look at %s on %s: %w", job.Name, job.Host, err)
	}
	p := report.Progress
	switch report.State {
	case NotAsked:
		return Nap(jobLook).With(hosts.Ask(job)...), nil
	case InProgress:
		run.Progress(p.Done, p.Of, p.Unit)
		nap := Nap(jobLook)
		if report.Detail != "" {
			nap.why = fmt.Sprintf("%s on %s: %s", job.Kind, job.Host, report.Detail)
		}
		return nap, nil
	case Lost:
		return again(run, hosts, job, report)
	case Succeeded:
	}
	run.Progress(p.Done, p.Of, p.Unit)
	out, err := then(report.Result)
	if err == nil && out.kind != naps {
		out = out.With(hosts.Forget(job.Host, job.Name)...)
	}
	return out, err
}

// again is what follows a job that failed: it is forgotten, and asked for anew after a pause.
func again(run *Run, hosts Hosts, job Job, report JobReport) (Outcome, error) {
	err := fmt.Errorf("%s on %s: %w: %s", job.Kind, job.Host, errJob, report.Detail)
	counted := "failures of " + job.Name
	failures, _ := strconv.Atoi(run.Record.Notes[counted]) // none is zero
	failures++
	if report.Final || job.Tries > 0 && failures >= job.Tries {
		return Outcome{}, Final(err)
	}
	run.Note(counted, strconv.Itoa(failures))
	return Nap(pause(failures)).Because(err).With(hosts.Forget(job.Host, job.Name)...), nil
}
