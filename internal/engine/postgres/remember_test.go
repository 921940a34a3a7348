package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// What a server wrote down is what it had cached, until that is forgotten.
func TestACacheIsRemembered(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{Settings: "autovacuum = off\n"})
	conn := connect(t, s, s.Database)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(postgres.SetUpAsking(t.Context(), conn))
	if all, err := postgres.Remembered(s.DataDir()); err != nil || len(all) > 0 {
		t.Fatalf("before: %v, %v", all, err)
	}
	s.Exec("CREATE TABLE goods AS SELECT n, repeat('x', 200) FROM generate_series(1, 50000) n")
	s.Exec("CREATE ROLE tenant LOGIN")
	for range 2 {
		must(postgres.Remember(t.Context(), conn))
	}
	all, err := postgres.Remembered(s.DataDir())
	must(err)
	node, err := strconv.ParseUint(ask(t, s, "SELECT pg_relation_filenode('goods')::text"), 10, 32)
	must(err)
	var blocks int64
	for f, b := range all {
		if uint64(f.Node) == node && f.Fork == 0 {
			blocks = b.Count()
		}
	}
	if pages := ask(t, s, "SELECT (pg_relation_size('goods') / 8192)::text"); strconv.FormatInt(blocks, 10) != pages {
		t.Errorf("%d blocks of %s", blocks, pages)
	}
	if got := ask(t, s, "SELECT has_function_privilege('tenant', 'pg_catalog.howdah_remember()', 'EXECUTE')::text"); got != "false" {
		t.Error("a tenant may have it written")
	}
	for range 2 {
		must(postgres.Forget(s.DataDir()))
	}
	if all, err := postgres.Remembered(s.DataDir()); err != nil || len(all) > 0 {
		t.Errorf("after: %v, %v", all, err)
	}
}

// The crash of a session empties the cache, and the postmaster goes on. What was written down before is
// older than the start, and what is written down afterwards is not.
func TestAListIsOlderThanAStart(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	started := func() time.Time {
		t.Helper()
		conn := connect(t, s, s.Database)
		defer conn.Close(t.Context())
		f, err := postgres.Observe(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		return f.Started
	}
	write := func() time.Time {
		t.Helper()
		conn := connect(t, s, s.Database)
		defer conn.Close(t.Context())
		if err := errors.Join(postgres.SetUpAsking(t.Context(), conn), postgres.Remember(t.Context(), conn)); err != nil {
			t.Fatal(err)
		}
		at, err := postgres.RememberedAt(s.DataDir())
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	if at, err := postgres.RememberedAt(s.DataDir()); err != nil || !at.IsZero() {
		t.Errorf("no list was written at %s, %v", at, err)
	}
	first := started()
	list := write()
	if !list.After(first) {
		t.Errorf("the list is of %s, and the start of %s", list, first)
	}
	var pid int
	victim := connect(t, s, s.Database)
	if err := victim.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, func() error {
		conn, err := pgx.ConnectConfig(t.Context(), s.Config())
		if err != nil {
			return err
		}
		defer conn.Close(t.Context())
		f, err := postgres.Observe(t.Context(), conn)
		if err == nil && !f.Started.After(list) {
			err = fmt.Errorf("it started at %s, and the list is of %s", f.Started, list)
		}
		return err
	})
	if again := write(); !again.After(started()) {
		t.Errorf("the next list is of %s", again)
	}
}

func TestListsOfWhatWasCached(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]map[postgres.File]postgres.Blocks{
		"":        {},
		"<<0>>\n": {},
		"<<4>>\n0,1664,1262,0,0\n5,1663,16384,0,7\n5,1663,16384,0,8\n5,1663,16384,1,2\n5,1663,16384,0,11\n": {
			{Database: 0, Tablespace: 1664, Node: 1262}:           {{0, 1}},
			{Database: 5, Tablespace: 1663, Node: 16384}:          {{7, 9}, {11, 12}},
			{Database: 5, Tablespace: 1663, Node: 16384, Fork: 1}: {{2, 3}},
		},
		"x":                   nil,
		"<<1>>\n1,2,3\n":      nil,
		"<<1>>\n1,2,3,0,-4\n": nil,
		"<<3>>\n1,2,3,0,5\n1,2,3,0,4\n1,2,3,0,4\n": {{Database: 1, Tablespace: 2, Node: 3}: {{4, 6}}},
	} {
		if err := os.WriteFile(filepath.Join(dir, "autoprewarm.blocks"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := postgres.Remembered(dir)
		if want == nil && !errors.Is(err, postgres.ErrList) || want != nil && (err != nil || !reflect.DeepEqual(got, want)) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
