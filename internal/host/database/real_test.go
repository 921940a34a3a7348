package database

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"howdah/internal/engine/patroni/program"
	"howdah/internal/identity/scram"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/pgversion"
)

// A database from nothing to nothing, with the real Patroni and PostgreSQL: what is
// reported of it, what a killed agent means to it, a restart, a stop and its end.
func TestTheLifeOfARealDatabase(t *testing.T) {
	t.Parallel()
	if _, err := program.Find(); err != nil {
		testkit.Missing(t, err.Error())
	}
	w := newWorld(t, "")
	host, stop := w.run(func(a *Host) { a.spares.Keep = 1 })
	a := w.Assignment("db-1", 1)
	verifier, err := scram.Verifier("secret-password")
	w.Must(err)
	a.Cluster.Parameters = map[string]string{"logging_collector": "on", "log_filename": "postgresql.log.%Y-%m-%d-%H"}
	a.Owner = member.Owner{Name: "ada", Verifier: verifier, Serial: 3, Database: "works"}
	w.Assign(a)
	ready := func(r member.Report) error {
		if !r.Ready || !r.Postgres || r.OwnerSerial != 3 || r.StorageBytes == 0 {
			return fmt.Errorf("report %+v", r)
		}
		return hosttest.Running(1)(r)
	}
	r := w.Awaits(a.ID, time.Minute, ready)
	if r.InRecovery || r.Timeline != 1 || r.LSN == 0 || r.Host != hosttest.Name || r.StorageBytes < 1<<20 || r.Gone {
		t.Errorf("report of a new primary: %+v", r)
	}
	w.catalogues()
	if files, err := host.logDir(a.ID).List(); err != nil || len(files) == 0 || files[0].Size == 0 {
		t.Errorf("logs of a new primary: %v, %v", files, err)
	}

	stop()
	pid := w.Lines(a.ID, "data/postmaster.pid")[0]
	kill := w.runProcess()
	w.Ask("db-1/restart", member.Restart, a.ID, time.Minute)
	if result := w.Ended("db-1/restart"); !result.Done {
		t.Errorf("restart: %+v", result)
	}
	restarted := w.Lines(a.ID, "data/postmaster.pid")[0]
	if restarted == pid {
		t.Error("the restart left PostgreSQL as it was")
	}
	kill()
	began := time.Now().UTC()
	_, stop = w.run(nil)
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.At.Before(began) {
			return fmt.Errorf("an old report: %+v", r)
		}
		return ready(r)
	})
	if now := w.Lines(a.ID, "data/postmaster.pid")[0]; now != restarted {
		t.Error("a killed agent cost a PostgreSQL")
	}

	w.rotates(host, &a)
	a.Generation, a.Allow = 4, []string{"10.1.0.0/16"}
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, hosttest.Running(4))
	w.admits(a)

	a.Generation, a.Want = 5, member.Stopped
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.Patroni || r.Postgres || r.Ready {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	a.Generation, a.Want = 6, member.Running
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if !r.Ready {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	shared := w.shared(a.ID)
	a.Generation, a.Want = 7, member.Absent
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if !r.Gone {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	if _, err := os.Stat(filepath.Join(w.Dir, "members", a.ID)); !os.IsNotExist(err) {
		t.Errorf("the data: %v", err)
	}
	// It was killed, and nobody will start on its data again.
	testkit.Eventually(t, hosttest.Soon, func() error {
		if _, err := unix.SysvShmCtl(shared, unix.IPC_STAT, new(unix.SysvShmDesc)); err == nil {
			return fmt.Errorf("its shared memory %d is left", shared)
		}
		return nil
	})
	stop()
}

// shared is the shared memory of a member's server, by its pid file.
func (w *world) shared(id string) int {
	w.Helper()
	segment, err := strconv.Atoi(w.Lines(id, "data/postmaster.pid")[7]) // after its key
	w.Must(err)
	if _, err := unix.SysvShmCtl(segment, unix.IPC_STAT, new(unix.SysvShmDesc)); err != nil {
		w.Fatalf("shared memory %d: %v", segment, err)
	}
	return segment
}

// admits checks that pg_hba.conf lets just those in who may connect, as the agent
// writes it, and as Patroni does once it has taken the configuration over.
func (w *world) admits(a member.Assignment) {
	w.Helper()
	path := filepath.Join(w.Dir, "members", a.ID, "data", "pg_hba.conf")
	read := func() string {
		text, err := os.ReadFile(path)
		w.Must(err)
		return string(text)
	}
	var agents string
	testkit.Eventually(w.T, time.Minute, func() error {
		// Patroni writes it in place: a second look may see half of it.
		if agents = read(); !strings.HasSuffix(agents, " 10.1.0.0/16 scram-sha-256\n") {
			return fmt.Errorf("pg_hba.conf is\n%s", agents)
		}
		return nil
	})
	testkit.Eventually(w.T, time.Minute, func() error {
		answer, err := w.Home.Store.Client.Get(w.Context(), patroni.MemberKey(a.Scope, a.Name))
		if err != nil || len(answer.Kvs) == 0 {
			return fmt.Errorf("no key of the member: %w", err)
		}
		m, err := patroni.ParseMember(answer.Kvs[0].Value)
		if err != nil || m.Generation() != a.Generation {
			return fmt.Errorf("Patroni runs with %d, %w", m.Generation(), err)
		}
		return nil
	})
	if diff := cmp.Diff(agents, read()); diff != "" {
		w.Errorf("pg_hba.conf (-agent +Patroni)\n%s", diff)
	}
}

// A host says which versions it has, and how it cuts.
func TestWhatAHostSaysOfDatabases(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	w.run(nil)
	var h member.Host
	testkit.Eventually(t, hosttest.Soon, func() error {
		record, err := state.Get[member.Host](t.Context(), w.Store, state.Host(hosttest.Name))
		h = record.Value
		return err
	})
	if h.Majors[pgversion.Major()] == "" || h.Cut == "" || !h.OwnNames || !h.OwnKeys {
		t.Errorf("facts: %+v", h)
	}
}
