package database

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"howdah/internal/failover/fence"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/watchdog"
	"howdah/internal/host/proc"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

func TestWhyPatroniIsBlind(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		said watchdog.Says
		lost bool
		has  string
	}{
		{"nothing is known", watchdog.Says{}, false, ""},
		{"it sees it", watchdog.Says{Known: true, State: "running"}, false, ""},
		{"it stops it", watchdog.Says{Known: true, State: "stopping"}, false, ""},
		{"it starts it again", watchdog.Says{Known: true, State: "restarting"}, false, ""},
		{"it copies", watchdog.Says{Known: true, State: "creating replica"}, false, ""},
		{"it still starts it", watchdog.Says{Known: true, State: "starting"}, false, "starting"},
		{"it thinks that the start failed", watchdog.Says{Known: true, State: "start failed"}, false, "start failed"},
		{"etcd does not answer", watchdog.Says{State: "starting"}, false, ""},
		{"the socket is lost", watchdog.Says{Known: true, State: "running"}, true, "socket"},
		{"the socket is lost without etcd", watchdog.Says{}, true, "socket"},
	}
	for _, c := range cases {
		if got := whyBlind(c.said, true, c.lost); (got == "") != (c.has == "") || !strings.Contains(got, c.has) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	if got := whyBlind(watchdog.Says{Known: true, State: "starting"}, false, false); got != "" {
		t.Errorf("it recovers: %q", got)
	}
}

// follower is a Patroni with a standby, neither of which can see the other.
const follower = `trap '' HUP
echo $$ >> starts
mkdir -p data/global
touch data/standby.signal
if ! kill -0 $(cat data/postmaster.pid 2>/dev/null) 2>/dev/null; then
	sleep 100000 &
	echo $! >> servers
	echo $! > data/pid && mv data/pid data/postmaster.pid
fi
exec sleep 1000
`

// A standby started without its socket: the server and its Patroni are started again. A
// primary is left alone.
func TestAStandbyWithoutItsSocketIsStartedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, follower)
	w.run(func(a *Host) { a.hangAfter = time.Second })
	a := w.Assignment("db-1", 1)
	w.Assign(a)
	again := func() error {
		if starts, servers := w.Lines(a.ID, "starts"), w.Lines(a.ID, "servers"); len(starts) < 2 || len(servers) < 2 {
			return fmt.Errorf("%d starts of Patroni, %d of PostgreSQL", len(starts), len(servers))
		}
		return nil
	}
	testkit.Eventually(t, hosttest.Soon, again)
	testkit.Eventually(t, hosttest.Soon, func() error {
		if incidents := w.incidents("db-1"); len(incidents) == 0 || incidents[0].Kind != fence.Hang || !strings.Contains(incidents[0].Cause, "socket") {
			return fmt.Errorf("incidents %+v", incidents)
		}
		return nil
	})
}

func TestAPrimaryIsNeverStartedAgainForItsSocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	w.run(func(a *Host) { a.hangAfter = 100 * time.Millisecond })
	a := w.startPrimary()
	w.passed("db-2")
	if starts := w.Lines(a.ID, "starts"); len(starts) != 1 {
		t.Errorf("%d starts", len(starts))
	}
}

// standsIn is a process of the test in place of a member's.
func standsIn(t *testing.T, a *Host) agent.Process {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	testkit.Start(t, cmd)
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	process, err := a.Procs.Find(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return agent.Process{Process: process, Exit: make(chan proc.Exit)}
}

// Patroni calls a standby starting that takes logins: it goes, and PostgreSQL stays. One
// that sees it, is new to it, or looks after a primary is left alone.
func TestAPatroniThatDoesNotSeeItsStandbyIsKilledAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	a, _ := w.run(func(a *Host) { a.hangAfter = time.Minute })
	cases := []struct {
		name     string
		state    string
		recovers bool
		since    time.Duration
		killed   bool
	}{
		{"it is blind", "starting", true, 2 * time.Minute, true},
		{"it may come to see it", "starting", true, 30 * time.Second, false},
		{"it sees it", "running", true, 2 * time.Minute, false},
		{"it is that of a primary", "starting", false, 2 * time.Minute, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := unstarted(a, "db-1.m1")
			r.Want = w.Assignment("db-1", 1)
			*r.patroni, *r.postmaster = standsIn(t, a), standsIn(t, a)
			r.Reported.Ready, r.Reported.InRecovery = true, c.recovers
			r.leases.Hear(watchdog.Says{Known: true, State: c.state})
			now := time.Now()
			r.blind = blindness{postmaster: r.postmaster.Process, since: now.Add(-c.since), tried: now}
			r.checkBlind(t.Context())
			if killed := r.hung != ""; killed != c.killed {
				t.Errorf("killed: %v, %q", killed, r.hung)
			}
			if _, err := a.Procs.Find(r.postmaster.Process.PID); err != nil {
				t.Errorf("PostgreSQL: %v", err)
			}
		})
	}
}
