package database

import (
	"errors"
	"fmt"
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// passed returns when the agent has seen everything that was written before: it
// acts in order.
func (w *world) passed(marker string) {
	w.Helper()
	a := w.Assignment(marker, 1)
	w.Assign(a)
	w.Awaits(a.ID, hosttest.Soon, hosttest.Running(1))
}

func TestANewerConfigurationIsReloaded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	w.run(nil)
	a := w.Assignment("db-1", 2)
	w.Assign(a)
	w.Awaits(a.ID, hosttest.Soon, hosttest.Running(2))
	w.restarted(a.ID, 1)

	stale := a
	stale.Generation, stale.Want = 1, member.Stopped
	w.Assign(stale)
	w.passed("db-2")
	w.Awaits(a.ID, hosttest.Soon, hosttest.Refusing(2))
	if starts := w.Lines(a.ID, "starts"); len(starts) != 1 {
		t.Errorf("an older assignment led to %d starts", len(starts))
	}

	newer := a
	newer.Generation, newer.Tier = 3, 5
	w.Assign(newer)
	w.Awaits(a.ID, hosttest.Soon, hosttest.Running(3))
	testkit.Eventually(t, hosttest.Soon, func() error {
		if len(w.Lines(a.ID, "hups")) == 0 {
			return errors.New("not reloaded")
		}
		return nil
	})
	if starts := w.Lines(a.ID, "starts"); len(starts) != 1 {
		t.Errorf("a newer configuration led to %d starts, not to a reload", len(starts))
	}
}

func TestAStoppedDatabaseStaysStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	w.run(nil)
	a := w.start(hosttest.Running(1))
	w.restarted(a.ID, 1) // before it is ended
	a.Generation, a.Want = 2, member.Stopped
	w.Assign(a)
	w.Awaits(a.ID, hosttest.Soon, func(r member.Report) error {
		if r.Patroni || r.Generation != 2 {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	a.Generation, a.Want = 3, member.Running
	w.Assign(a)
	w.Awaits(a.ID, hosttest.Soon, hosttest.Running(3))
	w.restarted(a.ID, 2)
}

// A killed agent leaves its members alone; the next one takes them over as they are.
func TestAKilledAgentsMembersAreTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	kill := w.runProcess()
	a := w.Assignment("db-1", 1)
	w.Assign(a)
	both := func(r member.Report) error {
		if !r.Postgres {
			return fmt.Errorf("report %+v", r)
		}
		return hosttest.Running(1)(r)
	}
	w.Awaits(a.ID, hosttest.Soon, both)
	before := w.Lines(a.ID, "data/postmaster.pid")
	kill()

	next, _ := w.run(nil)
	testkit.Eventually(t, hosttest.Soon, func() error {
		r, known := next.ReportOf(a.ID)
		if !known {
			return errors.New("nobody looked at it")
		}
		return both(r)
	})
	if starts := w.Lines(a.ID, "starts"); len(starts) != 1 {
		t.Errorf("%d starts, want 1", len(starts))
	}
	if after := w.Lines(a.ID, "data/postmaster.pid"); after[0] != before[0] {
		t.Errorf("another PostgreSQL runs: %v, before %v", after, before)
	}
	// It is watched again: its end is noticed.
	w.kill(a.ID, "starts")
	testkit.Eventually(t, hosttest.Soon, func() error {
		if starts := w.Lines(a.ID, "starts"); len(starts) != 2 {
			return fmt.Errorf("%d starts", len(starts))
		}
		return nil
	})
}
