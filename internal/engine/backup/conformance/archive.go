package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/postgres"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// archive runs the archive command for a file of a server, as its archiver does.
func (w *world) archive(s *pgtest.Server, p backup.Place, path string) (said string, err error) {
	w.Helper()
	command := strings.ReplaceAll(strings.ReplaceAll(w.engine.ArchiveCommand(p), "%p", path), "%%", "%")
	cmd := exec.CommandContext(w.Context(), "/bin/sh", "-c", command)
	cmd.Dir = s.DataDir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.Credential()}
	out, err := cmd.CombinedOutput()
	w.secret(string(out))
	return string(out), err
}

// stop keeps the server's own archiver from what a test looks at.
func (w *world) stop() {
	w.Helper()
	archiveBy(w.server, "false")
}

// fake puts a file that is not of this name where WAL lies.
func (w *world) fake(from, name string) string {
	w.Helper()
	data, err := os.ReadFile(filepath.Join(w.server.DataDir(), "pg_wal", from))
	if err != nil {
		w.Fatal(err)
	}
	dir := filepath.Join(w.place.Dir, "fake")
	if err := os.MkdirAll(dir, 0o711); err != nil {
		w.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o644); err != nil { //nolint:gosec // the server's user reads it
		w.Fatal(err)
	}
	return path
}

// WAL arrives. The same file passes again, and another one of its name does not.
func testArchive(t *testing.T, c Config) {
	w := begin(t, c, main)
	name := w.switchWAL()
	w.archived(w.server)
	for _, command := range w.engine.Check(w.place) {
		w.must(command)
	}
	if said, err := w.archive(w.server, w.place, "pg_wal/"+name); err != nil {
		t.Errorf("the same file again: %v: %s", err, said)
	}
	later := w.switchWAL()
	w.archived(w.server)
	said, err := w.archive(w.server, w.place, w.fake(later, name))
	if err == nil {
		t.Error("another file of the same name was accepted")
	}
	failing, _ := os.ReadFile(filepath.Join(w.place.Dir, backup.Failing))
	if f := w.engine.Failed(failing, 1); !f.Final || !strings.Contains(f.Reason, "two servers") {
		t.Errorf("%q is told as %+v", said, f)
	}
	if said, err := w.archive(w.server, w.place, "pg_wal/"+name); err != nil {
		t.Errorf("the right file after a wrong one: %v: %s", err, said)
	}
	if _, err := os.Stat(filepath.Join(w.place.Dir, backup.Failing)); err == nil {
		t.Error("what failed before still stands there")
	}
	if first, last := w.list().FirstWAL, w.list().LastWAL; first == "" || last < later {
		t.Errorf("WAL from %s to %s is listed, and %s was archived", first, last, later)
	}
}

// A standby keeps WAL until the primary has archived it, pushes nothing, and pushes what is
// missing once it is promoted.
func testStandby(t *testing.T, c Config) {
	w := begin(t, c, main)
	w.archived(w.server)
	standby := w.server.Follow("standby", pgtest.Options{Settings: "archive_mode = always\narchive_timeout = 0\n"})
	archiveBy(standby, "false")
	p := w.placeOf(standby)
	p.Repositories = w.place.Repositories
	w.write(standby, p)

	name := w.switchWAL()
	w.archived(w.server)
	waits := func(name string) {
		t.Helper()
		testkit.Eventually(t, within, func() error {
			if names := ready(t, standby); !slices.Contains(names, name) {
				return fmt.Errorf("the standby has %v to archive, and not %s", names, name)
			}
			return nil
		})
	}
	waits(name)
	if said, err := w.archive(standby, p, "pg_wal/"+name); err != nil {
		t.Errorf("a file that the primary has archived: %v: %s", err, said)
	}
	w.stop()
	name = w.switchWAL()
	waits(name)
	if said, err := w.archive(standby, p, "pg_wal/"+name); err == nil || !strings.Contains(said, name) {
		t.Errorf("a file that the primary has not archived: %v: %s", err, said)
	}
	if last := w.list().LastWAL; last >= name {
		t.Errorf("the standby pushed: %s is there", last)
	}
	w.server.Kill()
	archiveBy(standby, w.engine.ArchiveCommand(p))
	standby.Exec("SELECT pg_promote()")
	standby.Exec("SELECT pg_switch_wal()")
	w.archived(standby)
	if last := w.list().LastWAL; last[:8] != "00000002" {
		t.Errorf("the newest file is %s after a promotion", last)
	}
	if w.repositories[main].Remove(t, name) == 0 {
		t.Errorf("%s was not pushed after a promotion", name)
	}
}

// If too much waits, the oldest files are given up, and are written down.
func testCap(t *testing.T, c Config) {
	w := begin(t, c, main)
	w.archived(w.server)
	w.stop()
	w.place.Cap = 2 * postgres.SegmentSize
	w.write(w.server, w.place)
	back := w.repositories[main].Away(t)
	names := []string{w.switchWAL(), w.switchWAL()}
	if said, err := w.archive(w.server, w.place, "pg_wal/"+names[0]); err == nil {
		t.Errorf("a file was acknowledged below the cap: %s", said)
	}
	names = append(names, w.switchWAL())
	testkit.Eventually(t, within, func() error {
		if got := ready(t, w.server); len(got) != len(names) {
			return fmt.Errorf("%v wait, and not %v", got, names)
		}
		return nil
	})
	for range 2 { // the archiver may ask again
		if said, err := w.archive(w.server, w.place, "pg_wal/"+names[0]); err != nil || !strings.Contains(said, names[0]) {
			t.Errorf("above the cap: %v: %s", err, said)
		}
	}
	broken, err := os.ReadFile(filepath.Join(w.place.Dir, backup.Broken))
	if err != nil || string(broken) != names[0]+"\n" {
		t.Errorf("%q is written down as given up: %v", broken, err)
	}
	back()
	archiveBy(w.server, w.engine.ArchiveCommand(w.place))
	w.archived(w.server)
	if last := w.list().LastWAL; last != names[2] {
		t.Errorf("archiving goes on up to %s, and not %s", last, names[2])
	}
}

// One repository that is away keeps nothing from the other one.
func testSecond(t *testing.T, c Config) {
	w := begin(t, c, main, second)
	w.archived(w.server)
	back := w.repositories[second].Away(t)
	var names []string
	for range 3 {
		names = append(names, w.switchWAL())
	}
	testkit.Eventually(t, within, func() error {
		if last := w.list().LastWAL; last != names[2] {
			return fmt.Errorf("the other repository has WAL up to %s, and not %s", last, names[2])
		}
		return nil
	})
	if names := ready(t, w.server); len(names) != 3 {
		t.Errorf("%v wait for the second repository", names)
	}
	back()
	w.archived(w.server)
	listing, err := w.engine.ParseList(w.must(w.engine.List(w.place, second)))
	if err != nil || listing.LastWAL != names[2] {
		t.Errorf("the second repository has WAL up to %s, and not %s: %v", listing.LastWAL, names[2], err)
	}
}
