package postgres_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

func TestBlocksThatAreMissing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ hot, have, missing postgres.Blocks }{
		{nil, nil, nil},
		{postgres.Blocks{{0, 10}}, nil, postgres.Blocks{{0, 10}}},
		{postgres.Blocks{{0, 10}}, postgres.Blocks{{0, 10}}, nil},
		{postgres.Blocks{{2, 4}}, postgres.Blocks{{0, 10}}, nil},
		{postgres.Blocks{{0, 10}}, postgres.Blocks{{2, 4}, {6, 7}}, postgres.Blocks{{0, 2}, {4, 6}, {7, 10}}},
		{postgres.Blocks{{0, 10}, {20, 30}}, postgres.Blocks{{5, 25}}, postgres.Blocks{{0, 5}, {25, 30}}},
		{postgres.Blocks{{5, 6}, {8, 9}}, postgres.Blocks{{0, 5}, {6, 8}, {9, 12}}, postgres.Blocks{{5, 6}, {8, 9}}},
		{postgres.Blocks{{0, 3}, {4, 6}}, postgres.Blocks{{0, 1}, {2, 5}}, postgres.Blocks{{1, 2}, {5, 6}}},
	} {
		if got := tt.hot.Without(tt.have); !slices.Equal(got, tt.missing) {
			t.Errorf("%v without %v: %v, want %v", tt.hot, tt.have, got, tt.missing)
		}
	}
}

func TestBatchesOfBlocks(t *testing.T) {
	t.Parallel()
	blocks := postgres.Blocks{{0, 5}, {7, 8}, {10, 17}}
	want := []postgres.Blocks{{{0, 4}}, {{4, 5}, {7, 8}, {10, 12}}, {{12, 16}}, {{16, 17}}}
	got := blocks.Batches(4)
	if !slices.EqualFunc(got, want, slices.Equal[postgres.Blocks]) {
		t.Errorf("%v", got)
	}
	if got := postgres.Blocks(nil).Batches(4); len(got) > 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// connect logs in to a database of a server.
func connect(t *testing.T, s *pgtest.Server, database string) *pgx.Conn {
	t.Helper()
	config := s.Config()
	config.Database = database
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// What a primary has in its cache is read into its standby's, without any library of ours. Files that
// are gone, or shorter than the primary said, do no harm.
func TestACacheIsFilledFromOutside(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{Settings: "wal_level = replica\nautovacuum = off\n"})
	s.Exec("CREATE DATABASE shop")
	platform, shop := connect(t, s, "rdsadmin"), connect(t, s, "shop")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		must(postgres.SetUpAsking(t.Context(), platform))
		must(postgres.SetUpDatabase(t.Context(), shop, false))
		must(postgres.SetUpDatabase(t.Context(), platform, false))
	}
	for _, sql := range []string{"CREATE ROLE tenant LOGIN", "CREATE TABLE goods AS SELECT n, repeat('x', 200) FROM generate_series(1, 50000) n", "CREATE TABLE gone AS TABLE goods", "CHECKPOINT"} {
		_, err := shop.Exec(t.Context(), sql)
		must(err)
	}
	standby := s.Follow("standby", pgtest.Options{})
	there, inShop := connect(t, standby, "rdsadmin"), connect(t, standby, "shop")
	before, err := postgres.Cached(t.Context(), there, 0)
	must(err)
	for range 5 {
		_, err = shop.Exec(t.Context(), "SELECT count(*) FROM goods; SELECT count(*) FROM gone; SELECT count(*) FROM pg_catalog.pg_database")
		must(err)
	}
	hot, err := postgres.Cached(t.Context(), platform, 3)
	must(err)
	_, err = shop.Exec(t.Context(), "DROP TABLE gone")
	must(err)
	testkit.Eventually(t, time.Minute, func() error {
		var there *string
		if err := inShop.QueryRow(t.Context(), "SELECT to_regclass('gone')::text").Scan(&there); err != nil || there == nil {
			return err
		}
		return errors.New("the table is there still")
	})
	all, cold, err := postgres.Room(t.Context(), there)
	if err != nil || all != 16384 || cold < 1000 || cold > all {
		t.Fatalf("%d of %d buffers are cold, %v", cold, all, err)
	}
	var missed, read int64
	for f, blocks := range hot {
		conn := inShop
		if f.Database == 0 {
			conn = there
		}
		if f.Database != 0 && f.Database != oidOf(t, there, "shop") {
			continue
		}
		for _, batch := range blocks.Without(before[f]).Batches(100) {
			n, err := postgres.Load(t.Context(), conn, f, batch)
			must(err)
			missed, read = missed+batch.Count(), read+n
		}
	}
	after, err := postgres.Cached(t.Context(), there, 0)
	must(err)
	var node uint32
	must(shop.QueryRow(t.Context(), "SELECT pg_relation_filenode('goods')").Scan(&node))
	found := false
	for f, blocks := range hot {
		if f.Node == node && f.Fork == 0 {
			found = true
			if lacks := blocks.Without(after[f]); len(lacks) > 0 || blocks.Count() < 1000 {
				t.Errorf("of %d blocks it lacks %v", blocks.Count(), lacks)
			}
			if n, err := postgres.Load(t.Context(), inShop, f, postgres.Blocks{{1 << 20, 1<<20 + 5}}); n != 0 || err != nil {
				t.Errorf("blocks behind its end: %d, %v", n, err)
			}
		}
	}
	if !found || read < 1000 || read > missed-1000 {
		t.Errorf("%d of %d blocks were read; the table that is gone has a half", read, missed)
	}
	if got := ask(t, s, "SELECT has_function_privilege('tenant', 'pg_catalog.howdah_prewarm(regclass, text, text, int8, int8)', 'EXECUTE')::text"); got != "false" {
		t.Errorf("a tenant may read files: %s", got)
	}
}

func oidOf(t *testing.T, conn *pgx.Conn, name string) uint32 {
	t.Helper()
	all, err := postgres.Databases(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(d postgres.Database) bool { return d.Name == name })
	if i < 0 {
		t.Fatalf("there is no database %s in %v", name, all)
	}
	return all[i].OID
}
