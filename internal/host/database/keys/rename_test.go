package keys

import (
	"context"
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit/hosttest"
)

// A new agent finds its predecessor dead anywhere between the steps: the keys move once,
// and together.
func TestKeysMoveToAnotherName(t *testing.T) {
	t.Parallel()
	w := hosttest.New(t, 0)
	const from, to = "m1", "db-1.m1"
	move := func() error { return moveKeys(t.Context(), w.Store.Client, "db-1", from, to) }

	w.Must(move()) // nothing is there
	lease, err := w.Grant(t.Context(), "db-1", true)
	w.Must(err)
	for range 2 { // a second time is nothing
		w.Must(move())
		leader, held := w.Get(patroni.LeaderKey("db-1"))
		own, of := w.Get(patroni.MemberKey("db-1", to))
		old, _ := w.Get(patroni.MemberKey("db-1", from))
		if leader != to || own != `{"state":"running"}` || old != "" || held != of || held == 0 || held == int64(lease) {
			t.Errorf("%q leads by %x, it has %q by %x, the old one %q by %x", leader, held, own, of, old, lease)
		}
	}
	// The end of the old lease takes nothing away.
	_, err = w.Store.Client.Revoke(t.Context(), lease)
	w.Must(err)
	if l, err := fence.Read(t.Context(), w.Store.Client, "db-1"); err != nil || l.Leader != "m1" {
		t.Errorf("leadership %+v, %v", l, err)
	}
	// Another one's role is left alone.
	_, err = w.Store.Client.Put(t.Context(), patroni.LeaderKey("db-1"), "m2")
	w.Must(err)
	_, err = w.Grant(t.Context(), "db-1", false)
	w.Must(err)
	w.Must(move())
	if leader, _ := w.Get(patroni.LeaderKey("db-1")); leader != "m2" {
		t.Errorf("%q leads, want m2", leader)
	}
}

// racing changes the leader key behind the back of whoever has just read it.
type racing struct {
	clientv3.KV
	key string
}

func (r racing) Txn(ctx context.Context) clientv3.Txn {
	return &racingTxn{r.KV.Txn(ctx), r, ctx, false}
}

type racingTxn struct {
	clientv3.Txn
	r       racing
	ctx     context.Context
	changes bool
}

func (t *racingTxn) If(c ...clientv3.Cmp) clientv3.Txn {
	t.Txn, t.changes = t.Txn.If(c...), true
	return t
}

func (t *racingTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *racingTxn) Commit() (*clientv3.TxnResponse, error) {
	if t.changes {
		if _, err := t.r.KV.Put(t.ctx, t.r.key, "m2"); err != nil {
			return nil, err
		}
	}
	return t.Txn.Commit()
}

// Whoever was elected between reading and writing stays elected, and nothing moves.
func TestKeysThatChangeDoNotMove(t *testing.T) {
	t.Parallel()
	w := hosttest.New(t, 0)
	_, err := w.Grant(t.Context(), "db-1", true)
	w.Must(err)
	client := &clientv3.Client{KV: racing{w.Store.Client.KV, patroni.LeaderKey("db-1")}, Lease: w.Store.Client.Lease}
	if err := moveKeys(t.Context(), client, "db-1", "m1", "db-1.m1"); !errors.Is(err, errRenaming) {
		t.Errorf("error %v", err)
	}
	leader, _ := w.Get(patroni.LeaderKey("db-1"))
	if own, _ := w.Get(patroni.MemberKey("db-1", "m1")); leader != "m2" || own == "" {
		t.Errorf("%q leads, m1 has %q", leader, own)
	}
}
