package database

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"howdah/internal/failover/fence"
	"howdah/internal/host/pace"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// Ages of a lease as they are seen once a second; none is a question that etcd did
// not answer, and lost a lease that has run out.
const (
	none = -1
	lost = -2
)

// ageing is n looks at a lease that nobody renews, from an age on.
func ageing(from, n int) (ages []int) {
	for i := range n {
		ages = append(ages, from+i)
	}
	return ages
}

func repeat(age, n int) (ages []int) {
	for range n {
		ages = append(ages, age)
	}
	return ages
}

func join(parts ...[]int) (all []int) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func TestLeaseJudge(t *testing.T) {
	well := repeat(1, 20)
	cases := []struct {
		name  string
		leads bool
		ages  []int
		after int // looks until the verdict; 0: none is made
	}{
		{"a primary that renews", true, repeat(1, 100), 0},
		{"a slow loop", true, repeat(7, 100), 0},
		{"one late renewal", true, join(well, []int{8, 9, 1}, well), 0},
		{"late again and again", true, join(well, []int{8, 9, 1, 8, 9, 1, 8, 9, 1}), 0},
		{"a frozen primary", true, join(well, ageing(2, 9)), 29},
		{"a frozen standby", false, join(well, ageing(2, 18), repeat(lost, 20)), 47},
		{"a standby that comes back in time", false, join(well, ageing(2, 18), repeat(lost, 5), well), 0},
		{"etcd is away", true, join(well, repeat(none, 100)), 0},
		{"etcd was away, and a healthy primary renews", true, join(well, repeat(none, 15), ageing(15, 4), well), 0},
		{"etcd was away, and it has hung meanwhile", true, join(well, repeat(none, 5), ageing(7, 20)), 34},
		{"etcd answers now and then", true, join(well, []int{8, none, 9, none, 10, none, 11, none, 12, none, 13}), 0},
		{"an agent that starts beside an old lease", true, ageing(9, 11), 9},
		{"no lease at all", false, repeat(lost, 30), 21},
	}
	for _, c := range cases {
		j := leaseJudge{patience: defaultLeasePatience}
		now, after := time.Now(), 0
		for i, age := range c.ages {
			now = now.Add(leaseEvery)
			if age == none {
				j.reset()
				continue
			}
			look := leaseLook{at: now, leads: c.leads, gone: age == lost, age: time.Duration(age) * time.Second}
			if j.hangs(look) && after == 0 {
				after = i + 1
			}
		}
		if after != c.after {
			t.Errorf("%s: the verdict is made after %d looks, want %d", c.name, after, c.after)
		}
	}
}

// A Patroni that was just started has not renewed the lease of the one before it.
func TestLeaseJudgeOfAStart(t *testing.T) {
	began := time.Now()
	j := leaseJudge{patience: defaultLeasePatience, began: began}
	for second := range 20 {
		at := began.Add(time.Duration(second) * time.Second)
		look := leaseLook{at: at, leads: true, age: time.Duration(second) * time.Second}
		if hangs, want := j.hangs(look), second >= 15; hangs != want {
			t.Errorf("after %d s it hangs: %v", second, hangs)
		}
	}
}

// Looks far from each other are no evidence: the host may have slept, and Patroni
// with it.
func TestLeaseJudgeAfterASleep(t *testing.T) {
	j := leaseJudge{patience: defaultLeasePatience}
	at := time.Now()
	for range 20 {
		at = at.Add(leaseEvery)
		if j.hangs(leaseLook{at: at, leads: true, age: time.Second}) {
			t.Fatal("a healthy one hangs")
		}
	}
	for range 3 {
		at = at.Add(time.Minute)
		if j.hangs(leaseLook{at: at, leads: true, age: 15 * time.Second}) {
			t.Error("a verdict at the first look after a sleep")
		}
	}
}

// impatient makes the verdict come sooner.
func impatient(a *Host) {
	a.leasePatience = leasePatience{old: 2 * time.Second, primary: time.Second, standby: 2 * time.Second, settle: time.Second}
}

