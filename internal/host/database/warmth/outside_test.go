package warmth

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/probe"
	"howdah/internal/host/pace"
	"howdah/internal/model/member"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// shop is a server with databases that have a table each.
type shop struct {
	*testing.T
	server *pgtest.Server
	round  *round
	all    map[postgres.File]postgres.Blocks
	pages  int64 // of the table that was made last; from 16 on a table grows by many at once
}

func newShop(t *testing.T, databases ...string) *shop {
	t.Helper()
	s := &shop{T: t, server: pgtest.Start(t, pgtest.Options{Settings: "autovacuum = off\n"}), all: map[postgres.File]postgres.Blocks{}}
	for _, name := range databases {
		s.server.Exec("CREATE DATABASE " + name)
		conn := s.connect(name)
		if err := postgres.SetUpDatabase(t.Context(), conn, false); err != nil {
			t.Fatal(err)
		}
		s.exec(conn, "CREATE TABLE t AS SELECT n, repeat('x', 1000) AS x FROM generate_series(1, 7000) n")
		var f postgres.File
		const sql = "SELECT (SELECT oid FROM pg_database WHERE datname = current_database()), 1663, pg_relation_filenode('t'), pg_relation_size('t') / 8192"
		if err := conn.QueryRow(t.Context(), sql).Scan(&f.Database, &f.Tablespace, &f.Node, &s.pages); err != nil {
			t.Fatal(err)
		}
		s.all[f] = postgres.Blocks{{From: 0, To: s.pages}}
		conn.Close(t.Context())
	}
	target := member.Assignment{ID: "db-1.m1", Parameters: map[string]string{postgres.CacheSetting: "on"}}
	k := New(nil, target.ID, probe.New(nil, target.ID), nil)
	k.probe.Aim(target)
	k.conn = s.connect("postgres")
	s.round = &round{
		keeper: k, leads: true, looked: time.Now(), room: 1 << 20, flow: pace.NewFlow(1e6, time.Now()),
		open: func(ctx context.Context, name string) (*pgx.Conn, error) {
			return pgx.ConnectConfig(ctx, s.config(name))
		},
	}
	return s
}

func (s *shop) config(database string) *pgx.ConnConfig {
	config := s.server.Config()
	config.Database = database
	return config
}

func (s *shop) connect(database string) *pgx.Conn {
	s.Helper()
	conn, err := pgx.ConnectConfig(s.Context(), s.config(database))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { conn.Close(context.WithoutCancel(s.Context())) })
	return conn
}

func (s *shop) exec(conn *pgx.Conn, sql string) {
	s.Helper()
	if _, err := conn.Exec(s.Context(), sql); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
}

// A database that lets nobody in is left out. What others have had is read all the same.
func TestADatabaseThatRefusesKeepsNoOther(t *testing.T) {
	t.Parallel()
	s := newShop(t, "first", "second")
	open := s.round.open
	s.round.open = func(ctx context.Context, name string) (*pgx.Conn, error) {
		if name == "first" {
			name = "gone" // it was dropped since the databases were listed
		}
		return open(ctx, name)
	}
	var refused *pgconn.PgError
	if err := s.round.read(t.Context(), s.all); !errors.As(err, &refused) || refused.Code != "3D000" {
		t.Errorf("it ends with %v", err)
	}
	if read := 1<<20 - s.round.room; read != s.pages {
		t.Errorf("%d blocks were read, of %d of the second database", read, s.pages)
	}
}

// Reading again takes minutes. A database can be dropped meanwhile.
func TestADatabaseIsDroppedWhileItIsRead(t *testing.T) {
	t.Parallel()
	s := newShop(t, "goods")
	s.round.flow = pace.NewFlow(20, time.Now())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.round.read(ctx, s.all) }()
	admin := s.connect("postgres")
	testkit.Eventually(t, 20*time.Second, func() error {
		var n int
		err := admin.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = 'goods'").Scan(&n)
		if err == nil && n == 0 {
			err = errors.New("it is not in the database")
		}
		return err
	})
	s.exec(admin, "DROP DATABASE goods")
	select {
	case err := <-ended:
		var refused *pgconn.PgError
		if !errors.As(err, &refused) {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it does not end")
	}
	cancel()
}
