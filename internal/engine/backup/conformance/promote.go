package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"howdah/internal/engine/backup"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// A standby that follows a promotion has the file in which the timeline was left, as far as that.
// Nobody ever archives that file, and the standby does not wait for it.
func testThird(t *testing.T, c Config) {
	w := begin(t, c, main)
	w.archived(w.server)
	var standbys []*pgtest.Server
	for _, name := range []string{"first", "third"} {
		s := w.server.Follow(name, pgtest.Options{Settings: "archive_mode = always\narchive_timeout = 0\n"})
		p := w.placeOf(s)
		p.Repositories = w.place.Repositories
		w.write(s, p)
		archiveBy(s, w.engine.ArchiveCommand(p))
		standbys = append(standbys, s)
	}
	w.switchWAL()
	w.exec("SELECT pg_logical_emit_message(true, 'conformance', 'x')")
	left := w.ask(w.server, "SELECT pg_walfile_name(pg_current_wal_lsn())")
	at := w.ask(w.server, "SELECT pg_current_wal_flush_lsn()::text")
	for _, s := range standbys {
		testkit.Eventually(t, within, func() error {
			if got := w.ask(s, "SELECT (pg_last_wal_receive_lsn() >= '"+at+"')::text"); got != "true" {
				return fmt.Errorf("a standby lacks WAL up to %s", at)
			}
			return nil
		})
	}
	w.server.Kill()
	first, third := standbys[0], standbys[1]
	first.Exec("SELECT pg_promote()")
	config := first.Config()
	third.Exec(fmt.Sprintf("ALTER SYSTEM SET primary_conninfo = 'host=%s port=%d user=%s application_name=third'", config.Host, config.Port, first.User))
	third.Exec("SELECT pg_reload_conf()")
	first.Exec("SELECT pg_logical_emit_message(true, 'conformance', 'x')")
	first.Exec("SELECT pg_switch_wal()")
	first.Exec("SELECT pg_logical_emit_message(true, 'conformance', 'x')")
	testkit.Eventually(t, within, func() error {
		if names, err := filepath.Glob(filepath.Join(third.DataDir(), "pg_wal/archive_status/00000002????????????????.*")); err != nil || len(names) == 0 {
			return fmt.Errorf("the third one has no WAL of the new timeline yet: %w", err)
		}
		return nil
	})
	if _, err := os.Stat(filepath.Join(third.DataDir(), "pg_wal", left)); err != nil {
		t.Fatalf("the third one has no file like that: %v", err)
	}
	w.archived(first)
	w.archived(third)
	if listed := w.list(); listed.LastWAL[:8] != "00000002" {
		t.Errorf("%+v", listed)
	}
	if w.repositories[main].Remove(t, left) > 0 {
		t.Errorf("%s was archived", left)
	}
}

// Two servers may have been promoted to one timeline. What one of them has archived keeps the other
// one's archive from nothing but the files of the same names, and these are told.
func testForeign(t *testing.T, c Config) {
	w := begin(t, c, main)
	w.archived(w.server)
	w.stop()
	name, later := w.switchWAL(), w.switchWAL()
	if said, err := w.archive(w.server, w.place, w.fake(name, later)); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	archiveBy(w.server, w.engine.ArchiveCommand(w.place))
	last := w.switchWAL()
	w.archived(w.server)
	foreign, err := os.ReadDir(filepath.Join(w.place.Dir, backup.Foreign))
	if err != nil || !slices.ContainsFunc(foreign, func(e os.DirEntry) bool { return e.Name() == later }) || len(foreign) != 1 {
		t.Errorf("%v is told as another server's, and not %s: %v", foreign, later, err)
	}
	if got := w.list().LastWAL; got != last {
		t.Errorf("archiving went on to %s, and not to %s", got, last)
	}
}
