package database

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// Patroni renews its lease in every turn of its loop. One that is frozen or
// deadlocked beside a PostgreSQL that lives does not, and looks healthy otherwise:
// its lease runs out, and another primary is elected while the old one still serves.

const (
	// leaseEvery is how often the age of a lease is asked for.
	leaseEvery = time.Second
	// leaseGap is the longest pause between two answers that still counts as etcd
	// answering: beyond it, it was away, or we were.
	leaseGap = 3 * leaseEvery
)

// leasePatience says when a Patroni that does not renew its lease counts as hanging.
type leasePatience struct {
	// old is the age from which on a lease is not being renewed: by then a Patroni
	// that only lost etcd has stepped down.
	old time.Duration
	// primary and standby are for how long a lease has to be seen old. That of a
	// standby does no harm before someone wants to promote it.
	primary, standby time.Duration
	// settle is for how long etcd must have answered without a break: when it comes
	// back, all leases are old, and whoever is well renews them.
	settle time.Duration
	// start is for how long a Patroni that was just started is left alone: on a busy
	// machine it takes many seconds to renew the lease that the one before it left.
	start time.Duration
}

var defaultLeasePatience = leasePatience{
	old:     patroni.SelfDemotion * time.Second,
	primary: 2 * time.Second,
	standby: patroni.TTL * time.Second,
	settle:  patroni.SelfDemotion * time.Second,
	start:   15 * time.Second,
}

// leaseLook is what etcd answered about the lease of a member's Patroni.
type leaseLook struct {
	at    time.Time
	leads bool
	gone  bool          // there is no lease
	age   time.Duration // since it was renewed, in whole seconds, rounded up
}

func (l leaseLook) String() string {
	if l.gone {
		return "its lease has run out"
	}
	return fmt.Sprintf("it has not renewed its lease for %s", l.age)
}

// leaseJudge makes a verdict of looks at one Patroni. Without answers there is none:
// a Patroni in failsafe mode is healthy, and its lease is old.
type leaseJudge struct {
	patience  leasePatience
	began     time.Time // this Patroni was first seen
	answering time.Time // etcd has answered since
	last      time.Time // answer
	stale     time.Time // the lease has been seen old since
}

// reset forgets all answers: etcd does not answer, or it is another Patroni.
func (j *leaseJudge) reset() { *j = leaseJudge{patience: j.patience, began: j.began} }

// hangs reports whether Patroni hangs, after one more look.
func (j *leaseJudge) hangs(l leaseLook) bool {
	if l.at.Sub(j.last) > leaseGap {
		j.reset()
		j.answering = l.at
	}
	j.last = l.at
	if !l.gone && l.age < j.patience.old {
		j.stale = time.Time{}
		return false
	}
	if j.stale.IsZero() {
		j.stale = l.at
	}
	enough := j.patience.standby
	if l.leads {
		enough = j.patience.primary
	}
	return l.at.Sub(j.stale) >= enough && l.at.Sub(j.answering) >= j.patience.settle && l.at.Sub(j.began) >= j.patience.start
}

// leaseWatch looks after the lease of a member's Patroni, beside the runner, which
// never waits for etcd.
type leaseWatch struct {
	host *Host
	tell func(proc.Process, leaseLook) // that it hangs

	mu     sync.Mutex
	target leaseTarget // guarded by mu
	heard  patroniSays // guarded by mu
}

// patroniSays is what a Patroni keeps in etcd about itself; not known while etcd does not
// answer.
type patroniSays struct {
	known  bool
	state  string // of its PostgreSQL
	config string // digest of the configuration that it runs with
}

// said is what the Patroni that is looked after said last.
func (w *leaseWatch) said() patroniSays {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard
}

func (w *leaseWatch) hear(s patroniSays) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = s
}

// leaseTarget is a Patroni that has a PostgreSQL; the zero one is none.
type leaseTarget struct {
	scope, name string
	patroni     proc.Process
}

