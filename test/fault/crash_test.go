package fault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/rig"
)

// Everything of ours may be killed at any moment. Databases go on, and what was begun is finished
// when we are back.
func TestDatabasesOutliveHowdah(t *testing.T) {
	s := begin(t, nil)
	s.given("orders", true)
	w := s.writing("orders")
	for _, part := range s.rig.Parts() {
		s.rig.KillPart(part)
	}
	w.works(3 * time.Second)
	for _, part := range s.rig.Parts() {
		s.must(s.rig.StartPart(part), "start "+part)
	}
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 20*time.Second), "after the return of everything")
	w.works(3 * time.Second)
	w.nothingLost()
	if n := len(must(s.rig.Failovers(s.Context(), must(s.rig.Database(s.Context(), "orders"))))); n != 0 {
		t.Errorf("%d failovers, for nothing", n)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A restart of the whole machine: all processes are gone, files stay.
func TestDatabasesComeBackAfterAPowerCut(t *testing.T) {
	s := begin(t, nil)
	id := s.given("orders", true)
	s.given("single", false)
	w := s.writing("orders")
	w.stop()
	for _, part := range s.rig.Parts() {
		s.rig.KillPart(part)
	}
	for _, name := range []string{id, ""} {
		for _, m := range allMembers(s, name) {
			s.must(m.Signal(9), "kill "+m.Name)
		}
	}
	for _, part := range s.rig.Parts() {
		s.must(s.rig.StartPart(part), "start "+part)
	}
	for _, name := range []string{"orders", "single"} {
		s.must(s.rig.WaitStatus(s.Context(), name, "available", 60*time.Second), name+" after the power cut")
	}
	w.nothingLost()
}

// allMembers finds members on disk, because the state may be down.
func allMembers(s *story, _ string) []rig.Member {
	var all []rig.Member
	for _, z := range rig.Zones {
		dirs, err := filepath.Glob(filepath.Join(s.rig.HostDir(z), "members", "*"))
		s.must(err, "find members")
		for _, d := range dirs {
			all = append(all, s.rig.MemberOnDisk(z, filepath.Base(d)))
		}
	}
	return all
}

// Both etcd and an agent are killed in the middle of a creation.
func TestCreateGoesOnAfterACrash(t *testing.T) {
	s := begin(t, nil)
	errs := make(chan error, 1)
	go func() { errs <- s.rig.Create(s.Context(), "orders", true) }()
	s.eventually(10*time.Second, func() error {
		if files, _ := filepath.Glob(filepath.Join(s.rig.Home.DataRoot, "*", "members", "*", "patroni.json")); len(files) == 0 {
			return errors.New("no member begun")
		}
		return nil
	})
	s.rig.KillPart("serve")
	s.rig.KillPart("agent-a")
	s.must(s.rig.StartPart("serve"), "start serve")
	s.must(s.rig.StartPart("agent-a"), "start agent-a")
	<-errs // the caller's connection broke: what counts is the instance
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 60*time.Second), "orders")
	w := s.writing("orders")
	w.nothingLost()
}

// Patroni of a standby stands still, and PostgreSQL dies: nobody starts it. The agent notices.
func TestAHangingPatroniIsMended(t *testing.T) {
	s := begin(t, nil)
	id := s.given("orders", true)
	s.eventually(20*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	standby := s.standby(id)
	s.must(standby.FreezePatroni(), "freeze Patroni of the standby")
	s.must(standby.KillPostgres(), "kill PostgreSQL of the standby")
	s.eventually(60*time.Second, func() error { return s.hasEvent("orders", "hanging Patroni") })
	s.eventually(60*time.Second, func() error {
		// The sync key may name the standby for a moment after it is gone.
		out, err := s.query("orders", "SELECT count(*)::text FROM pg_stat_replication")
		if err == nil && out != "1" {
			err = fmt.Errorf("%s standbys", out)
		}
		return errors.Join(err, s.rig.InSync(s.Context(), id, 1))
	})
}

// standby returns a member that does not lead.
func (s *story) standby(database string) rig.Member {
	leader := s.leader(database)
	all, err := s.rig.Members(s.Context(), database)
	s.must(err, "list members")
	for _, m := range all {
		if m.Name != leader.Name {
			return m
		}
	}
	s.Fatal("no standby")
	return rig.Member{}
}

// A PostgreSQL without Patroni is never left alone.
func TestNoPostgreSQLWithoutPatroni(t *testing.T) {
	s := begin(t, nil)
	id := s.given("orders", true)
	w := s.writing("orders")
	old := s.leader(id)
	pid := must(postgres.Postmaster(old.DataDir()))
	s.must(old.KillPatroni(), "kill Patroni of the primary")
	s.eventually(3*time.Second, func() error {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); err == nil {
			return errors.New("the orphan still runs")
		}
		return nil
	})
	w.works(5 * time.Second)
	if s.leader(id).Name == old.Name {
		t.Error("the old primary leads still")
	}
	w.nothingLost()
}

// Patroni of the primary is frozen, and nothing else. PostgreSQL and its host look healthy, while
// the lease runs out. The primary is fenced before another one is elected.
func TestAFrozenPatroniIsReplaced(t *testing.T) {
	s := begin(t, nil)
	id := s.given("orders", true)
	w := s.writing("orders")
	old := s.leader(id)
	pid := must(postgres.Postmaster(old.DataDir()))
	s.must(old.FreezePatroni(), "freeze Patroni of the primary")
	s.eventually(25*time.Second, func() error {
		m, err := s.rig.Leader(s.Context(), id)
		if err == nil && m.Name == old.Name {
			err = errors.New("it leads still")
		}
		return err
	})
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); err == nil {
		t.Error("another one was elected while the old primary served")
	}
	w.works(10 * time.Second)
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	w.nothingLost()
	s.toldWhy(id, "lease", "killed")
}

// Patroni of the standby is frozen. It is started again, and costs no failover.
func TestAFrozenPatroniOfAStandbyIsMended(t *testing.T) {
	depth.Deep(t)
	s := begin(t, nil)
	id := s.given("orders", true)
	w := s.writing("orders")
	standby := s.standby(id)
	pid := must(postgres.Postmaster(standby.DataDir()))
	s.must(standby.FreezePatroni(), "freeze Patroni of the standby")
	s.eventually(60*time.Second, func() error { return s.hasEvent("orders", "hanging Patroni") })
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	w.works(3 * time.Second)
	w.nothingLost()
	if now := must(postgres.Postmaster(standby.DataDir())); now != pid {
		t.Errorf("PostgreSQL of the standby is process %d, was %d", now, pid)
	}
	if n := len(must(s.rig.Failovers(s.Context(), id))); n != 0 {
		t.Errorf("%d failovers, for nothing", n)
	}
}
