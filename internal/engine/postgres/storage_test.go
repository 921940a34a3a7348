package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit"
)

// A user's session may be a WAL sender, which runs SQL too. It writes no more than others do where
// there is no storage left. WAL senders of the platform are let alone.
func TestStorageHoldsWALSenders(t *testing.T) {
	t.Parallel()
	s, connect := slotServer(t, "howdah.logical_slots = on\n")
	s.Exec("CREATE TABLE public.filled (t text)")
	s.Exec("GRANT ALL ON TABLE public.filled TO mover, rdsrepladmin")
	platform := connect("rdsadmin", "rdsadmin")
	sender := func(user string) *pgconn.PgConn {
		config := s.Config()
		config.Database, config.User = s.Config().Database, user
		config.RuntimeParams["replication"] = "database"
		config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		conn, err := pgconn.ConnectConfig(t.Context(), &config.Config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.Background()) })
		return conn
	}
	begins := func(conn *pgconn.PgConn) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := conn.Exec(t.Context(), "BEGIN; INSERT INTO public.filled VALUES ('x'); SELECT pg_sleep(3600)").ReadAll()
			done <- err
		}()
		testkit.Eventually(t, patience, func() error {
			if len(done) > 0 {
				t.Fatal(<-done)
			}
			return writes(platform, conn.PID())
		})
		return done
	}
	hit := func(done chan error, how string) {
		t.Helper()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), how) {
				t.Errorf("%v instead of %q", err, how)
			}
		case <-time.After(patience):
			t.Errorf("it goes on writing: no %q", how)
		}
	}
	user := sender("mover")
	standby := sender("rdsrepladmin")
	kept := begins(standby)

	done := begins(user)
	if err := postgres.CancelWrites(t.Context(), platform); err != nil {
		t.Fatal(err)
	}
	hit(done, "canceling statement due to user request")
	for _, level := range []string{postgres.StorageFull, postgres.StorageOver} {
		done = begins(sender("mover"))
		if err := postgres.EndWriters(t.Context(), platform, level, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		hit(done, "terminating connection due to administrator command")
	}
	select {
	case err := <-kept:
		t.Errorf("a WAL sender of the platform was hit: %v", err)
	default:
	}
}

// writes says whether a session is in a statement and has written something.
func writes(conn *pgx.Conn, pid uint32) error {
	var n int
	return conn.QueryRow(context.Background(), "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND state = 'active' AND wait_event = 'PgSleep' AND backend_xid IS NOT NULL", int64(pid)).Scan(&n)
}
