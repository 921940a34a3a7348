package fault

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/engine/postgres"
	"howdah/internal/model/member"
	"howdah/internal/testkit/ack"
	"howdah/internal/testkit/loopdisk"
	"howdah/internal/testkit/pgversion"
	"howdah/internal/testkit/rig"
)

// A database with a standby is cloned under load, on a file system that shares blocks: the clone has
// every row that was acknowledged, is whole and writable, and takes no room. Agents, the control plane
// and the primary are killed while others are made. Nothing of the clones is left in the source, and
// they go on when it is deleted.
func TestClones(t *testing.T) {
	disk := loopdisk.NewXFS(t, "8000")
	s := begin(t, func(o *rig.Options) { o.Dir = disk.Dir })
	id := s.given("orders", true)
	s.must(s.exec("orders", "CREATE TABLE much AS SELECT n, repeat('x', 500) x FROM generate_series(1, 200000) n"), "fill it")
	s.must(s.exec("orders", "CREATE INDEX ON much (x, n)"), "index it")
	w := s.writing("orders")
	w.works(2 * time.Second)

	s.thin("orders")
	s.cloned("thin", w)
	s.whole("thin")
	s.must(s.exec("thin", "UPDATE much SET x = 'of the clone' WHERE n % 10 = 0"), "write to the clone")
	if n, err := s.query("orders", "SELECT count(*)::text FROM much WHERE x = 'of the clone'"); err != nil || n != "0" {
		t.Errorf("the source has %s rows of the clone: %v", n, err)
	}
	s.shared("thin")

	s.clonedWhile("agents-die", w, s.killAgents)
	s.clonedWhile("control-dies", w, s.killServe)
	s.eventually(time.Minute, func() error { return s.rig.InSync(s.Context(), id, 1) })
	s.clonedWhile("primary-dies", w, func() error { return s.leader(id).KillPostgres() })
	w.works(15 * time.Second)
	s.eventually(time.Minute, s.noSlots)
	w.nothingLost()

	s.removed("orders")
	for _, name := range []string{"thin", "agents-die", "control-dies", "primary-dies"} {
		s.must(s.exec(name, "INSERT INTO much VALUES (-1, 'alone')"), "write to "+name+" without its source")
	}
	s.eventually(time.Minute, func() error { return s.nothingIn("members/*/restore") })
}

// A clone whose source is deleted before it could be copied says so, and can be deleted.
func TestACloneOfWhatIsDeleted(t *testing.T) {
	s := begin(t, nil)
	id := s.given("orders", false)
	from, name := s.leader(id), "late"
	// Nobody can copy its files while it answers nobody.
	s.must(from.SignalPostgres(syscall.SIGSTOP), "stop its PostgreSQL")
	// A home that has just begun restores nothing before all its parts have said what they read.
	s.eventually(time.Minute, func() error {
		_, err := s.howdah("db", "clone", "orders", name, "--no-wait")
		return err
	})
	s.drop("orders")
	s.must(s.rig.WaitStatus(s.Context(), name, "incompatible-restore", 2*time.Minute), name)
	s.eventually(30*time.Second, func() error { return s.hasProblem("restore-fails") })
	s.removed(name)
}

// thin checks that a clone of a database would take no room.
func (s *story) thin(of string) {
	s.Helper()
	s.eventually(time.Minute, func() error {
		out, err := s.howdah("db", "clone", of, "would", "--dry-run", "-o", "json")
		var p admin.RestorePlan
		if err == nil {
			err = json.Unmarshal([]byte(out), &p)
		}
		if err == nil && (!p.Thin || !p.Live || p.Size == 0 || len(p.Hosts) != 1) {
			err = fmt.Errorf("it would be %+v", p)
		}
		return err
	})
}

