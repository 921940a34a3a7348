package seed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/host/tree"
	"howdah/internal/model/lsn"
	"howdah/internal/testkit"
	"howdah/internal/testkit/sourcetest"
)

// TestAStandbyIsMadeOfABackup, and its primary sends none of its files.
func TestAStandbyIsMadeOfABackup(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.Keep("a")
	of := s.backup()
	s.Keep("b")
	s.switches()
	s.holds()
	s.Keep("c")
	m := s.member(of.Label)
	out := m.makes()
	if m.copied() || tree.Exists(filepath.Join(m.dir, Dir, dataDir)) {
		t.Fatalf("it was not made of the backup: %s", out)
	}
	if rows := m.starts(); rows != "a b c newest" {
		t.Errorf("it has %q", rows)
	}
	if s.sent() {
		t.Error("the primary has sent its files")
	}
}

// TestAStandbyFollowsItsPrimarysHistory: the backup is of an earlier timeline, and the archive has
// what was left there.
func TestAStandbyFollowsItsPrimarysHistory(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.Backup("plain") // for the server that is promoted
	s.Keep("a")
	of := s.backup()
	kept := s.Keep("b")
	s.Keep("left")
	s.switches()
	s.Keep("left too")
	s.switches()
	s.promote("plain", kept.End)
	s.Keep("c")
	s.switches()
	s.holds()
	s.Keep("d")
	m := s.member(of.Label)
	if out := m.makes(); m.copied() {
		t.Fatalf("it was not made of the backup: %s", out)
	}
	if rows := m.starts(); rows != "a b c d newest" {
		t.Errorf("it has %q", rows)
	}
	if s.sentSince() {
		t.Error("the primary has sent its files")
	}

	// One of what was left will not do.
	t.Run("a backup that ended on what was left", func(t *testing.T) {
		n := s.member(of.Label)
		p, err := look(t.Context(), s.conninfo())
		s.Must(err)
		of.StopLSN = kept.End + 1<<20
		maker := Maker{Engine: listing{s.engine, []backup.Info{of}}, Order: Order{Place: Place(s.place, n.dir), Repository: "main", Label: of.Label}, Dir: n.dir}
		if _, err := maker.find(t.Context(), p); err == nil || !strings.Contains(err.Error(), errLeft.Error()) {
			t.Errorf("error %v", err)
		}
	})
}

// promote has another server go on from a position, as one that was promoted, and archive.
func (s *source) promote(label string, at lsn.LSN) {
	s.Helper()
	s.Promote(label, at)
	s.archives()
}

// sentSince is sent, of the server that was promoted.
func (s *source) sentSince() bool {
	text, err := os.ReadFile(filepath.Join(s.Dir, "log-2"))
	s.Must(err)
	return strings.Contains(string(text), "BASE_BACKUP")
}

// listing is an engine that lists these backups.
type listing struct {
	backup.Engine
	all []backup.Info
}

func (l listing) List(backup.Place, string) backup.Command { return backup.Command{Path: "/bin/true"} }

func (l listing) ParseList([]byte) (backup.Listing, error) {
	return backup.Listing{Backups: l.all}, nil
}

