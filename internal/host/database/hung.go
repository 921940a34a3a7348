package database

import (
	"context"

	"howdah/internal/failover/fence"
	"howdah/internal/host/agent"
	"howdah/internal/host/proc"
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
	l, err := r.leadership(ctx)
	if err != nil {
		r.Log.Warn("ask who leads", "error", err)
		return
	}
	if l.Leader != m.Name || !l.Replaceable() {
		return // nobody can take over
	}
	if err := r.writable(ctx); err != nil {
		r.Log.Warn("a primary that hangs is not fenced, for its key could not be taken away", "error", err)
		return
	}
	incident := fence.Incident{
		Kind: fence.Failover, Database: m.Scope, Member: m.Name, Host: r.host.Name,
		Cause: "PostgreSQL of the primary hangs: " + h.why, Detected: h.since,
	}
	limited, cancelKill := context.WithTimeout(ctx, 3*agent.ProveWithin)
	defer cancelKill()
	proof, err := r.EndAll(limited)
	if err != nil {
		r.Log.Error("fence a primary that hangs", "error", err)
		return
	}
	incident.Proof = killed(proof)
	incident.Fenced = incident.Proof.At
	if err := r.revoke(ctx, l, &incident, m.Major); err != nil {
		r.Log.Warn("replace a primary that hangs", "error", err)
		return
	}
	r.record(ctx, incident)
}

func killed(p proc.Proof) fence.Proof {
	return fence.Proof{Method: "killed", Text: p.Evidence, At: p.At}
}
