package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"howdah/internal/engine/patroni"
	"howdah/internal/fence"
	"howdah/internal/member"
	"howdah/internal/plan"
	"howdah/internal/state"
)

const (
	// pace is how often a trial looks whether something moved.
	pace = 5 * time.Millisecond
	// verdictWithin bounds a trial before the revocation: longer, and Patroni's own
	// lease has decided.
	verdictWithin = 60 * time.Second
	// giveInWithin is how long the agent of a host that is back may take to see the
	// case and to end what it finds.
	giveInWithin = 5 * time.Second
)

// trial is one case from suspicion to its end. It runs beside the judge.
type trial struct {
	judge  *Judge
	c      fence.Case
	layout plan.Layout
	done   chan struct{}
}

func (t *trial) run(ctx context.Context) {
	defer close(t.done)
	err := t.proceed(ctx)
	if err != nil && ctx.Err() == nil {
		t.judge.Log.Warn("fence case ended without a verdict", "case", t.c.ID, "host", t.c.Host, "reason", err)
	}
	if ctx.Err() != nil {
		return // the next judge goes on
	}
	t.end(ctx)
	select {
	case t.judge.closed <- t.c.Leadership.Database:
	case <-ctx.Done():
	}
}

var (
	errAlive    = errors.New("the host is heard again")
	errAnswers  = errors.New("a witness reaches the primary's Patroni")
	errHeadless = errors.New("a witness reaches the primary's PostgreSQL, which has no Patroni")
	errNobody   = errors.New("a witness has not answered")
)

// proceed takes a case through its phases.
func (t *trial) proceed(ctx context.Context) error {
	if t.c.Phase == fence.Suspected {
		if err := t.keep(ctx); err != nil {
			return err
		}
		if err := t.hearWitnesses(ctx); err != nil {
			return err
		}
		t.c.Phase, t.c.Cut = fence.Cutting, time.Now().UTC()
		if err := t.keep(ctx); err != nil {
			return err
		}
	}
	if t.c.Phase == fence.Cutting {
		if err := t.fence(ctx); err != nil {
			return err
		}
	}
	return t.waitForOldPrimary(ctx)
}

// keep makes the case durable, for agents to see and for the next judge.
func (t *trial) keep(ctx context.Context) error {
	_, err := t.judge.Store.Commit(ctx, state.Put(state.Fence(t.c.Leadership.Database), t.c))
	return err
}

// end closes the case: all cuts are lifted.
func (t *trial) end(ctx context.Context) {
	database := t.c.Leadership.Database
	_, err := t.judge.Store.Commit(ctx, state.Delete(state.Fence(database)),
		state.DeletePrefix(state.WitnessRoot+database+"/"), state.DeletePrefix(state.CutRoot+database+"/"))
	if err != nil && ctx.Err() == nil {
		t.judge.Log.Error("close fence case", "case", t.c.ID, "error", err)
	}
}

// hearWitnesses waits until the host counts as lost, and every standby's host that
// can be heard has said that it reaches neither Patroni nor PostgreSQL there. A
// primary whose PostgreSQL still answers somebody is left alone, as long as its
// Patroni may be keeping the lease alive.
func (t *trial) hearWitnesses(ctx context.Context) error {
	deadline := time.Now().Add(verdictWithin)
	reason := errNobody
	for time.Now().Before(deadline) {
		silence := t.judge.Pulse.Silence(t.c.Host)
		if silence < t.judge.suspicion() {
			return errAlive
		}
		evidence, verdict := t.evidence()
		if errors.Is(verdict, errHeadless) && t.leaseAge(ctx) >= patroni.SelfDemotion {
			verdict = nil
		}
		if silence >= t.judge.Detection && verdict == nil {
			t.c.Evidence = append([]string{fmt.Sprintf("no heartbeat of %s for %s", t.c.Host, silence.Round(time.Millisecond))}, evidence...)
			return nil
		}
		reason = verdict
		if !pauseFor(ctx, pace) {
			return ctx.Err()
		}
	}
	return reason
}

// evidence is what the witnesses said last; verdict is nil when they agree that
// the primary is lost, and says what stands against it otherwise.
func (t *trial) evidence() (texts []string, verdict error) {
	witnesses := map[string]fence.Witness{}
	for _, w := range state.LoadAll[fence.Witness](t.judge.Cache, state.WitnessRoot+t.c.Leadership.Database+"/") {
		if w.Value.Case == t.c.ID {
			witnesses[w.Value.Host] = w.Value
		}
	}
	for _, host := range t.standbyHosts() {
		w, spoke := witnesses[host]
		switch {
		case !spoke && t.judge.Pulse.Silence(host) < t.judge.suspicion():
			return nil, errNobody
		case !spoke:
			continue // it is silent itself
		case w.Patroni:
			return nil, errAnswers
		case w.Postgres:
			verdict = errHeadless
			texts = append(texts, host+" reaches its PostgreSQL but not its Patroni")
		default:
			texts = append(texts, host+" reaches neither its Patroni nor its PostgreSQL")
		}
	}
	if len(texts) == 0 {
		return nil, errNobody
	}
	return texts, verdict
}

// standbyHosts are those of the synchronous standbys.
func (t *trial) standbyHosts() []string {
	var hosts []string
	for _, m := range t.layout.Members {
		if slices.Contains(t.c.Leadership.Sync.Standbys, m.Name) && m.Host != t.c.Host {
			hosts = append(hosts, m.Host)
		}
	}
	return hosts
}

