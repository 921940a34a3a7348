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
	"howdah/internal/host/database/watchdog"
	"howdah/internal/host/pace"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// impatient makes the verdict come sooner.
func impatient(a *Host) {
	a.leasePatience = watchdog.LeasePatience{Old: 2 * time.Second, Primary: time.Second, Standby: 2 * time.Second, Settle: time.Second}
}

// leases has Patroni's keys of m1 hang on a lease, and renews it as a Patroni does that
// is well, from before there is one. The answer has the first Patroni hang: its lease is
// renewed again only by the next one, which makes a new lease where the old one is gone.
func (w *world) leases(scope, leader, standbys string) (hang func()) {
	w.Helper()
	w.Leads(scope, leader, standbys)
	lease, err := w.Grant(w.Context(), scope, leader == "m1")
	w.Must(err)
	var hung atomic.Bool
	ctx, cancel := context.WithCancel(w.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for pace.Sleep(ctx, watchdog.LeaseEvery/10) {
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
		if r.leases.Aimed() == (watchdog.LeaseTarget{}) {
			return errors.New("nobody is looked at")
		}
		return nil
	})
	if starts := w.Lines(as.ID, "starts"); len(starts) != 1 {
		t.Errorf("Patroni was started %d times", len(starts))
	}
}
