package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

func TestAssignmentsMoveForwardOnly(t *testing.T) {
	d := newDorm(t)
	d.run()
	a := d.Assignment("db-1", 2)
	d.Assign(a)
	d.Awaits(a.ID, hosttest.Soon, hosttest.Running(2))
	started := d.leader(a.ID)

	stale := a
	stale.Generation, stale.Want = 1, member.Stopped
	d.Assign(stale)
	d.passed("db-2")
	d.Awaits(a.ID, hosttest.Soon, hosttest.Refusing(2))

	newer := a
	newer.Generation, newer.Tier = 3, 5
	d.Assign(newer)
	d.Awaits(a.ID, hosttest.Soon, hosttest.Running(3))
	d.hears("told 3, changed: true", 1)
	if d.leader(a.ID) != started {
		t.Error("it was started again")
	}
}

// The agent was away while the control plane lost its newest writes: what it did
// last is on disk, and nothing older is taken.
func TestWhatWasDoneLastIsRememberedOnDisk(t *testing.T) {
	d := newDorm(t)
	stop := d.run()
	a := d.Assignment("db-1", 7)
	d.Assign(a)
	d.Awaits(a.ID, hosttest.Soon, hosttest.Running(7))
	stop()

	older := a
	older.Generation, older.Want = 6, member.Absent
	d.Assign(older)
	d.run()
	d.passed("db-2")
	d.Awaits(a.ID, hosttest.Soon, hosttest.Refusing(7))
	if _, err := os.Stat(d.MemberDir(a.ID)); err != nil {
		t.Errorf("the data of the member: %v", err)
	}
}

// An assignment that vanishes deletes nothing; one that says absent does.
func TestOnlyAbsentDeletes(t *testing.T) {
	d := newDorm(t)
	d.run()
	a := d.start()
	_, err := d.Store.Commit(t.Context(), state.Delete(state.Assign(hosttest.Name, a.ID)))
	d.Must(err)
	d.passed("db-2")
	d.Awaits(a.ID, hosttest.Soon, hosttest.Running(1))

	a.Generation, a.Want = 2, member.Absent
	d.Assign(a)
	r := d.Awaits(a.ID, hosttest.Soon, hosttest.Gone)
	if r.Patroni || d.leader(a.ID) != (proc.Process{}) {
		t.Errorf("gone, but something runs: %+v", r)
	}
	testkit.Eventually(t, hosttest.Soon, func() error {
		for _, dir := range []string{d.MemberDir(a.ID), filepath.Join(d.TrashDir(), "*")} {
			if left, err := filepath.Glob(dir); err != nil || len(left) > 0 {
				return fmt.Errorf("left: %v, %w", left, err)
			}
		}
		return nil
	})
}

func TestAStoppedMemberStaysStopped(t *testing.T) {
	d := newDorm(t)
	d.run()
	a := d.start()
	a.Generation, a.Want = 2, member.Stopped
	d.Assign(a)
	d.Awaits(a.ID, hosttest.Soon, func(r member.Report) error {
		if r.Patroni || r.Generation != 2 {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	ended := time.Now()
	testkit.Eventually(t, hosttest.Soon, func() error {
		if d.leader(a.ID) != (proc.Process{}) {
			t.Fatal("it was started again")
		}
		if time.Since(ended) < 10*lookEvery {
			return errors.New("the agent had no time to start it")
		}
		return nil
	})
	a.Generation, a.Want = 3, member.Running
	d.Assign(a)
	d.Awaits(a.ID, hosttest.Soon, hosttest.Running(3))
}
