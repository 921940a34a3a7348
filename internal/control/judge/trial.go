package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

const (
	// pace is the pause between two looks of a trial.
	pace = 5 * time.Millisecond
	// verdictWithin limits a trial before the revocation. After that time Patroni's own lease has
	// decided.
	verdictWithin = 60 * time.Second
	// giveInWithin is how long the agent of a host that came back may take to see the case and to
	// end what it finds.
	giveInWithin = 5 * time.Second
)

// trial is one case from suspicion to its end. It runs beside the judge.
type trial struct {
	judge    *Judge
	c        fence.Case
	revision int64 // of the case as it was last kept
	layout   plan.Layout
	done     chan struct{}
}

func (t *trial) key() string { return state.Fence(t.c.Leadership.Database, t.c.Leadership.Leader) }

func (t *trial) run(ctx context.Context) {
	defer close(t.done)
	err := t.proceed(ctx)
	if ctx.Err() != nil {
		return // the next judge goes on
	}
	if err != nil {
		t.judge.Log.Warn("fence case ended without a verdict", "case", t.c.ID, "host", t.c.Host, "reason", err)
	}
	if err == nil || t.c.Phase != fence.Revoked {
		t.end(ctx)
	}
	select {
	case t.judge.closed <- t.key():
	case <-ctx.Done():
	}
}

var (
	errAlive   = errors.New("the host is heard again")
	errAnswers = errors.New("a witness reaches the primary's Patroni and its PostgreSQL")
	errHalf    = errors.New("a witness reaches either the primary's Patroni or its PostgreSQL, not both")
	errNobody  = errors.New("a witness has not answered")
	// errOvertaken says that another member has the leader key.
	errOvertaken = errors.New("another member has the leader key")
)

// proceed takes a case through its phases.
func (t *trial) proceed(ctx context.Context) error {
	if _, _, exists := t.judge.Cache.Raw(state.Layout(t.c.Leadership.Database)); !exists {
		return nil // the database was deleted
	}
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
		if t.revision == 0 { // it was opened by a plea
			if err := t.keep(ctx); err != nil {
				return err
			}
		}
		if err := t.fence(ctx); err != nil {
			return err
		}
	}
	return t.waitForOldPrimary(ctx)
}

// fence revokes the key with a proof, or finds that the primary has lost the key by itself.
func (t *trial) fence(ctx context.Context) error {
	proof, err := t.prove(ctx)
	if errors.Is(err, errOvertaken) || err == nil && proof.Method == "quorum" && t.succeeded() {
		proof = fence.Proof{Method: "gate", Text: "its lease ended by itself; who takes its place is counted at the gate", At: time.Now().UTC()}
	} else if err != nil {
		return err
	}
	t.c.Proof, t.c.Waiting = proof, ""
	if proof.Method == "quorum" {
		t.c.Candidates = fence.Candidates(t.c.Leadership.Sync, t.cutMembers())
	}
	return t.revoke(ctx)
}

// overtaken returns an error if nothing needs a proof any more. That is so if the host is heard
// while its primary leads, or if leadership moved. It is also so if another member has the key, and
// its gate has got all possible help.
func (t *trial) overtaken() error {
	l := t.c.Leadership
	leader, revision := t.judge.leader(l.Database)
	_, sync, _ := t.judge.Cache.Raw(patroni.SyncKey(l.Database))
	switch {
	case leader == "":
		return nil
	case leader != l.Leader:
		if len(fence.Unfenced(l.Sync, leader, t.cutMembers())) == 0 || t.serves(leader) {
			return errOvertaken
		}
		return nil
	case revision != l.LeaderRevision || sync != l.SyncRevision:
		return fmt.Errorf("%s leads on: %w", l.Leader, fence.ErrMoved)
	case t.judge.Pulse.Silence(t.c.Host) < t.judge.suspicion():
		return errAlive
	}
	return nil
}

// succeeded reports whether another member already has the key, although nobody revoked it.
func (t *trial) succeeded() bool {
	leader, _ := t.judge.leader(t.c.Leadership.Database)
	return leader != "" && leader != t.c.Leadership.Leader
}

// serves reports whether the member is the primary by now, as its own host says.
func (t *trial) serves(name string) bool {
	return t.judge.serves(t.c.Leadership.Database, name, t.hostOf(name))
}

// keep records the case, for agents and for the next judge.
func (t *trial) keep(ctx context.Context) error {
	revision, err := t.judge.commit(ctx, state.Put(t.key(), t.c))
	if err == nil {
		t.revision = revision
	}
	return err
}