// leases has Patroni's keys of m1 hang on a lease, and renews it as a Patroni does that
// is well, from before there is one. The answer has the first Patroni hang: its lease is
// renewed again only by the next one, which makes a new lease where the old one is gone.
func (w *world) leases(scope, leader, standbys string) (hang func()) {
	w.Helper()
	w.leads(scope, leader, standbys)
	lease, err := w.Grant(w.Context(), scope, leader == "m1")
	w.Must(err)
	var hung atomic.Bool
	ctx, cancel := context.WithCancel(w.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for pace.Sleep(ctx, leaseEvery/10) {
			starts, _ := os.ReadFile(filepath.Join(w.Dir, "members", scope+".m1", "starts"))
			if hung.Load() && bytes.Count(starts, []byte("\n")) < 2 {
				continue
			}
			if _, err := w.Store.Client.KeepAliveOnce(ctx, lease); errors.Is(err, rpctypes.ErrLeaseNotFound) {
				lease, _ = w.Grant(ctx, scope, false)
			}
		}
	})
	w.Cleanup(func() { cancel(); done.Wait() })
	return func() { hung.Store(true) }
}

// incident waits for the first incident of a scope.
func (w *world) incident(scope string) (first fence.Incident) {
	w.Helper()
	testkit.Eventually(w.T, hosttest.Soon, func() error {
		all := w.incidents(scope)
		if len(all) == 0 {
			return errors.New("no incident")
		}
		first = all[0]
		return nil
	})
	return first
}

// A Patroni that does not renew its lease, beside a primary that lives: the member is
// fenced and replaced like one whose Patroni died.
func TestAHungPatroniOfAPrimaryIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	hang := w.leases("db-1", "m1", "m2")
	w.run(impatient)
	a := w.startPrimary()
	before := w.Lines(a.ID, "data/postmaster.pid")[0]
	hang()
	i := w.incident("db-1")
	if i.Kind != fence.Failover || !strings.Contains(i.Cause, "hung") || !strings.Contains(i.Cause, "renew") || i.Proof.Method != "killed" {
		t.Errorf("incident %+v", i)
	}
	if leader := w.leader("db-1"); leader != "" {
		t.Errorf("%s still leads", leader)
	}
	w.restarted(a.ID, 2)
	testkit.Eventually(t, hosttest.Soon, func() error {
		if after := w.Lines(a.ID, "data/postmaster.pid"); after[0] == before {
			return errors.New("PostgreSQL was not fenced")
		}
		return nil
	})
}

// Nobody could replace it, or it does not lead: a new Patroni takes PostgreSQL over.
func TestAHungPatroniOfAnotherIsStartedAgain(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, leader, standbys string }{
		{"a primary alone", "m1", ""},
		{"a standby", "m2", "m1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, serves)
			hang := w.leases("db-1", c.leader, c.standbys)
			w.run(impatient)
			a := w.startPrimary()
			before := w.Lines(a.ID, "data/postmaster.pid")[0]
			hang()
			i := w.incident("db-1")
			if i.Kind != fence.Hang || !strings.Contains(i.Cause, "lease") || i.Member != "m1" {
				t.Errorf("incident %+v", i)
			}
			w.restarted(a.ID, 2)
			w.Awaits(a.ID, hosttest.Soon, serving)
			if after := w.Lines(a.ID, "data/postmaster.pid")[0]; after != before {
				t.Errorf("PostgreSQL is process %s, was %s", after, before)
			}
			if leader := w.leader("db-1"); leader != c.leader {
				t.Errorf("%q leads, want %q", leader, c.leader)
			}
		})
	}
}

// While etcd does not answer nobody is condemned.
func TestNoVerdictWithoutEtcd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	w.leases("db-1", "m1", "m2")
	a, _ := w.run(impatient)
	as := w.startPrimary()
	w.Home.StopEtcd()
	r := a.runner(t.Context(), as.ID)
	began := time.Now()
	testkit.Eventually(t, hosttest.Soon, func() error {
		if time.Since(began) < 5*time.Second {
			return errors.New("not yet")
		}
		if r.leases.aimed() == (leaseTarget{}) {
			return errors.New("nobody is looked at")
		}
		return nil
	})
	if starts := w.Lines(as.ID, "starts"); len(starts) != 1 {
		t.Errorf("Patroni was started %d times", len(starts))
	}
}
