package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"howdah/internal/host/pace"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// errForgotten ends a job that nobody wants any more.
var errForgotten = errors.New("nobody wants the job any more")

// errPanic says that a kind failed in an unforeseen way.
var errPanic = errors.New("the job panicked")

// errResult says that a kind made a result that is not one.
var errResult = errors.New("the result cannot be reported")

// work is one job, from the moment at which it is seen until nothing is left of it.
type work struct {
	jobs  *Jobs
	id    string
	asked int64
	noted bool // it is on disk that it was begun
	job   member.Job
	ended *member.JobReport
	kind  Kind    // without a Run: this host knows no such kind
	place *ticket // among the jobs of the host; nil if the job has ended
	log   *slog.Logger

	// agent ends with the agent, and ctx also when the job is forgotten.
	agent  context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc

	reporter *reporter
}

func (j *Jobs) newWork(ctx context.Context, n note) *work {
	w := &work{jobs: j, id: idOf(n.Job.Name), asked: n.Asked, job: n.Job, ended: n.Ended, agent: ctx}
	w.kind = j.kind(n.Job.Kind)
	w.log = j.Log.With("job", n.Job.Name, "kind", n.Job.Kind)
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.reporter = &reporter{work: w, wake: make(chan struct{}, 1)}
	return w
}

// forget has the job ended and cleared away.
func (w *work) forget() { w.cancel(errForgotten) }

func (w *work) agentEnds() bool { return w.agent.Err() != nil }

// live does the job, reports how it ended, and clears it away when it is forgotten. It returns
// when nothing is left, or when the agent ends.
func (w *work) live() {
	var reporting sync.WaitGroup
	if w.ended == nil {
		w.begin(&reporting)
	} else {
		w.reporter.run(&reporting)
		w.reporter.tell(*w.ended)
	}
	<-w.ctx.Done()
	reporting.Wait()
	if w.agentEnds() {
		return
	}
	for !w.agentEnds() {
		if err := w.clear(); err == nil {
			w.log.Info("job is forgotten")
			return
		} else if w.agent.Err() == nil {
			w.log.Warn("clear a job away", "error", err)
		}
		pace.Sleep(w.agent, again)
	}
}

// clear removes all that is left of the job, its note last.
func (w *work) clear() error {
	if err := w.killAll(); err != nil {
		return err
	}
	_, err := w.jobs.commit(w.agent, state.Unchanged(state.Job(w.jobs.Host, w.job.Name), 0), state.Delete(w.reportKey()))
	if err != nil && !errors.Is(err, state.ErrConflict) {
		return err
	}
	point("cleared")
	if err := w.jobs.discard(w.id); err != nil {
		return err
	}
	return w.jobs.notes.remove(w.id)
}

func (w *work) reportKey() string { return state.JobReport(w.jobs.Host, w.job.Name) }

// begin claims the job, waits for its turn, and runs it.
func (w *work) begin(reporting *sync.WaitGroup) {
	defer w.place.leave()
	resume := w.noted
	if !w.noted {
		claimed, over := w.claim()
		if over {
			return
		}
		resume = claimed
	}
	w.reporter.run(reporting)
	result, err := w.do(resume)
	if w.ctx.Err() != nil && (err != nil || !w.agentEnds()) {
		return // the next agent goes on with it, or nobody wants it
	}
	w.finish(result, err)
}

// claim writes that the job began. earlier: an agent had claimed it before; over: it ended then, or
// is not wanted any more.
func (w *work) claim() (earlier, over bool) {
	point("seen")
	for {
		earlier, ended, err := w.reporter.claim()
		switch {
		case err == nil && ended:
			return earlier, true
		case err == nil:
			point("claimed")
			return earlier, false
		case errors.Is(err, errForgotten):
			w.forget()
			return false, true
		case w.ctx.Err() == nil:
			w.log.Warn("claim a job", "error", err)
		}
		if !pace.Sleep(w.ctx, again) {
			return false, true
		}
	}
}

