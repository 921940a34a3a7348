package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

const soon = 20 * time.Second

// passed returns when the agent has seen everything that was written before: it
// acts in order.
func (w *world) passed(marker string) {
	w.Helper()
	a := w.assignment(marker, 1)
	w.assign(a)
	w.awaits(a.ID, soon, running(1))
}

func TestAssignmentsMoveForwardOnly(t *testing.T) {
	w := newWorld(t, waits)
	w.run(nil)
	a := w.assignment("db-1", 2)
	w.assign(a)
	w.awaits(a.ID, soon, running(2))
	w.restarted(a.ID, 1)

	stale := a
	stale.Generation, stale.Want = 1, member.Stopped
	w.assign(stale)
	w.passed("db-2")
	w.awaits(a.ID, soon, refusing(2))
	if starts := w.lines(a.ID, "starts"); len(starts) != 1 {
		t.Errorf("an older assignment led to %d starts", len(starts))
	}

	newer := a
	newer.Generation, newer.Tier = 3, 5
	w.assign(newer)
	w.awaits(a.ID, soon, running(3))
	testkit.Eventually(t, soon, func() error {
		if len(w.lines(a.ID, "hups")) == 0 {
			return errors.New("not reloaded")
		}
		return nil
	})
	if starts := w.lines(a.ID, "starts"); len(starts) != 1 {
		t.Errorf("a newer configuration led to %d starts, not to a reload", len(starts))
	}
}

// The agent was away while the control plane lost its newest writes: what it did
// last is on disk, and nothing older is taken.
func TestWhatWasDoneLastIsRememberedOnDisk(t *testing.T) {
	w := newWorld(t, waits)
	_, stop := w.run(nil)
	a := w.assignment("db-1", 7)
	w.assign(a)
	w.awaits(a.ID, soon, running(7))
	stop()

	older := a
	older.Generation, older.Want = 6, member.Absent
	w.assign(older)
	w.run(nil)
	w.passed("db-2")
	w.awaits(a.ID, soon, refusing(7))
	if _, err := os.Stat(filepath.Join(w.Dir, "members", a.ID)); err != nil {
		t.Errorf("the data of the member: %v", err)
	}
}

// An assignment that vanishes deletes nothing; one that says absent does.
func TestOnlyAbsentDeletes(t *testing.T) {
	w := newWorld(t, waits)
	w.run(nil)
	a := w.start(running(1))
	_, err := w.store.Commit(t.Context(), state.Delete(state.Assign(hostName, a.ID)))
	w.must(err)
	w.passed("db-2")
	w.awaits(a.ID, soon, running(1))

	a.Generation, a.Want = 2, member.Absent
	w.assign(a)
	r := w.awaits(a.ID, soon, func(r member.Report) error {
		if !r.Gone {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	if r.Patroni || r.Postgres {
		t.Errorf("gone, but something runs: %+v", r)
	}
	testkit.Eventually(t, soon, func() error {
		for _, dir := range []string{"members/" + a.ID, "trash/*"} {
			if left, err := filepath.Glob(filepath.Join(w.Dir, dir)); err != nil || len(left) > 0 {
				return fmt.Errorf("left: %v, %w", left, err)
			}
		}
		return nil
	})
}

func TestAStoppedMemberStaysStopped(t *testing.T) {
	w := newWorld(t, waits)
	w.run(nil)
	a := w.start(running(1))
	w.restarted(a.ID, 1) // before it is ended
	a.Generation, a.Want = 2, member.Stopped
	w.assign(a)
	w.awaits(a.ID, soon, func(r member.Report) error {
		if r.Patroni || r.Generation != 2 {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	a.Generation, a.Want = 3, member.Running
	w.assign(a)
	w.awaits(a.ID, soon, running(3))
	w.restarted(a.ID, 2)
}

// A killed agent leaves its members alone; the next one takes them over as they are.
func TestAKilledAgentsMembersAreTakenOver(t *testing.T) {
	w := newWorld(t, serves)
	kill := w.runProcess()
	a := w.assignment("db-1", 1)
	w.assign(a)
	both := func(r member.Report) error {
		if !r.Postgres {
			return fmt.Errorf("report %+v", r)
		}
		return running(1)(r)
	}
	w.awaits(a.ID, soon, both)
	before := w.lines(a.ID, "data/postmaster.pid")
	kill()

	next, _ := w.run(nil)
	testkit.Eventually(t, soon, func() error {
		r := next.runner(t.Context(), a.ID)
		got := make(chan error, 1)
		r.Do(func(context.Context) { got <- both(r.describe()) })
		return <-got
	})
	if starts := w.lines(a.ID, "starts"); len(starts) != 1 {
		t.Errorf("%d starts, want 1", len(starts))
	}
	if after := w.lines(a.ID, "data/postmaster.pid"); after[0] != before[0] {
		t.Errorf("another PostgreSQL runs: %v, before %v", after, before)
	}
	// It is watched again: its end is noticed.
	w.kill(a.ID, "starts")
	testkit.Eventually(t, soon, func() error {
		if starts := w.lines(a.ID, "starts"); len(starts) != 2 {
			return fmt.Errorf("%d starts", len(starts))
		}
		return nil
	})
}
