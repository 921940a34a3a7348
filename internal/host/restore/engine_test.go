package restore

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/pgbackrest"
	modelbackup "howdah/internal/model/backup"
	"howdah/internal/testkit"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/sourcetest"
)

// repository has the source archive to a repository of pgBackRest's.
func (s source) repository(t testing.TB) (pgbackrest.Engine, backup.Place) {
	t.Helper()
	engine, err := pgbackrest.Find()
	if err != nil {
		testkit.Missing(t, err.Error())
	}
	place := backup.Place{
		Database: "db-1", Dir: filepath.Join(s.Dir, "engine"), DataDir: s.Data, SocketDir: filepath.Join(s.Dir, "socket"), Port: 5432,
		User: "rdsadmin", DBName: "rdsadmin", Major: s.Install.Major, BinDir: s.Install.BinDir,
		Repositories: []backup.Access{{Name: "main", Path: filepath.Join(s.Dir, "backups", "db-1"), Passphrase: "a passphrase"}},
	}
	s.Must(s.User.MakeDir(place.Dir))
	s.equip(engine, place)
	for _, c := range engine.Create(place) {
		s.does(c)
	}
	s.Exec("ALTER SYSTEM SET archive_command = '" + strings.ReplaceAll(engine.ArchiveCommand(place), "'", "''") + "'")
	s.Exec("SELECT pg_reload_conf()")
	for _, c := range engine.Check(place) {
		s.does(c)
	}
	return engine, place
}

func (s source) equip(engine backup.Engine, place backup.Place) {
	s.Helper()
	for _, f := range engine.Files(place) {
		s.Must(s.User.ReplaceFile(f.Path, f.Data, f.Mode))
	}
}

// does runs a command of the engine's.
func (s source) does(c backup.Command) string {
	s.Helper()
	cmd := s.Command(c.Path, c.Args...)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, c.Env...)
	out, err := cmd.Output()
	if failed, ok := err.(*exec.ExitError); ok { //nolint:errorlint // as it is returned
		s.Fatalf("%s %q: %v\n%s%s", c.Path, c.Args, err, out, failed.Stderr)
	}
	s.Must(err)
	return string(out)
}

// waits until the repository has all WAL until now.
func (s source) waits(t testing.TB) {
	t.Helper()
	s.Exec("SELECT pg_logical_emit_message(false, 'x', '')")
	name := sourcetest.Ask[string](s.Source, "SELECT pg_walfile_name(pg_current_wal_insert_lsn())")
	s.Exec("SELECT pg_switch_wal()")
	testkit.Eventually(t, time.Minute, func() error {
		if last := sourcetest.Ask[*string](s.Source, "SELECT last_archived_wal FROM pg_stat_archiver"); last == nil || *last < name {
			return fmt.Errorf("%s is not archived", name)
		}
		return nil
	})
}

// TestPgBackRest restores from a repository as pgBackRest makes it.
func TestPgBackRest(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	engine, place := s.repository(t)
	s.Keep("a")
	s.does(engine.Backup(place, backup.Take{Repository: "main", Kind: modelbackup.Full, Operation: "x"}))
	list, err := engine.ParseList([]byte(s.does(engine.List(place, "main"))))
	s.Must(err)
	label := list.Backups[0].Label
	b := s.Keep("b")
	c := s.Keep("c")
	s.waits(t)
	missing := sourcetest.Ask[string](s.Source, "SELECT pg_walfile_name(pg_current_wal_insert_lsn())")
	d := s.Keep("d")
	s.waits(t)
	e := s.Keep("e")
	s.waits(t)
	request := func(t testing.TB, target backup.Target) Request {
		r := s.request(t, backup.Restore{Repository: "main", Label: label, Target: target})
		r.Engine, r.Place.Repositories = engine, place.Repositories
		return r
	}
	for _, tt := range depth.Some(t, 3, []struct {
		name   string
		target backup.Target
		rows   string
	}{
		{"the end of the backup", backup.Target{}, "a"},
		{"a microsecond before a commit", backup.Target{Until: c.At.Add(-time.Microsecond)}, "a b"},
		{"a position", backup.Target{LSN: b.End}, "a b"},
		{"before a transaction", backup.Target{Before: d.XID}, "a b c"},
		{"the newest", backup.Target{Newest: true}, "a b c d e"},
	}) {
		t.Run(tt.name, func(t *testing.T) {
			r := request(t, tt.target)
			result, err := Restore(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			s.checkClean(t, r)
			if rows := strings.Join(s.look(t, r), " "); rows != tt.rows || result.Bytes < 1<<20 {
				t.Errorf("it has %q, want %q: %+v", rows, tt.rows, result)
			}
		})
	}
	refused := func(name string, target backup.Target, reason string) {
		t.Run(name, func(t *testing.T) {
			if _, err := Restore(t.Context(), request(t, target)); !Final(err) || !strings.Contains(err.Error(), reason) {
				t.Errorf("final %v, error %v, want %q", Final(err), err, reason)
			}
		})
	}
	refused("the future", backup.Target{Until: e.At.Add(time.Hour)}, "the archive ends at "+clock(e.At))
	t.Run("no such backup", func(t *testing.T) {
		r := request(t, backup.Target{})
		r.Source.Label = "20200101-000000F"
		if _, err := Restore(t.Context(), r); !Final(err) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("another key", func(t *testing.T) {
		r := request(t, backup.Target{})
		r.Place.Repositories = []backup.Access{{Name: "main", Path: place.Repositories[0].Path, Passphrase: "another"}}
		if _, err := Restore(t.Context(), r); !Final(err) || !strings.Contains(err.Error(), "key") {
			t.Errorf("error %v", err)
		}
	})
	s.removeWAL(t, missing)
	refused("past a missing file", backup.Target{Until: e.At}, "WAL file "+missing+" is missing")
	refused("the newest, past a missing file", backup.Target{Newest: true}, "WAL file "+missing+" is missing")
}

func (s source) removeWAL(t testing.TB, name string) {
	t.Helper()
	removed := 0
	s.Must(filepath.WalkDir(filepath.Join(s.Dir, "backups"), func(path string, e os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), name) {
			removed++
			err = os.Remove(path)
		}
		return err
	}))
	if removed != 1 {
		t.Fatalf("%d files were removed", removed)
	}
}
