package database

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/failover/fence"
	"howdah/internal/failover/postmortem"
	"howdah/internal/host/database/watchdog"
	"howdah/internal/host/hang"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// hang has the watch of a member say that its PostgreSQL hangs.
func (w *world) hang(a *Host, as member.Assignment, primary bool) proc.Process {
	w.Helper()
	pid, err := strconv.Atoi(w.Lines(as.ID, "data/postmaster.pid")[0])
	w.Must(err)
	p, err := a.Procs.Find(pid)
	w.Must(err)
	a.runner(w.Context(), as.ID).endHang(w.Context(), as, watchdog.Hanging{
		Postmaster: p, Primary: primary, Why: "it has answered nobody for 3s", Since: time.Now(),
	})
	return p
}

// A primary that hangs is ended by its own agent, and its key is taken away.
func TestAPrimaryThatHangsIsFencedAndRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	agent, _ := w.run(nil)
	a := w.startPrimary()
	w.Leads("db-1", "m1", "m2")
	p := w.hang(agent, a, true)
	if leader := w.leader("db-1"); leader != "" || agent.Procs.Alive(p) {
		t.Errorf("%q leads, alive %v", leader, agent.Procs.Alive(p))
	}
	i := w.incident("db-1")
	if i.Kind != fence.Failover || i.Planned || i.Cause != "PostgreSQL of the primary hangs: it has answered nobody for 3s" || i.Proof.Method != "killed" {
		t.Errorf("incident %+v", i)
	}
	var r postmortem.Record
	r.From, r.Recorded = "m1", time.Now()
	r.AddIncident(i)
	if r.Cause != i.Cause || r.Fenced.IsZero() || r.Revoked.IsZero() {
		t.Errorf("post-mortem %+v", r)
	}
	w.restarted(a.ID, 2)
}

// Where nobody can take over, a hang that passes costs less than its end.
func TestAHangThatNobodyCanMend(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	agent, _ := w.run(nil)
	a := w.startPrimary()
	for _, c := range []struct{ leader, standbys string }{{"m1", ""}, {"m2", "m1"}} {
		w.Leads("db-1", c.leader, c.standbys)
		if p := w.hang(agent, a, true); !agent.Procs.Alive(p) || w.leader("db-1") != c.leader {
			t.Errorf("%+v: %q leads, alive %v", c, w.leader("db-1"), agent.Procs.Alive(p))
		}
	}
	// It is told, also while the runner has no time for it.
	w.Awaits(a.ID, hosttest.Soon, func(r member.Report) error {
		if r.Ready || r.Problem != member.Hangs || !strings.Contains(r.Detail, "answered nobody") {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
}

// A standby that hangs holds commits up, and is started again.
func TestAStandbyThatHangsIsStartedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	agent, _ := w.run(nil)
	a := w.startPrimary()
	w.Leads("db-1", "m2", "m1")
	if p := w.hang(agent, a, false); agent.Procs.Alive(p) || w.leader("db-1") != "m2" {
		t.Errorf("%q leads, alive %v", w.leader("db-1"), agent.Procs.Alive(p))
	}
	w.restarted(a.ID, 2)
}

// A checkpoint that fails, which it does here as nobody answers, calls a handover off
// unless somebody asked for it as such.
func TestACheckpointThatFailsVetoesNoForcedHandover(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	w.run(nil)
	a := w.startPrimary()
	w.Leads("db-1", "m1", "m2")
	w.Ask("db-1/restart/1/handover", member.Handover, a.ID, time.Minute)
	if r := w.Ended("db-1/restart/1/handover"); !r.Failed || w.leader("db-1") != "m1" {
		t.Errorf("not forced: %+v, %q leads", r, w.leader("db-1"))
	}
	w.force("db-1/failover/1", a.ID)
	if r := w.Ended("db-1/failover/1"); !r.Done || w.leader("db-1") != "" {
		t.Errorf("forced: %+v, %q leads", r, w.leader("db-1"))
	}
	if i := w.incident("db-1"); i.Proof.Method != "killed" {
		t.Errorf("incident %+v", i)
	}
}

// What a process does is seen, also when it is nothing.
func TestActivity(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	agent, _ := w.run(nil)
	busy := exec.CommandContext(t.Context(), "/bin/sh", "-c", "while :; do :; done")
	w.Must(busy.Start())
	t.Cleanup(func() { _ = busy.Process.Kill(); _ = busy.Wait() })
	process, err := agent.Procs.Find(busy.Process.Pid)
	w.Must(err)
	before := hang.ActivityOf(agent.Procs, process)
	testkit.Eventually(t, hosttest.Soon, func() error {
		if after := hang.ActivityOf(agent.Procs, process); after.Postmaster <= before.Postmaster || len(after.All) == 0 {
			return fmt.Errorf("before %+v, after %+v", before, after)
		}
		return nil
	})
	a := w.startPrimary()
	pid, err := strconv.Atoi(w.Lines(a.ID, "data/postmaster.pid")[0])
	w.Must(err)
	w.Must(syscall.Kill(pid, syscall.SIGSTOP))
	stopped, err := agent.Procs.Find(pid)
	w.Must(err)
	testkit.Eventually(t, hosttest.Soon, func() error {
		first := hang.ActivityOf(agent.Procs, stopped)
		time.Sleep(10 * time.Millisecond)
		second := hang.ActivityOf(agent.Procs, stopped)
		if first.Waits || second.Waits || first.Postmaster != second.Postmaster || first.Postmaster == 0 {
			return fmt.Errorf("%+v, then %+v", first, second)
		}
		return nil
	})
}

// The disk below a directory is asked what it has done; where there is none, nothing is
// known.
func TestDiskWrites(t *testing.T) {
	t.Parallel()
	if n := hang.DiskWrites(hang.DiskOf(t.TempDir(), "")); n != -1 {
		t.Errorf("of no member: %d", n)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "stat")
	if err := os.WriteFile(path, []byte(" 1 2 3 4 50 6 7 8 9 10 11 12 13 14 15 600 17\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := hang.DiskWrites(path); n != 650 {
		t.Errorf("%d writes and flushes, want 650", n)
	}
}
