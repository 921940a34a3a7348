package database

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

func serving(r member.Report) error {
	if !r.Postgres {
		return fmt.Errorf("report %+v", r)
	}
	return hosttest.Running(1)(r)
}

// startPrimary has a member run whose PostgreSQL is in production.
func (w *world) startPrimary() member.Assignment {
	w.Helper()
	return w.start(serving)
}

// start has a member run, and waits for what it shall report.
func (w *world) start(until func(member.Report) error) member.Assignment {
	w.Helper()
	a := w.Assignment("db-1", 1)
	w.Assign(a)
	w.Awaits(a.ID, hosttest.Soon, until)
	return a
}

// restarted waits until the script has noted so many starts: a Patroni is reported to
// run before its first line is read.
func (w *world) restarted(id string, times int) {
	w.Helper()
	testkit.Eventually(w.T, hosttest.Soon, func() error {
		if starts := w.Lines(id, "starts"); len(starts) != times {
			return fmt.Errorf("%d starts, want %d", len(starts), times)
		}
		return nil
	})
}

// PostgreSQL of a primary dies while a standby has everything: the member is
// fenced and proved dead, its key is taken away, and it starts again.
func TestADeadPrimaryIsFencedAndRevoked(t *testing.T) {
	t.Parallel()
	for _, died := range []string{"PostgreSQL", "Patroni"} {
		t.Run(died, func(t *testing.T) {
			w := newWorld(t, serves)
			w.run(nil)
			a := w.startPrimary()
			w.Leads("db-1", "m1", "m2")
			before, err := fence.Read(t.Context(), w.Store.Client, "db-1")
			w.Must(err)
			w.kill(a.ID, map[string]string{"PostgreSQL": "data/postmaster.pid", "Patroni": "starts"}[died])
			testkit.Eventually(t, hosttest.Soon, func() error {
				if leader := w.leader("db-1"); leader != "" {
					return fmt.Errorf("%s still leads", leader)
				}
				if len(w.incidents("db-1")) == 0 {
					return errors.New("no incident")
				}
				return nil
			})
			w.restarted(a.ID, 2)
			after, err := fence.Read(t.Context(), w.Store.Client, "db-1")
			w.Must(err)
			if after.SyncRevision == before.SyncRevision || after.Sync.Leader != "m1" || after.Sync.Standbys[0] != "m2" {
				t.Errorf("the sync key: %+v, before %+v", after, before)
			}
			i := w.incidents("db-1")[0]
			if i.Kind != fence.Failover || i.Planned || i.Member != "m1" || !strings.HasPrefix(i.Cause, died) || i.Proof.Method != "killed" {
				t.Errorf("incident %+v", i)
			}
			if i.Detected.After(i.Fenced) || i.Fenced.After(i.Revoked) {
				t.Errorf("detected %s, fenced %s, revoked %s", i.Detected, i.Fenced, i.Revoked)
			}
		})
	}
}

// What must not be replaced keeps its key, whoever else could take it, and its Patroni is
// told at once to start PostgreSQL again.
func TestNobodyIsRevokedWhoseCommitsCouldBeLost(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, leader, standbys string }{
		{"no standby is in sync", "m1", ""},
		{"another member leads", "m2", "m1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, serves)
			w.run(nil)
			a := w.startPrimary()
			woken := make(chan string, 10)
			w.answers(a, func(_ http.ResponseWriter, r *http.Request) { woken <- r.Method + " " + r.URL.Path })
			w.Leads("db-1", c.leader, c.standbys)
			w.kill(a.ID, "data/postmaster.pid")
			select {
			case call := <-woken:
				if call != "PATCH /config" {
					t.Errorf("its Patroni was asked %q", call)
				}
			case <-time.After(hosttest.Soon):
				t.Error("nobody told its Patroni")
			}
			w.Awaits(a.ID, hosttest.Soon, func(r member.Report) error {
				if r.Postgres || !r.Patroni {
					return fmt.Errorf("report %+v", r)
				}
				return nil
			})
			w.passed("db-2")
			if leader := w.leader("db-1"); leader != c.leader {
				t.Errorf("%q leads, want %q", leader, c.leader)
			}
			if starts := w.Lines(a.ID, "starts"); len(starts) != 1 {
				t.Errorf("Patroni was started %d times: bringing PostgreSQL back is its own work", len(starts))
			}
		})
	}
}

// A PostgreSQL that stopped in good order was stopped by Patroni.
func TestAnOrderlyStopIsNoFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	w.run(nil)
	a := w.startPrimary()
	w.Leads("db-1", "m1", "m2")
	control := make([]byte, 20)
	control[16] = 1 // shut down
	w.Must(os.WriteFile(filepath.Join(w.Dir, "members", a.ID, patroni.DataDir, "global", "pg_control"), control, 0o600))
	w.kill(a.ID, "data/postmaster.pid")
	w.Awaits(a.ID, hosttest.Soon, func(r member.Report) error {
		if r.Postgres {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	w.passed("db-2")
	if leader := w.leader("db-1"); leader != "m1" {
		t.Errorf("%q leads, want m1", leader)
	}
}

// Nobody could replace it: a new Patroni takes the PostgreSQL over that the old one
// left, and no client notices.
func TestAnOrphanWithoutAStandbyGetsANewPatroni(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	w.run(nil)
	a := w.startPrimary()
	w.Leads("db-1", "m1", "")
	before := w.Lines(a.ID, "data/postmaster.pid")[0]
	w.kill(a.ID, "starts")
	w.restarted(a.ID, 2)
	w.Awaits(a.ID, hosttest.Soon, serving)
	if after := w.Lines(a.ID, "data/postmaster.pid")[0]; after != before {
		t.Errorf("PostgreSQL is process %s, was %s", after, before)
	}
}

// No Patroni comes up again: a PostgreSQL whose lease nobody renews must go.
func TestAnOrphanForGoodIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	w.run(nil)
	a := w.startPrimary()
	w.Leads("db-1", "m1", "")
	w.setPatroni(ends)
	w.kill(a.ID, "starts")
	w.Awaits(a.ID, hosttest.Soon+orphanGrace, func(r member.Report) error {
		if r.Postgres {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
}
