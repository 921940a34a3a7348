package restore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/postgres"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/testkit"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/sourcetest"
)

// look starts a server on restored data, and returns the rows that were kept.
func (s source) look(t testing.TB, r Request) []string {
	t.Helper()
	data := DataDir(r.Dir)
	s.Must(s.User.ReplaceFile(filepath.Join(data, "pg_hba.conf"), []byte("local all all trust\n"), 0o600))
	cmd := s.Server("-D", data, "-c", "listen_addresses=", "-c", "unix_socket_directories="+r.SocketDir, "-c", "port=5432")
	log, err := os.Create(filepath.Join(filepath.Dir(r.SocketDir), "look.log"))
	s.Must(err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	testkit.Start(t, cmd)
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	var rows []string
	testkit.Eventually(t, time.Minute, func() error {
		conn, err := pgx.Connect(t.Context(), "host="+r.SocketDir+" port=5432 user=rdsadmin dbname=rdsadmin")
		if err != nil {
			return err
		}
		defer conn.Close(t.Context())
		var replicates bool
		if err := conn.QueryRow(t.Context(), "SELECT pg_is_in_recovery() OR EXISTS (SELECT FROM pg_replication_slots)").Scan(&replicates); err != nil || replicates {
			t.Errorf("it recovers, or has slots: %v", err)
		}
		found, err := conn.Query(t.Context(), "SELECT what FROM public.kept ORDER BY what")
		if err != nil {
			return err
		}
		rows, err = pgx.CollectRows(found, pgx.RowTo[string])
		return err
	})
	return rows
}

// restored restores, and returns the rows that are there then.
func (s source) restored(t testing.TB, from backup.Restore) (string, Result) {
	t.Helper()
	r := s.request(t, from)
	var rows []string
	r.Finish = func(ctx context.Context, conn *pgx.Conn) error {
		found, err := conn.Query(ctx, "SELECT what FROM public.kept ORDER BY what")
		if err == nil {
			rows, err = pgx.CollectRows(found, pgx.RowTo[string])
		}
		return err
	}
	result, err := Restore(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	s.checkClean(t, r)
	return strings.Join(rows, " "), result
}

// checkClean checks that nothing of the source is there but its data.
func (s source) checkClean(t testing.TB, r Request) {
	t.Helper()
	data := DataDir(r.Dir)
	entries, err := os.ReadDir(data)
	s.Must(err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{
		"PG_VERSION", "base", "global", "pg_commit_ts", "pg_dynshmem", "pg_hba.conf", "pg_ident.conf", "pg_logical", "pg_multixact", "pg_notify",
		"pg_replslot", "pg_serial", "pg_snapshots", "pg_stat", "pg_stat_tmp", "pg_subtrans", "pg_tblspc", "pg_twophase", "pg_wal", "pg_xact",
		"postgresql.auto.conf", "postgresql.conf",
	}
	if !slices.Equal(names, want) {
		t.Errorf("there are %q, want %q", names, want)
	}
	for _, name := range []string{"postgresql.auto.conf", "pg_hba.conf"} {
		if text, err := os.ReadFile(filepath.Join(data, name)); err != nil || len(text) > 0 {
			t.Errorf("%s has %q, %v", name, text, err)
		}
	}
	left, err := os.ReadDir(r.Dir)
	s.Must(err)
	if len(left) != 2 { // the data, and the state
		t.Errorf("left: %v", left)
	}
	was, err := postgres.ReadControl(s.Data)
	s.Must(err)
	is, err := postgres.ReadControl(data)
	s.Must(err)
	if is.SystemID == was.SystemID || is.State != postgres.ShutDown {
		t.Errorf("restored: %+v, the source has %+v", is, was)
	}
}

// TestTargets restores one history to many targets.
func TestTargets(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.Keep("a")
	s.Exec("SELECT pg_create_physical_replication_slot('of_the_source', true)")
	s.Backup("one")
	b := s.Keep("b")
	c := s.Keep("c")
	d := s.Keep("d")
	s.Archive()
	e := s.Keep("e")
	s.Archive()

	until := func(at time.Time) backup.Target { return backup.Target{Until: at} }
	for _, tt := range depth.Some(t, 4, []struct {
		name   string
		target backup.Target
		rows   string
		last   time.Time
	}{
		{"the end of the backup", backup.Target{}, "a", time.Time{}},
		{"the moment of a commit", until(c.At), "a b c", c.At},
		{"a microsecond before it", until(c.At.Add(-time.Microsecond)), "a b", b.At},
		{"a microsecond after it", until(c.At.Add(time.Microsecond)), "a b c", c.At},
		{"the moment of the last commit there is", until(e.At), "a b c d e", e.At},
		{"a position", backup.Target{LSN: c.End}, "a b c", c.At},
		{"before a transaction", backup.Target{Before: d.XID}, "a b c", c.At},
		{"the newest", backup.Target{Newest: true}, "a b c d e", e.At},
	}) {
		t.Run(tt.name, func(t *testing.T) {
			rows, result := s.restored(t, backup.Restore{Repository: "main", Label: "one", Target: tt.target})
			if rows != tt.rows {
				t.Errorf("it has %q, want %q", rows, tt.rows)
			}
			if !result.LastCommit.Equal(tt.last) || result.Timeline != 2 || result.EndLSN == 0 || result.Bytes != sourcetest.Size {
				t.Errorf("result %+v, want the last commit at %s", result, tt.last)
			}
		})
	}
	for _, tt := range []struct {
		name   string
		target backup.Target
		reason string
	}{
		{"the future", until(e.At.Add(time.Hour)), "the archive ends at " + clock(e.At)},
		{"a position that was never reached", backup.Target{LSN: e.End + lsn.LSN(1<<32)}, "the archive ends at " + clock(e.At)},
		{"a transaction that never was", backup.Target{Before: "4000000"}, "has no transaction 4000000"},
		{"a position before the end of the backup", backup.Target{LSN: 1}, "choose an earlier backup, or ask for a later moment"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.refused(t, backup.Restore{Label: "one", Target: tt.target}, tt.reason)
		})
	}
	t.Run("a backup that is not there", func(t *testing.T) {
		s.refused(t, backup.Restore{Label: "none"}, "No such file")
	})
}

// refused expects that a restore fails for good, with a reason, and leaves no data.
func (s source) refused(t testing.TB, from backup.Restore, reason string) {
	t.Helper()
	r := s.request(t, from)
	result, err := Restore(t.Context(), r)
	if !Final(err) || !strings.Contains(err.Error(), reason) {
		t.Errorf("result %+v, error %v, want %q", result, err, reason)
	}
	if _, err := os.Stat(DataDir(r.Dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("data are there: %v", err)
	}
}

// TestProgressIsTold, with bytes.
func TestProgressIsTold(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.Backup("one")
	s.Archive()
	r := s.request(t, backup.Restore{Label: "one"})
	var told []member.Restoring
	r.Progress = func(p member.Restoring) { told = append(told, p) }
	if _, err := Restore(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if len(told) == 0 || told[0].Phase != "files" || told[0].Of != sourcetest.Size || told[0].Done != sourcetest.Size/2 || told[0].Began.IsZero() {
		t.Errorf("told %+v", told)
	}
}

// TestPipesOfUsers: functions of users run in the private server, and may leave anything where files
// are to be, and programs that go on.
func TestPipesOfUsers(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.Keep("a")
	s.Backup("one")
	s.Archive()
	r := s.request(t, backup.Restore{Label: "one", Target: backup.Target{Newest: true}})
	part := filepath.Join(r.Dir, partDir)
	r.Finish = func(ctx context.Context, conn *pgx.Conn) error {
		loop := "cd " + part + "; while :; do for f in " + baseConf + " " + autoConf + " " + hbaConf + "; do rm -f $f; mkfifo $f; : >seen; done; done"
		if _, err := conn.Exec(ctx, "COPY (SELECT 1) TO PROGRAM $sh$cat >/dev/null; setsid sh -c '"+loop+"' >/dev/null 2>&1 &$sh$"); err != nil {
			return err
		}
		testkit.Eventually(t, time.Minute, func() error { // it runs
			_, err := os.Stat(filepath.Join(part, "seen"))
			return err
		})
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := restore(ctx, r, func(step string) error {
		if left, err := r.Group.Processes(); step == "stopped" && (err != nil || len(left) > 0) {
			t.Errorf("they go on: %v, %v", left, err)
		}
		if step == "stopped" { // as it is where a loop was killed between its commands
			return os.RemoveAll(filepath.Join(part, baseConf))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.checkClean(t, r)
}

// TestLongOutput: who prints without end fills no memory, and hides no end.
func TestLongOutput(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	if err := errors.Join(os.WriteFile(path, []byte("a\n"), 0o600), os.Truncate(path, 1<<40)); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	o, longest, lines := output{file: file}, 0, 0
	for range 3 {
		err = errors.Join(err, o.each(func(line string) error {
			longest, lines = max(longest, len(line)), lines+1
			return nil
		}))
	}
	if err != nil || longest > mostLine || lines < 3 || len(o.rest) > mostLine || o.all.Len() > 2*mostOutput {
		t.Errorf("%d lines of at most %d bytes, %v", lines, longest, err)
	}
}