// do has the kind do the job, when it is its turn.
func (w *work) do(resume bool) (result any, err error) {
	if w.kind.Run == nil {
		return nil, fmt.Errorf("%w: %.40q", errUnknown, w.job.Kind)
	}
	if !w.noted {
		if err := w.admit(); err != nil {
			return nil, err
		}
	}
	if err := w.place.wait(w.ctx, func() { w.reporter.waits("waits until another job of the host has ended") }); err != nil {
		return nil, err
	}
	w.reporter.waits("")
	if !w.noted && w.reporter.gone() {
		w.forget()
		return nil, errForgotten
	}
	if err := home.OpenWay(w.jobs.notes.dir(w.id)); err != nil {
		return nil, err
	}
	if err := w.clean(resume); err != nil {
		return nil, err
	}
	w.log.Info("job begins", "resume", resume)
	call := Call{Job: w.job, Resume: resume, Dir: w.jobs.notes.dir(w.id), work: w}
	result, err = w.guarded(call)
	point("ran")
	if w.kind.Adopts && w.agentEnds() && err != nil {
		return nil, err
	}
	if left := w.killAll(); left != nil {
		w.log.Warn("kill what a job left", "error", left) // again when it is cleared away
	}
	return result, err
}

// admit decides whether the job may be begun, and notes that it is.
func (w *work) admit() error {
	if err := w.jobs.Refuse(); err != nil {
		return err
	}
	if err := w.jobs.turns.admit(w.job, time.Now()); err != nil {
		return err
	}
	if err := w.jobs.notes.write(note{Job: w.job, Asked: w.asked}); err != nil {
		return err
	}
	point("noted")
	return nil
}

// clean kills what an earlier agent left, unless the kind waits for it.
func (w *work) clean(resume bool) error {
	if !resume || w.kind.Adopts {
		return nil
	}
	for {
		err := w.killAll()
		if err == nil {
			return nil
		}
		w.log.Warn("kill what an earlier agent left of a job", "error", err)
		if !pace.Sleep(w.ctx, again) {
			return context.Cause(w.ctx)
		}
	}
}

// guarded runs the kind, which may not take the agent with it.
func (w *work) guarded(call Call) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			w.log.Error("a job panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result, err = nil, fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return w.kind.Run(w.ctx, call)
}

func (w *work) progress(done, of int64, unit string) {
	w.reporter.change(func(r *member.JobReport) { r.Done, r.Of, r.Unit = done, of, unit })
}

// finish notes how the job ended, and then reports it.
func (w *work) finish(result any, err error) {
	text, bad := encode(result)
	if err == nil {
		err = bad
	}
	report := w.reporter.newest()
	report.State, report.Detail, report.Result, report.At = member.JobDone, "", nil, time.Now().UTC()
	if err != nil {
		report.State, report.Detail, report.Final = member.JobFailed, detail(err), errors.Is(err, errFinal)
	} else {
		report.Result = text
	}
	w.log.Info("job ended", "state", report.State, "detail", report.Detail)
	if !w.noteEnd(report) {
		return
	}
	point("ended")
	w.reporter.tell(report)
}

// noteEnd notes how the job ended. What failed is told also if it cannot be noted, as when the disk
// is full: if the agent ends before it is forgotten it is done once more. It returns false if it is
// not to be told.
func (w *work) noteEnd(report member.JobReport) bool {
	for {
		err := w.jobs.notes.write(note{Job: w.job, Asked: w.asked, Ended: &report})
		if err == nil {
			return true
		}
		w.log.Error("note how a job ended", "error", err)
		if report.State == member.JobFailed {
			return true
		}
		w.reporter.waits("it is done, and the host cannot note that: " + err.Error())
		if !pace.Sleep(w.ctx, again) {
			return false
		}
	}
}

// mostDetail is how many bytes of an error are reported. It may quote a program's output.
const mostDetail = 500

// detail returns an error as one plain line.
func detail(err error) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(err.Error(), "?")), " ")
	if len(text) > mostDetail {
		text = strings.ToValidUTF8(text[:mostDetail], "") + "…"
	}
	return text
}

// encode makes a result of what a kind returned.
func encode(result any) (json.RawMessage, error) {
	if result == nil {
		return nil, nil
	}
	text, err := json.Marshal(result)
	if err != nil {
		return nil, Final(fmt.Errorf("%w: %w", errResult, err))
	}
	if len(text) > MostResult {
		return nil, Final(fmt.Errorf("%w: it has %d bytes, and %d are allowed", errResult, len(text), MostResult))
	}
	return text, nil
}

// point is a moment at which tests have the agent die.
var point = func(string) {}
