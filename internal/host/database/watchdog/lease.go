// Package watchdog looks whether the Patroni or the PostgreSQL of a member hangs, beside the
// goroutine of the member, and says so again and again. What is done about it is for others.
//
// Patroni renews its lease in every turn of its loop. One that is frozen or
// deadlocked beside a PostgreSQL that lives does not, and looks healthy otherwise:
// its lease runs out, and another primary is elected while the old one still serves.
package watchdog

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/host/agent"
	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	"howdah/internal/model/patroni"
)

const (
	// LeaseEvery is how often the age of a lease is asked for.
	LeaseEvery = time.Second
	// leaseGap is the longest pause between two answers that still counts as etcd
	// answering: beyond it, it was away, or we were.
	leaseGap = 3 * LeaseEvery
)

// LeasePatience says when a Patroni that does not renew its lease counts as hanging.
type LeasePatience struct {
	// Old is the age from which on a lease is not being renewed: by then a Patroni
	// that only lost etcd has stepped down.
	Old time.Duration
	// Primary and Standby are for how long a lease has to be seen old. That of a
	// standby does no harm before someone wants to promote it.
	Primary, Standby time.Duration
	// Settle is for how long etcd must have answered without a break: when it comes
	// back, all leases are old, and whoever is well renews them.
	Settle time.Duration
	// Start is for how long a Patroni that was just started is left alone: on a busy
	// machine it takes many seconds to renew the lease that the one before it left.
	Start time.Duration
}

// DefaultLeasePatience is what agents have.
var DefaultLeasePatience = LeasePatience{
	Old:     patroni.SelfDemotion * time.Second,
	Primary: 2 * time.Second,
	Standby: patroni.TTL * time.Second,
	Settle:  patroni.SelfDemotion * time.Second,
	Start:   15 * time.Second,
}

// LeaseLook is what etcd answered about the lease of a member's Patroni.
type LeaseLook struct {
	at    time.Time
	Leads bool
	gone  bool          // there is no lease
	age   time.Duration // since it was renewed, in whole seconds, rounded up
}

// String says in what it is bad.
func (l LeaseLook) String() string {
	if l.gone {
		return "its lease has run out"
	}
	return fmt.Sprintf("it has not renewed its lease for %s", l.age)
}

// leaseJudge makes a verdict of looks at one Patroni. Without answers there is none:
// a Patroni in failsafe mode is healthy, and its lease is old.
type leaseJudge struct {
	patience  LeasePatience
	began     time.Time // this Patroni was first seen
	answering time.Time // etcd has answered since
	last      time.Time // answer
	stale     time.Time // the lease has been seen old since
}

// reset forgets all answers: etcd does not answer, or it is another Patroni.
func (j *leaseJudge) reset() { *j = leaseJudge{patience: j.patience, began: j.began} }

// hangs reports whether Patroni hangs, after one more look.
func (j *leaseJudge) hangs(l LeaseLook) bool {
	if l.at.Sub(j.last) > leaseGap {
		j.reset()
		j.answering = l.at
	}
	j.last = l.at
	if !l.gone && l.age < j.patience.Old {
		j.stale = time.Time{}
		return false
	}
	if j.stale.IsZero() {
		j.stale = l.at
	}
	enough := j.patience.Standby
	if l.Leads {
		enough = j.patience.Primary
	}
	return l.at.Sub(j.stale) >= enough && l.at.Sub(j.answering) >= j.patience.Settle && l.at.Sub(j.began) >= j.patience.Start
}

// Lease looks after the lease of a member's Patroni, beside the member, which
// never waits for etcd.
type Lease struct {
	// All exported are required.
	Agent    *agent.Agent
	Patience LeasePatience
	Tell     func(proc.Process, LeaseLook) // that it hangs

	mu     sync.Mutex
	target LeaseTarget // guarded by mu
	heard  Says        // guarded by mu
}

// Says is what a Patroni keeps in etcd about itself; not known while etcd does not
// answer.
type Says struct {
	Known  bool
	State  string // of its PostgreSQL
	Config string // digest of the configuration that it runs with
}

// Said is what the Patroni that is looked after said last.
func (w *Lease) Said() Says {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard
}

// Hear notes what the Patroni said; Run does so, too.
func (w *Lease) Hear(s Says) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = s
}

// LeaseTarget is a Patroni that has a PostgreSQL; the zero one is none.
type LeaseTarget struct {
	Scope, Name string
	Patroni     proc.Process
}

// Aim has another Patroni looked after.
func (w *Lease) Aim(t LeaseTarget) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.target != t {
		w.target, w.heard = t, Says{}
	}
}

// Aimed is the one that is looked after.
func (w *Lease) Aimed() LeaseTarget {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.target
}

// Run looks until ctx ends.
func (w *Lease) Run(ctx context.Context) {
	j := leaseJudge{patience: w.Patience}
	var last LeaseTarget
	for pace.Sleep(ctx, LeaseEvery) {
		target := w.Aimed()
		if target != last {
			j.reset()
			last, j.began = target, time.Now()
		}
		if target == (LeaseTarget{}) || w.Agent.Store == nil {
			continue
		}
		look, says, err := askLease(ctx, w.Agent.Store.Client, target)
		w.Hear(says)
		if err != nil {
			j.reset()
			continue
		}
		if j.hangs(look) {
			w.Tell(target.Patroni, look)
			j.reset()
		}
	}
}

// askLease asks for the lease under the leader key of a primary, or the member key of
// a standby: Patroni keeps both under one.
func askLease(ctx context.Context, client *clientv3.Client, t LeaseTarget) (LeaseLook, Says, error) {
	ctx, cancel := context.WithTimeout(ctx, LeaseEvery)
	defer cancel()
	answer, err := client.Txn(ctx).Then(
		clientv3.OpGet(patroni.LeaderKey(t.Scope)), clientv3.OpGet(patroni.MemberKey(t.Scope, t.Name))).Commit()
	if err != nil {
		return LeaseLook{}, Says{}, fmt.Errorf("ask for the lease of %s.%s: %w", t.Scope, t.Name, err)
	}
	var look LeaseLook
	var says Says
	var lease int64
	if kvs := answer.Responses[1].GetResponseRange().Kvs; len(kvs) > 0 {
		lease = kvs[0].Lease
		if m, err := patroni.ParseMember(kvs[0].Value); err == nil {
			says = Says{Known: true, State: m.State, Config: m.Config()}
		}
	}
	if kvs := answer.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 && string(kvs[0].Value) == t.Name {
		look.Leads, lease = true, kvs[0].Lease
	}
	if lease == 0 {
		look.at, look.gone = time.Now(), true
		return look, says, nil
	}
	left, err := client.TimeToLive(ctx, clientv3.LeaseID(lease))
	if err != nil {
		return LeaseLook{}, Says{}, fmt.Errorf("ask for the lease of %s.%s: %w", t.Scope, t.Name, err)
	}
	look.at = time.Now()
	look.gone = left.TTL < 0
	look.age = time.Duration(left.GrantedTTL-left.TTL) * time.Second
	return look, says, nil
}
