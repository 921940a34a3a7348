package fault

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/rig"
)

// howdah runs a command of our program on the home of the rig.
func (s *story) howdah(args ...string) (string, error) {
	s.Helper()
	out, err := exec.CommandContext(s.Context(), binary, append(args, "--home", s.rig.Home.Dir)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("howdah %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// backup takes a backup of the home and returns its path.
func (s *story) backup() string {
	s.Helper()
	dir := filepath.Join(s.rig.Dir, "backups")
	_, err := s.howdah("home", "backup", dir)
	s.must(err, "back the home up")
	all, err := filepath.Glob(filepath.Join(dir, "howdah-*"))
	s.must(err, "find the backup")
	if len(all) != 1 {
		s.Fatalf("backups: %q", all)
	}
	return all[0]
}

// loseHome kills the control plane and removes everything that its machine had. Hosts and edge are
// on other machines.
func (s *story) loseHome() {
	s.Helper()
	s.rig.KillPart("serve")
	for _, name := range []string{"howdah.json", "credentials.json", "join.json", "pki", "etcd", "log", "run"} {
		s.must(os.RemoveAll(filepath.Join(s.rig.Home.Dir, name)), "remove "+name)
	}
}

// restore makes the home again and starts the control plane.
func (s *story) restore(backup string) {
	s.Helper()
	if _, err := s.howdah("home", "restore", backup); err == nil {
		s.Error("restored without being told to")
	}
	_, err := s.howdah("home", "restore", backup, "--dry-run")
	s.must(err, "see what would be restored")
	if _, err := os.Stat(filepath.Join(s.rig.Home.Dir, "howdah.json")); !errors.Is(err, os.ErrNotExist) {
		s.Errorf("a dry run changed something: %v", err)
	}
	_, err = s.howdah("home", "restore", backup, "--yes")
	s.must(err, "restore the home")
	s.must(s.rig.StartPart("serve"), "start serve")
}

func (s *story) takenOver() {
	s.Helper()
	s.eventually(60*time.Second, func() error {
		held, err := s.rig.Store.Client.Get(s.Context(), state.HeldRoot, clientv3.WithPrefix())
		if err == nil && held.Count > 0 {
			err = fmt.Errorf("held: %s", held.Kvs)
		}
		return err
	})
}

// failOver kills PostgreSQL of a primary that has a standby in sync, and waits until all is
// as before.
func (s *story) failOver(id string, w *writers) rig.Member {
	s.Helper()
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	old := s.leader(id)
	s.must(old.KillPostgres(), "kill PostgreSQL of "+old.Name)
	s.eventually(30*time.Second, func() error {
		m, err := s.rig.Leader(s.Context(), id)
		if err == nil && m.Name == old.Name {
			err = errors.New("the old primary leads still")
		}
		return err
	})
	w.works(10 * time.Second)
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	return s.leader(id)
}

// The only control plane is lost with all that it had. The backup is older than a failover. The
// newest primary leads on, PostgreSQL is never stopped, and nothing that was acknowledged is lost.
func TestALostHome(t *testing.T) {
	s := begin(t, nil)
	id := s.given("orders", true)
	w := s.writing("orders")
	backup := s.backup()
	primary := s.failOver(id, w)
	before, err := s.query("orders", "SELECT pg_postmaster_start_time()::text")
	s.must(err, "ask when the primary was started")
	s.loseHome()
	w.works(10 * time.Second)
	s.restore(backup)
	s.takenOver()
	s.eventually(60*time.Second, s.isWell)
	w.works(10 * time.Second)
	if now := s.leader(id); now.Name != primary.Name {
		t.Errorf("%s leads, want %s", now.Name, primary.Name)
	}
	if now, err := s.query("orders", "SELECT pg_postmaster_start_time()::text"); err != nil || now != before {
		t.Errorf("PostgreSQL was started at %s, and then at %s: %v", before, now, err)
	}
	// It is a home like any other again.
	s.failOver(id, w)
	w.nothingLost()
	s.eventually(60*time.Second, s.isWell)
	if _, err := s.howdah("home", "restore", backup, "--yes", "--replace"); err == nil {
		t.Error("a home that runs was replaced")
	}
}

// Everything is lost at once except what is on the hosts' disks. Nobody serves, and the last
// primary leads on.
func TestALostHomeAndNobodyServes(t *testing.T) {
	depth.Deep(t)
	s := begin(t, nil)
	id := s.given("orders", true)
	w := s.writing("orders")
	backup := s.backup()
	primary := s.failOver(id, w)
	s.rig.KillPart("serve")
	for _, zone := range rig.Zones {
		s.must(s.rig.LoseHost(zone), "lose zone "+zone)
	}
	s.loseHome()
	s.restore(backup)
	for _, zone := range rig.Zones {
		s.must(s.rig.ReturnHost(zone), "return zone "+zone)
	}
	s.takenOver()
	w.works(60 * time.Second)
	if now := s.leaderSoon(id); now.Name != primary.Name {
		t.Errorf("%s leads, want %s", now.Name, primary.Name)
	}
	w.nothingLost()
	s.eventually(90*time.Second, s.isWell)
}

// The old primary's host stood still at the failover. It goes on when the home was restored, and in
// that home it is the primary. It must not become the primary again.
func TestALostHomeAndAPrimaryThatStoodStill(t *testing.T) {
	depth.Deep(t)
	s := begin(t, nil)
	id := s.given("orders", true)
	w := s.writing("orders")
	backup := s.backup()
	old := s.leader(id)
	thaw, err := s.rig.FreezeHost(old.ZoneLetter())
	s.must(err, "freeze the primary's host")
	defer func() { _ = thaw() }()
	w.works(30 * time.Second)
	s.loseHome()
	s.restore(backup)
	s.eventually(60*time.Second, func() error { return s.hasProblem("held") })
	s.eventually(30*time.Second, func() error {
		all, err := s.problems()
		if err == nil && !strings.Contains(strings.Join(all, "\n"), "waits for "+old.Host) {
			err = fmt.Errorf("%q", all)
		}
		return err
	})
	s.must(thaw(), "thaw it")
	s.takenOver()
	w.works(30 * time.Second)
	if now := s.leaderSoon(id); now.Name == old.Name {
		t.Errorf("%s leads again", now.Name)
	}
	s.eventually(90*time.Second, s.isWell)
	w.nothingLost()
}

// Databases that were made after the backup are not known. Their data are left alone, and go on. A
// database that was deleted since then is not made anew.
func TestALostHomeThatForgot(t *testing.T) {
	s := begin(t, nil)
	s.given("doomed", false)
	backup := s.backup()
	s.removed("doomed")
	id := s.given("later", false)
	later := s.leader(id)
	s.servesOnWithoutEtcd(id)
	config, err := s.rig.ConfigAt(later.Address, later.Port)
	s.must(err, "find the member of later")
	w := s.writingTo(config)
	s.loseHome()
	s.restore(backup)
	s.eventually(60*time.Second, func() error {
		return errors.Join(s.hasProblem("held"), s.hasProblem("unknown-data"))
	})
	var out admin.Held
	s.eventually(30*time.Second, func() error {
		out = admin.Held{}
		if err := s.ask(admin.VerbHeld, admin.Nothing{}, &out); err != nil {
			return err
		}
		if len(out.Missing) > 0 || len(out.Copies) != 2 || !strings.Contains(out.Copies[0].Why+out.Copies[1].Why, "no host has data of it") {
			return fmt.Errorf("%+v", out)
		}
		return nil
	})
	w.works(10 * time.Second)
	w.nothingLost()
	// A database that is held and has no data can be deleted.
	s.removed("doomed")
}

// servesOnWithoutEtcd waits until the primary of a new database has recorded whom it would ask
// without etcd. If etcd is lost before that, the primary steps down.
func (s *story) servesOnWithoutEtcd(id string) {
	s.Helper()
	s.eventually(10*time.Second, func() error {
		found, err := s.rig.Store.Client.Get(s.Context(), patroni.FailsafeKey(id))
		if err == nil && found.Count == 0 {
			err = errors.New("no failsafe key")
		}
		return err
	})
}

// removed deletes an instance, and waits until it is gone.
func (s *story) removed(name string) {
	s.Helper()
	in := &rds.DeleteDBInstanceMessage{DBInstanceIdentifier: &name, SkipFinalSnapshot: new(true)}
	s.must(s.rig.Call(s.Context(), "DeleteDBInstance", in, &rds.DeleteDBInstanceResult{}), "delete "+name)
	s.eventually(60*time.Second, func() error {
		if _, err := s.rig.Instance(s.Context(), name); err == nil {
			return errors.New(name + " is there still")
		}
		return nil
	})
}
