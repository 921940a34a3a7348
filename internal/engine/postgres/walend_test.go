package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/model/lsn"
	"howdah/internal/system/owner"
	"howdah/internal/testkit/pgtest"
	"howdah/internal/testkit/pgversion"
)

// A server that has switched to a new file of WAL, and was stopped before it made that file, has WAL
// to the end of the last one. A file that is missing in the middle is not taken for the end.
func TestWALEndsWithAFile(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	server.Exec("CREATE TABLE t AS SELECT generate_series(1, 1000) i")
	var last string
	for range 3 {
		conn, err := pgx.ConnectConfig(t.Context(), server.Config())
		if err != nil {
			t.Fatal(err)
		}
		err = conn.QueryRow(t.Context(), "SELECT pg_walfile_name(pg_switch_wal())").Scan(&last)
		_ = conn.Close(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		server.Exec("INSERT INTO t VALUES (0)")
	}
	server.Kill()
	dir := filepath.Join(server.DataDir(), "pg_wal")
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range names {
		if e.Name() > last && e.Name()[:8] == last[:8] {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	number, err := strconv.ParseUint(last[16:], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	want := lsn.LSN((number + 1) * postgres.SegmentSize)
	user, err := owner.Of(server.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	install, err := postgres.Find(pgversion.Major())
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(context.Context, postgres.Install, *owner.User, string) (lsn.LSN, int, error){
		"WALEnd": postgres.WALEnd, "NewestEnd": postgres.NewestEnd,
	} {
		if end, timeline, err := read(t.Context(), install, user, server.DataDir()); err != nil || end != want || timeline != 1 {
			t.Errorf("%s: %s on %d, want %s: %v", name, end, timeline, want, err)
		}
	}
	middle := fmt.Sprintf("%s%08X", last[:16], number-1)
	if err := os.Remove(filepath.Join(dir, middle)); err != nil {
		t.Fatal(err)
	}
	if end, _, err := postgres.WALEnd(t.Context(), install, user, server.DataDir()); err == nil {
		t.Errorf("without %s it ends at %s: %v", middle, end, err)
	}
}

// A file that the server made ahead of its use is empty. It says nothing of where the WAL ends, in
// whatever order the directory names its files.
func TestAFileMadeAheadOfItsUse(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	server.Exec("CREATE TABLE t AS SELECT generate_series(1, 1000) i")
	server.Kill()
	user, err := owner.Of(server.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	install, err := postgres.Find(pgversion.Major())
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := postgres.NewestEnd(t.Context(), install, user, server.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := 2; i < 40; i++ { // with some of them before the one that is in use
		path := filepath.Join(server.DataDir(), "pg_wal", fmt.Sprintf("0000000100000000000000%02X", i))
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := user.Do(func() error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, postgres.SegmentSize))
		}); err != nil {
			t.Fatal(err)
		}
	}
	if end, timeline, err := postgres.NewestEnd(t.Context(), install, user, server.DataDir()); err != nil || end != want || timeline != 1 {
		t.Errorf("%s on %d, want %s: %v", end, timeline, want, err)
	}
}
