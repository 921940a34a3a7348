package agent

import (
	"context"
	"time"

	"howdah/internal/failover/fence"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
)

// proveWithin is how long the processes of a member that hangs may take to die. Those
// that wait for a disk do not before the disk answers.
const proveWithin = time.Second

// endHang ends a PostgreSQL that hangs. It works beside the runner, which may be waiting
// for the very disk that hangs, and touches no disk itself. A primary is ended where
// somebody can take over: elsewhere a hang that passes costs less than its end. A
// standby that answers nobody is started again.
func (r *runner) endHang(ctx context.Context, m member.Assignment, h hanging) {
	r.publisher.amend(h)
	// A Patroni that is being started would be out of reach of the kill.
	if !r.starting.TryLock() {
		return // tried again at the next look
	}
	defer r.starting.Unlock()
	r.fencing.Store(true)
	defer r.fencing.Store(false)
	if !h.primary {
		r.log.Warn("PostgreSQL of the standby hangs, starting it again", "why", h.why)
		if _, err := r.endAll(ctx); err != nil {
			r.log.Warn("kill a standby that hangs", "error", err)
		}
		return
	}
	l, err := r.leadership(ctx)
	if err != nil {
		r.log.Warn("ask who leads", "error", err)
		return
	}
	if l.Leader != m.Name || !l.Replaceable() {
		return // nobody can take over
	}
	if err := r.writable(ctx); err != nil {
		r.log.Warn("a primary that hangs is not fenced, for its key could not be taken away", "error", err)
		return
	}
	incident := fence.Incident{
		Kind: fence.Failover, Database: m.Scope, Member: m.Name, Host: r.agent.Name,
		Cause: "PostgreSQL of the primary hangs: " + h.why, Detected: h.since,
	}
	limited, cancelKill := context.WithTimeout(ctx, 3*proveWithin)
	defer cancelKill()
	if incident.Proof, err = r.endAll(limited); err != nil {
		r.log.Error("fence a primary that hangs", "error", err)
		return
	}
	incident.Fenced = incident.Proof.At
	if err := r.revoke(ctx, l, &incident, m.Major); err != nil {
		r.log.Warn("replace a primary that hangs", "error", err)
		return
	}
	r.record(ctx, incident)
}

// endAll ends all processes of the member, proved. Where some wait for a disk, and do not
// end, it is proved that they do nothing else any more; the member then stays down until
// they are gone.
func (r *runner) endAll(ctx context.Context) (fence.Proof, error) {
	limited, cancel := context.WithTimeout(ctx, proveWithin)
	defer cancel()
	r.doomed.Store(true)
	proof, err := r.group.Kill(limited)
	if err == nil {
		r.doomed.Store(false)
		return killed(proof), nil
	}
	again, cancelAgain := context.WithTimeout(ctx, proveWithin)
	defer cancelAgain()
	if proof, err = r.group.Doom(again); err == nil {
		return killed(proof), nil
	}
	// It is not the disk; a busy machine may take its time.
	if proof, err = r.group.Kill(ctx); err != nil {
		return fence.Proof{}, err
	}
	r.doomed.Store(false)
	return killed(proof), nil
}

func killed(p proc.Proof) fence.Proof {
	return fence.Proof{Method: "killed", Text: p.Evidence, At: p.At}
}

// buried reports whether everything that was killed is gone, so that something may be
// started in its place.
func (r *runner) buried(ctx context.Context) bool {
	if !r.doomed.Load() {
		return true
	}
	if time.Since(r.dug) < time.Second {
		return false
	}
	r.dug = time.Now()
	limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := r.group.Kill(limited); err != nil {
		return false
	}
	r.log.Info("the processes that waited for the disk are gone")
	r.doomed.Store(false)
	r.retry = backoff{}
	return true
}