// TestWhatIsNoUseIsCopiedFromThePrimary: then pg_basebackup is called as Patroni calls it.
func TestWhatIsNoUseIsCopiedFromThePrimary(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	of := s.backup()
	s.switches()
	missing := s.switches()
	s.switches()
	s.holds()
	brief := DefaultPatience
	brief.Gap = time.Second
	order := Order{Program: s.engine.Program, Place: s.place, Repository: "main", Label: of.Label, Slot: slot}
	for _, tt := range []struct {
		name   string
		change func(*member, *Order)
		reason error
	}{
		{"a backup that is not there", func(_ *member, o *Order) { o.Label = "20200101-000000F" }, errUnknown},
		{"another version", func(_ *member, o *Order) { o.Place.Major++ }, errOther},
		{"the primary keeps nothing", func(m *member, o *Order) { o.Slot, m.Patience = "other", brief }, errGap},
		{"a repository that is not there", func(_ *member, o *Order) {
			o.Place.Repositories = []backup.Access{{Name: "main", Path: filepath.Join(s.Dir, "nowhere"), Passphrase: "x"}}
		}, errUnknown},
		{"another key", func(_ *member, o *Order) {
			o.Place.Repositories = []backup.Access{{Name: "main", Path: s.place.Repositories[0].Path, Passphrase: "x"}}
		}, nil},
		{"a program that is not there", func(_ *member, o *Order) { o.Program = "/nowhere" }, nil},
		{"it stands still", func(m *member, _ *Order) { m.Patience.Still = time.Millisecond }, errStill},
		{"it is slow", func(m *member, _ *Order) { m.Patience.Grace, m.Patience.Least = time.Millisecond, 1<<40 }, errSlow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, o := s.member(of.Label), order
			tt.change(m, &o)
			m.orders(o)
			out := m.makes()
			if !m.copied() || tree.Exists(m.data()) || tree.Exists(filepath.Join(m.dir, Dir, dataDir)) {
				t.Errorf("the primary was not copied: %s", out)
			}
			if tt.reason != nil && !strings.Contains(out, tt.reason.Error()) {
				t.Errorf("it says %s", out)
			}
		})
	}
	t.Run("WAL is missing", func(t *testing.T) {
		found, err := filepath.Glob(filepath.Join(s.place.Repositories[0].Path, "archive", "db-1", "*", "*", missing+"*"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%q, %v", found, err)
		}
		s.Must(os.Remove(found[0]))
		m := s.member(of.Label)
		if out := m.makes(); !m.copied() || !strings.Contains(out, missing) {
			t.Errorf("it says %s", out)
		}
	})
	if !sourcetest.Ask[bool](s.Source, "SELECT true") {
		t.Error("the primary does not answer")
	}
}

// TestOfOneBackupDataAreMadeOnce: if they were no good, the primary is copied.
func TestOfOneBackupDataAreMadeOnce(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	of := s.backup()
	s.holds()
	m := s.member(of.Label)
	if out := m.makes(); m.copied() || !tree.Exists(filepath.Join(m.data(), "PG_VERSION")) {
		t.Fatalf("it was not made of the backup: %s", out)
	}
	s.Must(os.RemoveAll(m.data()))
	if out := m.makes(); !m.copied() || !strings.Contains(out, errUsed.Error()) {
		t.Errorf("it was made of the backup once more: %s", out)
	}
}

// TestAKillIsAPause at each step: nothing half made is ever taken for data, nothing of it runs on, and
// the next call makes them.
func TestAKillIsAPause(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.Keep("a")
	of := s.backup()
	s.holds()
	for _, step := range []string{"copying", "copied", "fetched", "synced", "noted"} {
		t.Run(step, func(t *testing.T) {
			m := s.member(of.Label)
			m.KillAt = step
			out := m.makes()
			if !strings.Contains(out, "step "+step) || tree.Exists(m.data()) || m.copied() {
				t.Fatalf("it was not killed: %s", out)
			}
			// The kernel kills them, a moment later.
			testkit.Eventually(t, 5*time.Second, func() error {
				if left := running(m.dir); left != "" {
					return errors.New("it left running: " + left)
				}
				return nil
			})
			m.KillAt = ""
			out = m.makes()
			if step == "noted" && m.copied() {
				return // nobody knows whether the data were in use
			}
			if m.copied() || !tree.Exists(filepath.Join(m.data(), "backup_label")) {
				t.Errorf("it was not made of the backup: %s", out)
			}
		})
	}
}

// running lists the processes that have a path in their arguments.
func running(path string) string {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err.Error()
	}
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), path+"/"+Dir) {
			return strings.ReplaceAll(string(text), "\x00", " ")
		}
	}
	return ""
}

// TestSecretsOfAnOrderAreTheMembersAlone.
func TestSecretsOfAnOrderAreTheMembersAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := Order{Place: Place(backup.Place{Repositories: []backup.Access{{Name: "main", Secret: "s3cret"}}}, dir), Label: "x"}
	if err := Write(nil, dir, o, nil); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("find", dir, "-type", "f", "-printf", "%P %m\n").Output()
	if want := fmt.Sprintf("%s/%s 600\n", Dir, orderFile); err != nil || string(out) != want {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
	if again, err := read(Path(dir)); err != nil || again.Place.Repositories[0].Secret != "s3cret" || again.Label != "x" {
		t.Errorf("%+v, %v", again, err)
	}
	if err := Forget(nil, dir); err != nil || tree.Exists(filepath.Join(dir, Dir)) {
		t.Errorf("%v: it is there", err)
	}
}
