// Package guard replaces a primary by itself, beside the judge: it asks whether nothing is lost by
// that, sees that etcd would take the key away, kills all of the member and proves it, takes the
// leader key away, and tells of it, in this order. docs/design/availability.md says why.
package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"howdah/internal/failover/fence"
	"howdah/internal/host/agent"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// Guard guards the primary role of one member. The exported fields are required. Its methods are
// called by the member's goroutine; Leadership, Writable, Record and ReplaceHanging by any.
type Guard struct {
	*agent.Member
	Agent   *agent.Agent
	DataDir string
	// Revoked is called when a fenced member has lost its leader key: it may be started again at once.
	Revoked func()

	owed *owed // a replacement that has to wait
}

// Leadership is who leads the member's database, by the member's id: it may be asked to do
// something before its assignment has come.
func (g *Guard) Leadership(ctx context.Context) (fence.Leadership, error) {
	if g.Agent.Store == nil {
		return fence.Leadership{}, errors.New("etcd is not connected yet")
	}
	ctx, cancel := context.WithTimeout(ctx, agent.EtcdTimeout)
	defer cancel()
	return fence.Read(ctx, g.Agent.Store.Client, g.Database())
}

// Replace fences this member and revokes its leadership, if it is a
// primary that loses nothing by it. It reports whether it did.
func (g *Guard) Replace(ctx context.Context, cause string, detected time.Time) bool {
	leadership, err := g.Leadership(ctx)
	if err != nil {
		g.Log.Warn("ask who leads", "error", err)
		return false
	}
	if leadership.Leader != g.Want.Name || !leadership.Replaceable() {
		return false
	}
	if err := g.Writable(ctx); err != nil {
		g.Log.Warn("the primary is not fenced, for its key could not be taken away", "error", err)
		g.owed = &owed{cause: cause, detected: detected, tried: time.Now()}
		return false
	}
	incident := fence.Incident{
		Kind: fence.Failover, Database: g.Want.Scope, Member: g.Want.Name, Host: g.Agent.Name, Cause: cause, Detected: detected,
	}
	if err := g.Fence(ctx, leadership, &incident); err != nil {
		g.Log.Error("replace the primary", "error", err)
		return false
	}
	g.Record(ctx, incident)
	return true
}

// Fence kills what is left of the member and takes its leader key away, whatever l says of who
// leads and who may follow. The member is started again at its next look.
func (g *Guard) Fence(ctx context.Context, l fence.Leadership, incident *fence.Incident) error {
	proven, err := g.EndAll(ctx)
	if err != nil {
		g.Problem, g.Detail = member.CannotContain, err.Error()
		return err
	}
	proof := killed(proven)
	g.Leader.Clear()
	g.Server.Clear()
	incident.Fenced, incident.Proof = proof.At, proof
	if err := g.revoke(ctx, l, incident, g.Want.Major); err != nil {
		return err
	}
	g.Revoked()
	return nil
}

// revoke takes the leader key of this member away, whose death incident.Proof proves, and
// completes the incident. It may be called beside the goroutine of the member.
func (g *Guard) revoke(ctx context.Context, l fence.Leadership, incident *fence.Incident, major int) error {
	call, cancel := context.WithTimeout(ctx, agent.EtcdTimeout)
	defer cancel()
	if err := fence.Revoke(call, g.Agent.Store.Client, l, incident.Proof, g.death(incident.Proof)); err != nil {
		// The member is dead all the same: Patroni sorts the rest out by its lease.
		return fmt.Errorf("leadership could not be revoked: %w", err)
	}
	incident.Revoked = time.Now()
	if !incident.Planned && !g.Doomed() {
		incident.OldEnd, incident.Timeline = g.walEnd(ctx, major)
	}
	g.Log.Info("primary fenced and revoked", "cause", incident.Cause, "proof", incident.Proof.Text, "after", incident.Revoked.Sub(incident.Detected).String())
	return nil
}

// ReplaceHanging is Replace for a primary whose goroutine may wait for the very disk that hangs:
// it works beside that, and touches no disk itself. m is what the member was told.
func (g *Guard) ReplaceHanging(ctx context.Context, m member.Assignment, cause string, detected time.Time) {
	l, err := g.Leadership(ctx)
	if err != nil {
		g.Log.Warn("ask who leads", "error", err)
		return
	}
	if l.Leader != m.Name || !l.Replaceable() {
		return // nobody can take over
	}
	if err := g.Writable(ctx); err != nil {
		g.Log.Warn("a primary that hangs is not fenced, for its key could not be taken away", "error", err)
		return
	}
	incident := fence.Incident{
		Kind: fence.Failover, Database: m.Scope, Member: m.Name, Host: g.Agent.Name, Cause: cause, Detected: detected,
	}
	limited, cancelKill := context.WithTimeout(ctx, 3*agent.ProveWithin)
	defer cancelKill()
	proof, err := g.EndAll(limited)
	if err != nil {
		g.Log.Error("fence a primary that hangs", "error", err)
		return
	}
	incident.Proof = killed(proof)
	incident.Fenced = incident.Proof.At
	if err := g.revoke(ctx, l, &incident, m.Major); err != nil {
		g.Log.Warn("replace a primary that hangs", "error", err)
		return
	}
	g.Record(ctx, incident)
}

// death tells gates that this member runs no more.
func (g *Guard) death(p fence.Proof) state.Op {
	return state.Put(state.Death(g.Database(), g.Name()), fence.Death{
		Database: g.Database(), Member: g.Name(), Host: g.Agent.Name, Proof: p, At: time.Now().UTC(),
	})
}

// TellDeath tells gates of a death while the leader key is as it was before. It is not told again
// later: the member may be let through by then.
func (g *Guard) TellDeath(ctx context.Context, p proc.Proof, l fence.Leadership) {
	ctx, cancel := context.WithTimeout(ctx, agent.EtcdTimeout)
	defer cancel()
	_, err := g.Agent.Store.Commit(ctx, state.Unchanged(patroni.LeaderKey(l.Database), l.LeaderRevision),
		g.death(killed(p)))
	if err != nil {
		g.Log.Warn("tell of a death", "error", err)
	}
}

// Record keeps an incident for the post-mortem.
func (g *Guard) Record(ctx context.Context, incident fence.Incident) {
	g.Tell(ctx, state.Put(state.Incident(incident.Database, fmt.Sprintf("%016x", incident.Detected.UnixNano())), incident))
}

func killed(p proc.Proof) fence.Proof {
	return fence.Proof{Method: "killed", Text: p.Evidence, At: p.At}
}
