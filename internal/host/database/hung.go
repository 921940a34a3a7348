package database

import (
	"context"

	"howdah/internal/model/member"
)

// endHang ends a PostgreSQL that hangs. It works beside the runner, which may be waiting
// for the very disk that hangs, and touches no disk itself. A primary is ended where
// somebody can take over: elsewhere a hang that passes costs less than its end. A
// standby that answers nobody is started again.
func (r *runner) endHang(ctx context.Context, m member.Assignment, h hanging) {
	r.Amend(func(report *member.Report) bool {
		if report.Problem == member.Hangs {
			return false
		}
		report.Ready, report.Problem, report.Detail = false, member.Hangs, h.why
		return true
	})
	// A Patroni that is being started would be out of reach of the kill.
	if !r.starting.TryLock() {
		return // tried again at the next look
	}
	defer r.starting.Unlock()
	r.fencing.Store(true)
	defer r.fencing.Store(false)
	if !h.primary {
		r.Log.Warn("PostgreSQL of the standby hangs, starting it again", "why", h.why)
		if _, err := r.EndAll(ctx); err != nil {
			r.Log.Warn("kill a standby that hangs", "error", err)
		}
		return
	}
	r.guard.ReplaceHanging(ctx, m, "PostgreSQL of the primary hangs: "+h.why, h.since)
}
