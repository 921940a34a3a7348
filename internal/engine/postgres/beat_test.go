package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit/pgtest"
)

// TestHeartbeats: a heartbeat is behind the moment that it names, is found by who comes after it,
// and waits for no standby.
func TestHeartbeats(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	conn, err := pgx.ConnectConfig(t.Context(), s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	first, err := postgres.Commit(t.Context(), conn)
	if err != nil || first.Timeline != 1 || first.End == 0 || time.Since(first.At) > time.Hour {
		t.Fatalf("%+v, %v", first, err)
	}
	if next, err := postgres.NextWriter(t.Context(), conn); err != nil || next != first.Next {
		t.Errorf("nobody wrote: %s, %v; want %s", next, err, first.Next)
	}
	if ok, err := postgres.Confirmed(t.Context(), conn, first.End); err != nil || !ok {
		t.Errorf("without standbys: %v, %v", ok, err)
	}
	if ok, err := postgres.Archives(t.Context(), conn); err != nil || ok {
		t.Errorf("without an archive: %v, %v", ok, err)
	}
	s.Exec("CREATE TABLE t (n int)")
	if next, err := postgres.NextWriter(t.Context(), conn); err != nil || next == first.Next {
		t.Errorf("somebody wrote: %s, %v", next, err)
	}
	s.Set("synchronous_standby_names = '*'")
	var names string
	if err := conn.QueryRow(t.Context(), "SELECT pg_reload_conf()::text").Scan(&names); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for names != "*" {
		if err := conn.QueryRow(ctx, "SELECT current_setting('synchronous_standby_names')").Scan(&names); err != nil {
			t.Fatal(err)
		}
	}
	second, err := postgres.Commit(ctx, conn)
	if err != nil || !second.At.After(first.At) || second.End <= first.End {
		t.Fatalf("%+v after %+v, %v", second, first, err)
	}
	if ok, err := postgres.Confirmed(ctx, conn, second.End); err != nil || ok {
		t.Errorf("no standby has it: %v, %v", ok, err)
	}
}

// TestAFileOfWALIsEnded, with all that was written before.
func TestAFileOfWALIsEnded(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	conn, err := pgx.ConnectConfig(t.Context(), s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	b, err := postgres.Commit(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := postgres.EndFile(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	var later bool
	if err := conn.QueryRow(t.Context(), "SELECT pg_walfile_name(pg_current_wal_insert_lsn() + 1) > pg_walfile_name($1::text::pg_lsn)", b.End.String()).Scan(&later); err != nil || !later {
		t.Errorf("it is written to the same file, %v", err)
	}
}

func TestNoHeartbeatOfAStandby(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	f := s.Follow("standby", pgtest.Options{})
	conn, err := pgx.ConnectConfig(t.Context(), f.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if b, err := postgres.Commit(t.Context(), conn); !errors.Is(err, postgres.ErrStandby) {
		t.Errorf("%+v, %v", b, err)
	}
}
