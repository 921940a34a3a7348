package job

import (
	"context"
	"encoding/json"
	"log/slog"

	"howdah/internal/host/proc"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
)

// Trial is what a kind is tried with. All fields are required.
type Trial struct {
	Dir    string // has the job's directory
	Procs  *proc.Host
	Resume bool
	Log    *slog.Logger
}

// Try has a kind do a job without etcd, for tests of kinds. The end of ctx is the end of the agent:
// programs of a kind that Adopts go on, and a next Try with Resume finds them. It returns the
// newest progress, too.
func Try(ctx context.Context, kind Kind, job member.Job, t Trial) (json.RawMessage, member.JobReport, error) {
	jobs, err := New(Config{Host: job.Host, Dir: t.Dir, Procs: t.Procs, Kinds: []Kind{kind}, Log: t.Log})
	if err != nil {
		return nil, member.JobReport{}, err
	}
	w := jobs.newWork(ctx, note{Job: job, Asked: 1})
	defer w.forget()
	if err := home.OpenWay(jobs.notes.dir(w.id)); err != nil {
		return nil, member.JobReport{}, err
	}
	if err := w.clean(t.Resume); err != nil {
		return nil, member.JobReport{}, err
	}
	result, err := w.guarded(Call{Job: job, Resume: t.Resume, Dir: jobs.notes.dir(w.id), work: w})
	if err != nil {
		return nil, w.reporter.newest(), err
	}
	text, err := encode(result)
	return text, w.reporter.newest(), err
}