// end closes the case, which lifts all cuts. The judge takes up again a case that could not be
// closed.
func (t *trial) end(ctx context.Context) {
	revision, err := t.judge.commit(ctx, state.Delete(t.key()),
		state.DeletePrefix(state.WitnessPrefix(t.c.ID)), state.DeletePrefix(state.CutPrefix(t.c.ID)))
	if err == nil {
		err = t.judge.Cache.WaitRevision(ctx, revision)
	}
	if err != nil && ctx.Err() == nil {
		t.judge.Log.Error("close fence case", "case", t.c.ID, "error", err)
	}
}

// hearWitnesses waits until the host counts as lost, and until the host of every standby that can
// be heard has said that it reaches neither Patroni nor PostgreSQL there. If somebody still reaches
// one of the two, the primary is left alone as long as its Patroni may be renewing the lease.
func (t *trial) hearWitnesses(ctx context.Context) error {
	deadline := time.Now().Add(verdictWithin)
	reason := errNobody
	for time.Now().Before(deadline) {
		silence := t.judge.Pulse.Silence(t.c.Host)
		if silence < t.judge.suspicion() {
			return errAlive
		}
		evidence, verdict := t.evidence()
		if errors.Is(verdict, errHalf) && t.leaseAge(ctx) >= patroni.SelfDemotion {
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

// evidence returns what the witnesses said last. verdict is nil if they agree that the primary is
// lost, and otherwise says what speaks against it.
func (t *trial) evidence() (texts []string, verdict error) {
	witnesses := map[string]fence.Witness{}
	for _, w := range state.LoadAll[fence.Witness](t.judge.Cache, state.WitnessPrefix(t.c.ID)) {
		witnesses[state.Tail(w.Key, state.WitnessPrefix(t.c.ID))] = w.Value // etcd's door knows who writes there
	}
	for _, host := range t.standbyHosts() {
		w, spoke := witnesses[host]
		switch {
		case !spoke && t.judge.Pulse.Silence(host) < t.judge.suspicion():
			return nil, errNobody
		case !spoke:
			continue // it is silent itself
		case w.Patroni && w.Postgres:
			return nil, errAnswers
		case w.Patroni:
			verdict = errHalf
			texts = append(texts, host+" reaches its Patroni but not its PostgreSQL")
		case w.Postgres:
			verdict = errHalf
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

// standbyHosts returns the hosts of the synchronous standbys.
func (t *trial) standbyHosts() []string {
	var hosts []string
	for _, m := range t.layout.Members {
		if slices.Contains(t.c.Leadership.Sync.Standbys, m.Name) && m.Host != t.c.Host {
			hosts = append(hosts, m.Host)
		}
	}
	return hosts
}

// leaseAge returns for how many seconds the primary's lease was not renewed.
func (t *trial) leaseAge(ctx context.Context) int64 {
	answer, err := t.judge.Store.Client.TimeToLive(ctx, t.c.Leadership.Lease)
	if err != nil || answer.TTL < 0 {
		return 0
	}
	return answer.GrantedTTL - answer.TTL
}

// revoke deletes the leader key, and records that in the same transaction for the agents and the
// post-mortem. The case and its cuts stay until the outcome is known.
func (t *trial) revoke(ctx context.Context) error {
	for {
		err := t.tryRevoke(ctx)
		switch {
		case err == nil:
			t.judge.Log.Info("lost primary revoked", "case", t.c.ID, "host", t.c.Host, "method", t.c.Proof.Method, "proof", t.c.Proof.Text)
			return nil
		case errors.Is(err, fence.ErrMoved), errors.Is(err, fence.ErrNotSafe), errors.Is(err, fence.ErrRefused):
			return err
		}
		t.judge.Log.Warn("revoke a lost primary", "case", t.c.ID, "error", err)
		if !pauseFor(ctx, 20*pace) {
			return ctx.Err()
		}
	}
}

// tryRevoke returns nil when the key is gone and that is recorded. It returns ErrMoved when the
// primary leads on with a leadership about which nothing is proved. After any other error the
// caller must ask again, as an answer of etcd may be lost.
func (t *trial) tryRevoke(ctx context.Context) error {
	done := t.c
	done.Phase, done.RevokedAt = fence.Revoked, time.Now().UTC()
	outcome := fence.Revoke(ctx, t.judge.Store.Client, t.c.Leadership, t.c.Proof,
		t.judge.Leading, state.Unchanged(t.key(), t.revision), state.Put(t.key(), done), incident(done))
	if errors.Is(outcome, fence.ErrNotSafe) || errors.Is(outcome, fence.ErrRefused) {
		return outcome
	}
	proof := t.c.Proof
	if err := t.reread(ctx); err != nil || t.c.Phase == fence.Revoked {
		return err
	}
	t.c.Proof = proof
	now, err := fence.Read(ctx, t.judge.Store.Client, t.c.Leadership.Database)
	switch old := t.c.Leadership; {
	case err != nil:
		return err
	case now.Leader != old.Leader:
		// The lease ended by itself. The cut has to last all the same.
		if _, err := t.judge.commit(ctx, state.Unchanged(t.key(), t.revision), state.Put(t.key(), done), incident(done)); err != nil {
			return err
		}
		return t.reread(ctx)
	case now.LeaderRevision != old.LeaderRevision || now.SyncRevision != old.SyncRevision:
		return fmt.Errorf("%s leads on: %w", old.Leader, fence.ErrMoved)
	}
	return fmt.Errorf("revocation refused, although nothing moved: %w", state.ErrConflict)
}

// reread replaces the case by what etcd has.
func (t *trial) reread(ctx context.Context) error {
	record, err := state.Get[fence.Case](ctx, t.judge.Store, t.key())
	if err == nil {
		t.c, t.revision = record.Value, record.Revision
	}
	return err
}

func cause(c fence.Case) string {
	if c.Proof.Method == "gate" {
		return "the lease of " + c.Leadership.Leader + " on " + c.Host + " ended by itself"
	}
	return "host " + c.Host + " was lost"
}

// incident returns the write of what the post-mortem of a case needs.
func incident(c fence.Case) state.Op {
	i := fence.Incident{
		Kind: fence.Failover, Database: c.Leadership.Database, Member: c.Leadership.Leader, Host: c.Host,
		Cause: cause(c), Detected: c.Cut, Fenced: c.Proof.At, Revoked: c.RevokedAt,
		Proof: c.Proof, Evidence: c.Evidence,
	}
	return state.Put(state.Incident(i.Database, fmt.Sprintf("%016x", i.Detected.UnixNano())), i)
}

// waitForOldPrimary keeps the cut until the old primary can do no harm: the agent of its host says
// that it is down or follows. A primary that won its key back was not lost, and its cut is lifted
// at once.
func (t *trial) waitForOldPrimary(ctx context.Context) error {
	database, old := t.c.Leadership.Database, t.c.Leadership.Leader
	id := member.ID(database, old)
	replaced := t.revision
	var since time.Time // it is harmless
	for {
		if _, _, exists := t.judge.Cache.Raw(state.Layout(database)); !exists {
			return nil // the database was deleted
		}
		leader, revision := t.judge.leader(database)
		if leader == old && revision > t.c.Leadership.LeaderRevision {
			return nil
		}
		t.hearPlea(ctx)
		report, err := state.Load[member.Report](t.judge.Cache, state.Report(t.c.Host, id))
		gone := errors.Is(err, state.ErrNotFound) && !t.placed(id)
		switch calm := err == nil && t.judge.Pulse.Silence(t.c.Host) < t.judge.Detection && report.Revision > replaced && harmless(report.Value); {
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

// toldWALEnd reports whether the old primary's host has said where its WAL ended, for the
// post-mortem. Until then the cut keeps the old primary from being rewound.
func (t *trial) toldWALEnd() bool {
	incidents := state.LoadAll[fence.Incident](t.judge.Cache, state.IncidentRoot+t.c.Leadership.Database+"/")
	return slices.ContainsFunc(incidents, func(i state.Record[fence.Incident]) bool {
		return i.Value.Kind == fence.WALEnd && i.Value.Revoked.Equal(t.c.RevokedAt)
	})
}

// harmless reports whether the old primary does not run, or takes no writes. On a machine with
// several hosts the cut also keeps the agent from logging in, so what PostgreSQL says on its
// private socket counts, too.
func harmless(r member.Report) bool { return !r.Postgres || r.Ready && r.InRecovery || r.Follows }

func (t *trial) placed(id string) bool {
	layout, err := state.Load[plan.Layout](t.judge.Cache, state.Layout(t.c.Leadership.Database))
	return err == nil && slices.ContainsFunc(layout.Value.Members, func(m plan.Placed) bool {
		return member.ID(layout.Value.ID, m.Name) == id
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
