package guard

import (
	"context"
	"fmt"
	"time"

	"howdah/internal/host/agent"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// retryOwed is how often a replacement is tried again that etcd would not take.
const retryOwed = 500 * time.Millisecond

// owed is the replacement of a primary that had to wait: etcd took no writes.
type owed struct {
	cause    string
	detected time.Time
	tried    time.Time
}

// Writable proves that etcd takes writes, by one. Nothing is killed for a revocation
// that cannot be made: a primary that serves would be lost with nobody to take its
// place.
func (g *Guard) Writable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, agent.EtcdTimeout)
	defer cancel()
	if _, err := g.Agent.Store.Commit(ctx, state.Put(state.Attempt(g.Agent.Name), g.ID)); err != nil {
		return fmt.Errorf("find out whether etcd takes writes: %w", err)
	}
	return nil
}

// Pay tries a replacement again that had to wait, until the member serves again or
// somebody else leads. Patroni may meanwhile do what it can.
func (g *Guard) Pay(ctx context.Context) {
	if g.owed == nil || time.Since(g.owed.tried) < retryOwed {
		return
	}
	o := *g.owed
	g.owed = nil
	if g.Want.Want != member.Running || g.Server.Alive() && g.Leader.Alive() {
		return
	}
	g.Replace(ctx, o.cause, o.detected)
	if g.owed != nil {
		g.owed.detected = o.detected
	}
}

// Owes reports whether a replacement has to wait.
func (g *Guard) Owes() bool { return g.owed != nil }
