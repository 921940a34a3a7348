package guard

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/host/agent"
	"howdah/internal/host/agent/agenttest"
	"howdah/internal/host/proc"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// post is a member with a process, and its guard.
type post struct {
	*hosttest.Site
	*Guard
	process proc.Process
	revoked int         // so often the guard said so
	full    atomic.Bool // etcd takes no writes
}

func newPost(t *testing.T) *post {
	t.Helper()
	p := &post{Site: hosttest.New(t, 0)}
	a := agenttest.Open(p.Site)
	_, pair, err := p.Identity()
	p.Must(err)
	client, err := etcd.Dial(t.Context(), p.Etcd, pair)
	p.Must(err)
	t.Cleanup(func() { client.Close() })
	client.KV = refusing{client.KV, &p.full}
	a.Store = &state.Store{Client: client}
	m := agent.NewMember(a, "db-1.m1")
	m.Group, err = a.Procs.Group(m.ID)
	p.Must(err)
	m.Want = p.Site.Assignment("db-1", 1)
	p.Must(a.MakeMemberDir(m.ID))
	p.process, err = m.Group.Start(t.Context(), proc.Command{
		Path: "/bin/sleep", Args: []string{"1000"}, Dir: "/", LogFile: filepath.Join(a.Dir, "out"), Env: []string{"PATH=/bin"},
	})
	p.Must(err)
	p.Guard = &Guard{Member: m, Agent: a, DataDir: filepath.Join(m.Dir(), patroni.DataDir), Revoked: func() { p.revoked++ }}
	return p
}

func (p *post) lives() bool { return p.Agent.Procs.Alive(p.process) }

// incident waits for the one that was recorded.
func (p *post) incident() (i fence.Incident) {
	p.Helper()
	testkit.Eventually(p.T, hosttest.Soon, func() error {
		all, err := state.List[fence.Incident](p.Context(), p.Site.Store, state.IncidentRoot+"db-1/")
		if err == nil && len(all) != 1 {
			err = fmt.Errorf("%d incidents", len(all))
		}
		if err == nil {
			i = all[0].Value
		}
		return err
	})
	return i
}

// refusing is an etcd that takes no writes while it is full.
type refusing struct {
	clientv3.KV
	full *atomic.Bool
}

func (r refusing) Txn(ctx context.Context) clientv3.Txn {
	return &refusingTxn{Txn: r.KV.Txn(ctx), full: r.full}
}

type refusingTxn struct {
	clientv3.Txn
	full   *atomic.Bool
	writes bool
}

func (t *refusingTxn) If(c ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(c...)
	return t
}

func (t *refusingTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	for _, op := range ops {
		t.writes = t.writes || op.IsPut() || op.IsDelete()
	}
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *refusingTxn) Commit() (*clientv3.TxnResponse, error) {
	if t.writes && t.full.Load() {
		return nil, errors.New("etcdserver: mvcc: database space exceeded")
	}
	return t.Txn.Commit()
}

// A primary is replaced if it leads and a standby has everything; nobody else is touched.
func TestReplace(t *testing.T) {
	for _, c := range []struct {
		name, leader, standbys string
		want                   bool
	}{
		{"it leads, and a standby is in sync", "m1", "m2", true},
		{"another one leads", "m2", "m1", false},
		{"nobody is in sync", "m1", "", false},
		{"nobody leads", "", "m2", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPost(t)
			p.Leads("db-1", c.leader, c.standbys)
			detected := time.Now()
			if got := p.Replace(t.Context(), "it died", detected); got != c.want || p.lives() == c.want || (p.revoked == 1) != c.want || p.Owes() {
				t.Fatalf("%v, want %v; its process lives: %v; revoked %d times", got, c.want, p.lives(), p.revoked)
			}
			l, err := p.Leadership(t.Context())
			if p.Must(err); c.want && l.Leader != "" || !c.want && l.Leader != c.leader {
				t.Errorf("%q leads", l.Leader)
			}
			if !c.want {
				return
			}
			if i := p.incident(); i.Cause != "it died" || !i.Detected.Equal(detected) || i.Fenced.IsZero() || i.Revoked.Before(i.Fenced) || i.Proof.Method != "killed" {
				t.Errorf("incident %+v", i)
			}
			if dead, err := state.Get[fence.Death](t.Context(), p.Site.Store, state.Death("db-1", "m1")); err != nil || !dead.Value.Proof.Off() {
				t.Errorf("the death is told of as %+v, %v", dead.Value, err)
			}
		})
	}
}

// Nothing is killed while etcd takes no writes, and the replacement is made up for once it does.
func TestAReplacementIsOwed(t *testing.T) {
	p := newPost(t)
	p.Leads("db-1", "m1", "m2")
	p.full.Store(true)
	detected := time.Now()
	if p.Replace(t.Context(), "it died", detected) || !p.lives() || !p.Owes() {
		t.Fatalf("its process lives: %v; owed: %v", p.lives(), p.Owes())
	}
	testkit.Eventually(t, hosttest.Soon, func() error {
		p.Pay(t.Context())
		if !p.lives() || !p.Owes() {
			t.Fatalf("still full: its process lives: %v; owed: %v", p.lives(), p.Owes())
		}
		if time.Since(detected) < 3*retryOwed {
			return errors.New("it was not tried again")
		}
		return nil
	})
	p.full.Store(false)
	testkit.Eventually(t, hosttest.Soon, func() error {
		if p.Pay(t.Context()); p.Owes() {
			return errors.New("it is owed")
		}
		return nil
	})
	if i := p.incident(); p.lives() || p.revoked != 1 || i.Cause != "it died" {
		t.Errorf("its process lives: %v; revoked %d times; incident %+v", p.lives(), p.revoked, i)
	}
}
