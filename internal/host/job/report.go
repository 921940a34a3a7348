package job

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"howdah/internal/model/member"
	"howdah/internal/state"
)

// reporter writes the reports of one job, beside it. Of reports that pile up only the newest is
// written.
type reporter struct {
	work *work
	wake chan struct{}

	// revision is that of the report's key, as far as is known. Only one goroutine uses it at a
	// time: the one that claims, and then that of run.
	revision int64

	mu    sync.Mutex
	next  member.JobReport // guarded by mu
	fresh bool             // next has not been written; guarded by mu
}

// blank is the report of a job that was begun just now.
func (r *reporter) blank() member.JobReport {
	return member.JobReport{Name: r.work.job.Name, Asked: r.work.asked, State: member.JobRuns, At: time.Now().UTC()}
}

// claim writes that the job began, unless an earlier agent wrote it: see work.claim. It returns
// errForgotten if the job is not wanted.
func (r *reporter) claim() (earlier, ended bool, err error) {
	old, err := r.read()
	if err == nil && old.Asked == r.work.asked {
		r.set(old, false)
		return true, old.State != member.JobRuns, nil
	}
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return false, false, err
	}
	begun := r.blank()
	r.set(begun, false)
	err = r.write(begun)
	return false, false, err
}

// read reads the report, and its revision.
func (r *reporter) read() (member.JobReport, error) {
	ctx, cancel := context.WithTimeout(r.work.agent, etcdTimeout)
	defer cancel()
	old, err := state.Get[member.JobReport](ctx, r.work.jobs.store, r.work.reportKey())
	if err == nil || errors.Is(err, state.ErrNotFound) {
		r.revision = old.Revision
	}
	return old.Value, err
}

// gone reports whether it is certain that the job is not wanted any more.
func (r *reporter) gone() bool {
	ctx, cancel := context.WithTimeout(r.work.agent, etcdTimeout)
	defer cancel()
	now, err := state.Get[member.Job](ctx, r.work.jobs.store, state.Job(r.work.jobs.Host, r.work.job.Name))
	return errors.Is(err, state.ErrNotFound) || err == nil && now.Revision != r.work.asked
}

// write writes a report if the job is still the one that was asked for. It returns errForgotten if
// it is not.
func (r *reporter) write(report member.JobReport) error {
	job := state.Job(r.work.jobs.Host, r.work.job.Name)
	revision, err := r.work.jobs.commit(r.work.agent, state.Unchanged(job, r.work.asked), state.Swap(r.work.reportKey(), r.revision, report))
	switch {
	case err == nil:
		r.revision = revision
	case (errors.Is(err, state.ErrConflict) || errors.Is(err, rpctypes.ErrPermissionDenied)) && r.gone():
		return errForgotten
	case errors.Is(err, state.ErrConflict):
		// An earlier agent wrote it, or this one by a call whose answer was lost.
		if _, failed := r.read(); failed != nil && !errors.Is(failed, state.ErrNotFound) {
			return failed
		}
	}
	return err
}

func (r *reporter) set(report member.JobReport, fresh bool) {
	r.mu.Lock()
	r.next, r.fresh = report, fresh
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// change changes the newest report. One that says how the job ended is not changed any more.
func (r *reporter) change(alter func(*member.JobReport)) {
	now := r.newest()
	if now.State != member.JobRuns {
		return
	}
	alter(&now)
	now.At = time.Now().UTC()
	r.set(now, true)
}

// waits says what the job waits for; "": for nothing.
func (r *reporter) waits(text string) {
	if r.newest().Detail != text {
		r.change(func(now *member.JobReport) { now.Detail = text })
	}
}

// tell hands a report over as it is.
func (r *reporter) tell(report member.JobReport) { r.set(report, true) }

// newest returns the report that was handed over last.
func (r *reporter) newest() member.JobReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next.Name == "" {
		return r.blank()
	}
	return r.next
}

func (r *reporter) take() (report member.JobReport, fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	report, fresh = r.next, r.fresh
	r.fresh = false
	return report, fresh
}

// again has a report written that etcd did not take, unless there is a newer one.
func (r *reporter) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fresh = true
}

// rest waits, but not with news of the job's end. It returns false if the job is forgotten or the
// agent ends.
func (r *reporter) rest(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-r.work.ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-r.wake:
			if pause == reportEvery && r.newest().State != member.JobRuns {
				return true
			}
		}
	}
}

// run writes reports until the job is forgotten or the agent ends.
func (r *reporter) run(done *sync.WaitGroup) {
	done.Go(func() {
		for {
			select {
			case <-r.work.ctx.Done():
				return
			case <-r.wake:
			}
			for {
				report, fresh := r.take()
				if !fresh {
					break
				}
				err := r.write(report)
				if errors.Is(err, errForgotten) {
					r.work.log.Info("what came of a job is not wanted any more", "state", report.State)
					r.work.forget()
					return
				}
				pause := reportEvery
				if err != nil {
					r.again()
					if errors.Is(err, state.ErrConflict) {
						pause = 10 * time.Millisecond // the revision is known now
					} else if r.work.agent.Err() == nil {
						r.work.log.Warn("report on a job", "error", err)
					}
				} else if report.State != member.JobRuns {
					point("reported")
					break
				}
				if !r.rest(pause) {
					return
				}
			}
		}
	})
}
