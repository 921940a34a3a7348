package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/member"
	"howdah/internal/scram"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// A database from nothing to nothing, with the real Patroni and PostgreSQL: what is
// reported of it, what a killed agent means to it, a restart, a stop and its end.
func TestTheLifeOfARealDatabase(t *testing.T) {
	if _, err := FindPatroni(); err != nil {
		testkit.Missing(t, err.Error())
	}
	w := newWorld(t, "")
	_, stop := w.run(func(a *Agent) { a.spares.keep = 1 })
	a := w.assignment("db-1", 1)
	verifier, err := scram.Verifier("secret-password")
	w.must(err)
	a.Owner = member.Owner{Name: "ada", Verifier: verifier, Serial: 3, Database: "works"}
	w.assign(a)
	ready := func(r member.Report) error {
		if !r.Ready || !r.Postgres || r.OwnerSerial != 3 || r.StorageBytes == 0 {
			return fmt.Errorf("report %+v", r)
		}
		return running(1)(r)
	}
	r := w.awaits(a.ID, time.Minute, ready)
	if r.InRecovery || r.Timeline != 1 || r.LSN == 0 || r.Host != hostName || r.StorageBytes < 1<<20 || r.Gone {
		t.Errorf("report of a new primary: %+v", r)
	}

	stop()
	pid := w.lines(a.ID, "data/postmaster.pid")[0]
	kill := w.runProcess()
	w.ask("db-1/restart", member.Restart, a.ID, time.Minute)
	if result := w.ended("db-1/restart"); !result.Done {
		t.Errorf("restart: %+v", result)
	}
	restarted := w.lines(a.ID, "data/postmaster.pid")[0]
	if restarted == pid {
		t.Error("the restart left PostgreSQL as it was")
	}
	kill()
	began := time.Now().UTC()
	_, stop = w.run(nil)
	w.awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.At.Before(began) {
			return fmt.Errorf("an old report: %+v", r)
		}
		return ready(r)
	})
	if now := w.lines(a.ID, "data/postmaster.pid")[0]; now != restarted {
		t.Error("a killed agent cost a PostgreSQL")
	}

	a.Generation, a.Want = 2, member.Stopped
	w.assign(a)
	w.awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.Patroni || r.Postgres || r.Ready {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	a.Generation, a.Want = 3, member.Absent
	w.assign(a)
	w.awaits(a.ID, time.Minute, func(r member.Report) error {
		if !r.Gone {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	if _, err := os.Stat(filepath.Join(w.Dir, "members", a.ID)); !os.IsNotExist(err) {
		t.Errorf("the data: %v", err)
	}
	stop()
}

// What a host says of itself is what the machine says.
func TestHostFacts(t *testing.T) {
	w := newWorld(t, waits)
	w.run(nil)
	var h member.Host
	testkit.Eventually(t, soon, func() error {
		record, err := state.Get[member.Host](t.Context(), w.store, state.Host(hostName))
		h = record.Value
		return err
	})
	if h.Name != hostName || h.Zone != "t" || h.Address != "127.0.0.1" || h.Version != "test" {
		t.Errorf("identity: %+v", h)
	}
	if h.CPUs < 1 || h.Memory < 1<<27 || h.Disk < h.DiskFree || h.DiskFree <= 0 || h.Majors[15] == "" || h.Containment == "" || h.Cut == "" {
		t.Errorf("facts: %+v", h)
	}
}

func TestSameHost(t *testing.T) {
	a := member.Host{Name: "x", Disk: 1000, DiskFree: 505, Majors: map[int]string{15: "15.1"}}
	cases := []struct {
		name   string
		change func(*member.Host)
		want   bool
	}{
		{"nothing", func(*member.Host) {}, true},
		{"a little disk", func(h *member.Host) { h.DiskFree = 509 }, true},
		{"a hundredth of the disk", func(h *member.Host) { h.DiskFree = 490 }, false},
		{"an upgrade", func(h *member.Host) { h.Majors = map[int]string{15: "15.2"} }, false},
		{"a warning", func(h *member.Host) { h.Warnings = []string{"w"} }, false},
	}
	for _, c := range cases {
		b := a
		c.change(&b)
		if got := sameHost(a, b); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