func (w *leaseWatch) aim(t leaseTarget) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.target != t {
		w.target, w.heard = t, patroniSays{}
	}
}

func (w *leaseWatch) aimed() leaseTarget {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.target
}

func (w *leaseWatch) run(ctx context.Context) {
	j := leaseJudge{patience: w.host.leasePatience}
	var last leaseTarget
	for pace.Sleep(ctx, leaseEvery) {
		target := w.aimed()
		if target != last {
			j.reset()
			last, j.began = target, time.Now()
		}
		if target == (leaseTarget{}) || w.host.Store == nil {
			continue
		}
		look, says, err := askLease(ctx, w.host.Store.Client, target)
		w.hear(says)
		if err != nil {
			j.reset()
			continue
		}
		if j.hangs(look) {
			w.tell(target.patroni, look)
			j.reset()
		}
	}
}

// askLease asks for the lease under the leader key of a primary, or the member key of
// a standby: Patroni keeps both under one.
func askLease(ctx context.Context, client *clientv3.Client, t leaseTarget) (leaseLook, patroniSays, error) {
	ctx, cancel := context.WithTimeout(ctx, leaseEvery)
	defer cancel()
	answer, err := client.Txn(ctx).Then(
		clientv3.OpGet(patroni.LeaderKey(t.scope)), clientv3.OpGet(patroni.MemberKey(t.scope, t.name))).Commit()
	if err != nil {
		return leaseLook{}, patroniSays{}, fmt.Errorf("ask for the lease of %s.%s: %w", t.scope, t.name, err)
	}
	var look leaseLook
	var says patroniSays
	var lease int64
	if kvs := answer.Responses[1].GetResponseRange().Kvs; len(kvs) > 0 {
		lease = kvs[0].Lease
		if m, err := patroni.ParseMember(kvs[0].Value); err == nil {
			says = patroniSays{known: true, state: m.State, config: m.Config()}
		}
	}
	if kvs := answer.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 && string(kvs[0].Value) == t.name {
		look.leads, lease = true, kvs[0].Lease
	}
	if lease == 0 {
		look.at, look.gone = time.Now(), true
		return look, says, nil
	}
	left, err := client.TimeToLive(ctx, clientv3.LeaseID(lease))
	if err != nil {
		return leaseLook{}, patroniSays{}, fmt.Errorf("ask for the lease of %s.%s: %w", t.scope, t.name, err)
	}
	look.at = time.Now()
	look.gone = left.TTL < 0
	look.age = time.Duration(left.GrantedTTL-left.TTL) * time.Second
	return look, says, nil
}

// aimLeases has the lease looked after while there is both a Patroni and a PostgreSQL.
func (r *runner) aimLeases() {
	if r.Want.Want == member.Running && r.patroni.Alive() && r.postmaster.Alive() {
		r.leases.aim(leaseTarget{r.Want.Scope, r.named, r.patroni.Process})
		return
	}
	r.leases.aim(leaseTarget{})
}

// endHung kills a Patroni that hangs, and nothing else: what becomes of its
// PostgreSQL is decided as for any orphan.
func (r *runner) endHung(hung proc.Process, look leaseLook) {
	if r.Want.Want != member.Running || !r.patroni.Alive() || r.patroni.Process != hung {
		return
	}
	r.Log.Warn("Patroni hangs beside PostgreSQL, killing it", "why", look.String(), "leads", look.leads)
	if err := r.host.Procs.Signal(hung, syscall.SIGKILL); err != nil {
		r.Log.Warn("kill Patroni", "error", err)
		return
	}
	r.hung = look.String()
}

// explainOrphan says why a PostgreSQL has no Patroni any more.
func (r *runner) explainOrphan() string {
	if r.hung == "" {
		return "Patroni of the primary died"
	}
	return "Patroni of the primary hung: " + r.hung
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
