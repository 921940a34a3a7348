package database

import (
	"context"
	"syscall"

	"howdah/internal/failover/fence"
	"howdah/internal/host/database/watchdog"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
)

// endHang ends a PostgreSQL that hangs. It works beside the runner, which may be waiting
// for the very disk that hangs, and touches no disk itself. A primary is ended where
// somebody can take over: elsewhere a hang that passes costs less than its end. A
// standby that answers nobody is started again.
func (r *runner) endHang(ctx context.Context, m member.Assignment, h watchdog.Hanging) {
	r.Amend(func(report *member.Report) bool {
		if report.Problem == member.Hangs {
			return false
		}
		report.Ready, report.Problem, report.Detail = false, member.Hangs, h.Why
		return true
	})
	// A Patroni that is being started would be out of reach of the kill.
	if !r.starting.TryLock() {
		return // tried again at the next look
	}
	defer r.starting.Unlock()
	r.fencing.Store(true)
	defer r.fencing.Store(false)
	if !h.Primary {
		r.Log.Warn("PostgreSQL of the standby hangs, starting it again", "why", h.Why)
		if _, err := r.EndAll(ctx); err != nil {
			r.Log.Warn("kill a standby that hangs", "error", err)
		}
		return
	}
	r.guard.ReplaceHanging(ctx, m, "PostgreSQL of the primary hangs: "+h.Why, h.Since)
}

// endHung kills a Patroni that hangs, and nothing else: what becomes of its
// PostgreSQL is decided as for any orphan.
func (r *runner) endHung(hung proc.Process, look watchdog.LeaseLook) {
	if r.Want.Want != member.Running || !r.patroni.Alive() || r.patroni.Process != hung {
		return
	}
	r.Log.Warn("Patroni hangs beside PostgreSQL, killing it", "why", look.String(), "leads", look.Leads)
	if err := r.host.Procs.Signal(hung, syscall.SIGKILL); err != nil {
		r.Log.Warn("kill Patroni", "error", err)
		return
	}
	r.hung = look.String()
}

// recordHang tells of a Patroni that hung and is only started again.
func (r *runner) recordHang(ctx context.Context) {
	if r.hung == "" {
		return
	}
	r.guard.Record(ctx, fence.Incident{
		Kind: fence.Hang, Database: r.Want.Scope, Member: r.Want.Name, Host: r.host.Name, Detected: r.orphaned, Cause: r.hung,
	})
}

// explainOrphan says why a PostgreSQL has no Patroni any more; hung is why that was killed for
// hanging, or "".
func explainOrphan(hung string) string {
	if hung == "" {
		return "Patroni of the primary died"
	}
	return "Patroni of the primary hung: " + hung
}