// leaseAge is for how many seconds the primary's lease was not renewed.
func (t *trial) leaseAge(ctx context.Context) int64 {
	answer, err := t.judge.Store.Client.TimeToLive(ctx, t.c.Leadership.Lease)
	if err != nil || answer.TTL < 0 {
		return 0
	}
	return answer.GrantedTTL - answer.TTL
}

// fence asks the fencers in turn for a proof, and revokes on the first.
func (t *trial) fence(ctx context.Context) error {
	for _, f := range t.fencers() {
		proof, err := f.Fence(ctx, t.c.Leadership, t.c.Host)
		if err != nil {
			t.judge.Log.Warn("fencer refused", "case", t.c.ID, "method", f.Name(), "reason", err)
			continue
		}
		t.c.Proof = proof
		err = fence.Revoke(ctx, t.judge.Store.Client, t.c.Leadership, proof)
		if err != nil && !t.overtaken(ctx, err) {
			return err
		}
		t.c.Phase, t.c.RevokedAt = fence.Revoked, time.Now().UTC()
		t.judge.Log.Info("lost primary revoked", "case", t.c.ID, "host", t.c.Host, "method", proof.Method, "proof", proof.Text)
		return t.record(ctx)
	}
	return fence.ErrRefused
}

// overtaken: the key is gone already, because the lease ended by itself or the judge
// before revoked it and could not write that down. The cut has to last all the same.
func (t *trial) overtaken(ctx context.Context, err error) bool {
	if !errors.Is(err, fence.ErrMoved) {
		return false
	}
	now, err := fence.Read(ctx, t.judge.Store.Client, t.c.Leadership.Database)
	return err == nil && now.Leader != t.c.Leadership.Leader
}

// record makes the revocation durable, for the agents and for the post-mortem.
func (t *trial) record(ctx context.Context) error {
	incident := fence.Incident{
		Kind: fence.Failover, Database: t.c.Leadership.Database, Member: t.c.Leadership.Leader, Host: t.c.Host,
		Cause: "host " + t.c.Host + " was lost", Detected: t.c.Cut, Fenced: t.c.Proof.At, Revoked: t.c.RevokedAt,
		Proof: t.c.Proof, Evidence: t.c.Evidence,
	}
	id := fmt.Sprintf("%016x", incident.Detected.UnixNano())
	_, err := t.judge.Store.Commit(ctx,
		state.Put(state.Fence(incident.Database), t.c), state.Put(state.Incident(incident.Database, id), incident))
	return err
}

func (t *trial) fencers() []fence.Fencer {
	var all []fence.Fencer
	if t.judge.Stonith != "" {
		all = append(all, &stonith{command: t.judge.Stonith})
	}
	return append(all, &quorum{trial: t}, &lease{trial: t})
}

// waitForOldPrimary keeps the cut until the old primary can do no harm: its host's
// agent says that it is down or follows. A primary that won its key back was not
// lost, and is let go at once.
func (t *trial) waitForOldPrimary(ctx context.Context) error {
	database, old := t.c.Leadership.Database, t.c.Leadership.Leader
	id := plan.ID(database, old)
	var since time.Time // it is harmless
	for {
		if _, _, exists := t.judge.Cache.Raw(state.Layout(database)); !exists {
			return nil // the database was deleted
		}
		leader, revision, _ := t.judge.Cache.Raw(patroni.LeaderKey(database))
		if string(leader) == old && revision > t.c.Leadership.LeaderRevision {
			return nil
		}
		report, err := state.Load[member.Report](t.judge.Cache, state.Report(t.c.Host, id))
		gone := errors.Is(err, state.ErrNotFound) && !t.placed(id)
		switch calm := err == nil && t.judge.Pulse.Silence(t.c.Host) < t.judge.Detection && harmless(report.Value, t.c.RevokedAt); {
		case gone:
			return nil
		case !calm:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case t.toldWALEnd() || time.Since(since) > giveInWithin:
			return nil
		}
		if !pauseFor(ctx, 10*pace) {
			return ctx.Err()
		}
	}
}

// toldWALEnd: the old primary's host said where its WAL ended, for the post-mortem.
// Until then the cut keeps it from being rewound.
func (t *trial) toldWALEnd() bool {
	incidents := state.LoadAll[fence.Incident](t.judge.Cache, state.IncidentRoot+t.c.Leadership.Database+"/")
	return slices.ContainsFunc(incidents, func(i state.Record[fence.Incident]) bool {
		return i.Value.Kind == fence.WALEnd && i.Value.Revoked.Equal(t.c.RevokedAt)
	})
}

// harmless: seen after the revocation, it neither runs nor takes writes.
func harmless(r member.Report, revoked time.Time) bool {
	return r.At.After(revoked) && (!r.Postgres || r.Ready && r.InRecovery)
}

func (t *trial) placed(id string) bool {
	layout, err := state.Load[plan.Layout](t.judge.Cache, state.Layout(t.c.Leadership.Database))
	return err == nil && slices.ContainsFunc(layout.Value.Members, func(m plan.Placed) bool {
		return plan.ID(layout.Value.ID, m.Name) == id
	})
}

func pauseFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