// cloned makes a clone, and checks that it has what was acknowledged before.
func (s *story) cloned(name string, w *writers) {
	s.Helper()
	before := w.load.Acks()
	began := time.Now()
	_, err := s.howdah("db", "clone", "orders", name)
	s.must(err, "clone it as "+name)
	s.Logf("%s took %s", name, time.Since(began))
	s.hasAll(name, w.load.Table, before)
}

func (s *story) hasAll(name, table string, acks []ack.Ack) {
	s.Helper()
	config, err := s.rig.Config(s.Context(), name)
	s.must(err, "find "+name)
	missing, err := ack.Missing(s.Context(), config, table, acks)
	if err != nil || len(missing) > 0 || len(acks) == 0 {
		s.Errorf("%s: of %d rows that were acknowledged before, %d are missing: %v", name, len(acks), len(missing), err)
	}
}

// clonedWhile makes a clone while somebody is killed as soon as its files are being copied, or before.
func (s *story) clonedWhile(name string, w *writers, kill func() error) {
	s.Helper()
	before := w.load.Acks()
	_, err := s.howdah("db", "clone", "orders", name, "--no-wait")
	s.must(err, "ask for "+name)
	s.eventually(time.Minute, func() error {
		if s.nothingIn("members/*/restore") == nil {
			return fmt.Errorf("%s is not begun", name)
		}
		return nil
	})
	s.must(kill(), "kill for "+name)
	s.must(s.rig.WaitStatus(s.Context(), name, "available", 3*time.Minute), name)
	s.hasAll(name, w.load.Table, before)
	s.must(s.exec(name, "INSERT INTO much VALUES (0, 'writable')"), "write to "+name)
}

// primaryOf is the member that leads an instance.
func (s *story) primaryOf(name string) rig.Member {
	s.Helper()
	id, err := s.rig.Database(s.Context(), name)
	s.must(err, "find "+name)
	return s.leader(id)
}

// whole reads all of a database.
func (s *story) whole(name string) {
	s.Helper()
	m := s.primaryOf(name)
	install, err := postgres.Find(pgversion.Major())
	s.must(err, "find PostgreSQL")
	cmd := exec.CommandContext(s.Context(), install.Program("pg_amcheck"), "--host="+m.SocketDir(), "--port="+strconv.Itoa(m.Port), "--username=rdsadmin", "--all", "--install-missing", "--heapallindexed")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Errorf("amcheck of %s: %v\n%s", name, err, out)
	}
}

// shared checks that an agent says that a clone shares blocks with its source.
func (s *story) shared(name string) {
	s.Helper()
	m := s.primaryOf(name)
	id := member.ID(m.Database, m.Name)
	text, err := os.ReadFile(filepath.Join(s.rig.Dir, "agent-"+m.ZoneLetter()+".log"))
	s.must(err, "read the log of the agent")
	for line := range strings.Lines(string(text)) {
		var said struct {
			Message       string `json:"msg"`
			Member        string `json:"member"`
			Bytes, Shared int64
		}
		if json.Unmarshal([]byte(line), &said) == nil && said.Message == "restored" && said.Member == id {
			if said.Shared == 0 || said.Shared != said.Bytes {
				s.Errorf("it shares %d of %d bytes", said.Shared, said.Bytes)
			}
			return
		}
	}
	s.Errorf("nobody says what %s shares", id)
}

// noSlots checks that nothing of a clone is left in the source.
func (s *story) noSlots() error {
	n, err := s.query("orders", "SELECT count(*)::text FROM pg_replication_slots WHERE slot_name LIKE 'howdah_clone%'")
	if err == nil && n != "0" {
		err = fmt.Errorf("the source has %s slots of clones", n)
	}
	return err
}

// nothingIn returns nil if no host has what matches a pattern.
func (s *story) nothingIn(pattern string) error {
	there, err := filepath.Glob(filepath.Join(s.rig.Home.HostDir("*"), pattern))
	if err == nil && len(there) > 0 {
		err = fmt.Errorf("there are %q", there)
	}
	return err
}
