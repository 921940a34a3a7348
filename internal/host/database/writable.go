package database

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

// writable proves that etcd takes writes, by one. Nothing is killed for a revocation
// that cannot be made: a primary that serves would be lost with nobody to take its
// place.
func (r *runner) writable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, agent.EtcdTimeout)
	defer cancel()
	if _, err := r.host.Store.Commit(ctx, state.Put(state.Attempt(r.host.Name), r.ID)); err != nil {
		return fmt.Errorf("find out whether etcd takes writes: %w", err)
	}
	return nil
}

// payOwed tries a replacement again that had to wait, until the member serves again or
// somebody else leads. Patroni may meanwhile do what it can.
func (r *runner) payOwed(ctx context.Context) {
	if r.owed == nil || time.Since(r.owed.tried) < retryOwed {
		return
	}
	o := *r.owed
	r.owed = nil
	if r.Want.Want != member.Running || r.postmaster.Alive() && r.patroni.Alive() {
		return
	}
	r.replacePrimary(ctx, o.cause, o.detected)
	if r.owed != nil {
		r.owed.detected = o.detected
	}
}
