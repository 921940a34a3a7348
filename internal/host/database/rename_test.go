package database

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// follows has a PostgreSQL that follows another one, unless there is one already.
var follows = strings.Replace(serves, "if !", "touch data/standby.signal\nif !", 1)

// configured is the name in the configuration of a member's Patroni.
func (w *world) configured(id string) string {
	text, _ := os.ReadFile(filepath.Join(w.Dir, "members", id, patroni.ConfigFile))
	var conf struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(text, &conf) // it is not there yet
	return conf.Name
}

// get is the value of a key and its lease; "" for none.
func (w *world) get(key string) (value string, lease int64) {
	w.Helper()
	answer, err := w.Store.Client.Get(w.Context(), key)
	w.Must(err)
	if len(answer.Kvs) == 0 {
		return "", 0
	}
	return string(answer.Kvs[0].Value), answer.Kvs[0].Lease
}

// A member of a database that follows another one gets another name: Patroni is started
// again with its keys, and PostgreSQL goes on. Of all others Patroni keeps its name.
func TestAFollowerIsRenamedBesideItsPostgreSQL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		script  string
		follows bool
		want    string
	}{
		{"follows", follows, true, "db-1.m1"},
		{"a primary", serves, false, "m1"},
		{"was promoted just now", serves, true, "m1"},
		{"shall not follow any more", follows, false, "m1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.script)
			w.run(nil)
			a := w.startPrimary()
			lease, err := w.grant(t.Context(), "db-1", true)
			w.Must(err)
			before := w.Lines(a.ID, "data/postmaster.pid")[0]

			a.Generation, a.OwnName = 2, true
			if tt.follows {
				a.Cluster.Upstream = &patroni.Upstream{Host: "10.0.0.1", Port: 5432, Slot: "s"}
			}
			w.Assign(a)
			if tt.want == "m1" {
				w.passed("db-2")
				w.Awaits(a.ID, hosttest.Soon, func(r member.Report) error {
					if r.Rendered < 2 && r.Generation < 2 && tt.want != w.configured(a.ID) {
						return fmt.Errorf("report %+v", r)
					}
					return nil
				})
			} else {
				w.restarted(a.ID, 2)
			}
			if got := w.configured(a.ID); got != tt.want {
				t.Errorf("Patroni is called %s, want %s", got, tt.want)
			}
			leader, held := w.get(patroni.LeaderKey("db-1"))
			if leader != tt.want || held == 0 || (held == int64(lease)) != (tt.want == "m1") {
				t.Errorf("%q leads by the lease %x, want %q; the old lease is %x", leader, held, tt.want, lease)
			}
			w.Awaits(a.ID, hosttest.Soon, func(r member.Report) error {
				if !r.Patroni || !r.Postgres {
					return fmt.Errorf("report %+v", r)
				}
				return nil
			})
			if after := w.Lines(a.ID, "data/postmaster.pid")[0]; after != before {
				t.Error("PostgreSQL was started again")
			}
			if all := w.incidents("db-1"); len(all) > 0 {
				t.Errorf("incidents %+v", all)
			}
		})
	}
}

// A new agent finds its predecessor dead anywhere between the steps: the keys move once,
// and together.
func TestKeysMoveToAnotherName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	const from, to = "m1", "db-1.m1"
	move := func() error { return moveKeys(t.Context(), w.Store.Client, "db-1", from, to) }

	w.Must(move()) // nothing is there
	lease, err := w.grant(t.Context(), "db-1", true)
	w.Must(err)
	for range 2 { // a second time is nothing
		w.Must(move())
		leader, held := w.get(patroni.LeaderKey("db-1"))
		own, of := w.get(patroni.MemberKey("db-1", to))
		old, _ := w.get(patroni.MemberKey("db-1", from))
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
	_, err = w.grant(t.Context(), "db-1", false)
	w.Must(err)
	w.Must(move())
	if leader, _ := w.get(patroni.LeaderKey("db-1")); leader != "m2" {
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
	w := newWorld(t, waits)
	_, err := w.grant(t.Context(), "db-1", true)
	w.Must(err)
	client := &clientv3.Client{KV: racing{w.Store.Client.KV, patroni.LeaderKey("db-1")}, Lease: w.Store.Client.Lease}
	if err := moveKeys(t.Context(), client, "db-1", "m1", "db-1.m1"); !errors.Is(err, errRenaming) {
		t.Errorf("error %v", err)
	}
	leader, _ := w.get(patroni.LeaderKey("db-1"))
	if own, _ := w.get(patroni.MemberKey("db-1", "m1")); leader != "m2" || own == "" {
		t.Errorf("%q leads, m1 has %q", leader, own)
	}
}

// What the agent that renamed left half done is ended by the next one: the name on disk
// says whether the keys were moved.
func TestARenameThatWasCutShortIsEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, follows)
	_, stop := w.run(nil)
	a := w.startPrimary()
	_, err := w.grant(t.Context(), "db-1", true)
	w.Must(err)
	stop()
	w.kill(a.ID, "starts")
	a.Generation, a.OwnName = 2, true
	a.Cluster.Upstream = &patroni.Upstream{Host: "10.0.0.1", Port: 5432, Slot: "s"}
	w.Assign(a)
	before := w.Lines(a.ID, "data/postmaster.pid")[0]
	w.run(nil)
	testkit.Eventually(t, hosttest.Soon, func() error {
		leader, _ := w.get(patroni.LeaderKey("db-1"))
		if leader != "db-1.m1" || w.configured(a.ID) != leader {
			return fmt.Errorf("%q leads, Patroni is called %q", leader, w.configured(a.ID))
		}
		return nil
	})
	if after := w.Lines(a.ID, "data/postmaster.pid")[0]; after != before {
		t.Error("PostgreSQL was started again")
	}
}
