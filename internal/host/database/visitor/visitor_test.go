package visitor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/visitor"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// A database is not entered while somebody holds up logins there. One that was held up at the wrong
// moment leaves nothing on the server, and the database is left alone for a while.
func TestHeldDatabase(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	s.Exec("CREATE DATABASE trap")
	connect := func(ctx context.Context, database string) (*pgx.Conn, error) {
		config := s.Config()
		config.Database = database
		return pgx.ConnectConfig(ctx, config)
	}
	session := func() *pgx.Conn {
		t.Helper()
		conn, err := connect(t.Context(), "rdsadmin")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.Background()) })
		return conn
	}
	platform, holder := session(), session()
	var trap postgres.Database
	if err := platform.QueryRow(t.Context(), "SELECT oid, datname::text FROM pg_database WHERE datname = 'trap'").Scan(&trap.OID, &trap.Name); err != nil {
		t.Fatal(err)
	}
	hold := func() {
		t.Helper()
		if _, err := holder.Exec(t.Context(), "BEGIN; ALTER DATABASE trap RENAME TO x"); err != nil {
			t.Fatal(err)
		}
	}
	release := func() {
		t.Helper()
		if _, err := holder.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
	}
	var v visitor.Visitor
	logins := 0
	try := func(before func()) (bool, error) {
		return v.Call(t.Context(), platform, trap, func(ctx context.Context) (*pgx.Conn, error) {
			logins++
			before()
			ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			return connect(ctx, "trap")
		}, func(conn *pgx.Conn) error { return conn.Ping(t.Context()) })
	}
	nothing := func() {}
	hold()
	for range 3 {
		if done, err := try(nothing); done || err != nil || logins != 0 {
			t.Fatalf("held: %v, %v, %d logins", done, err, logins)
		}
	}
	release()
	if done, err := try(nothing); !done || err != nil || logins != 1 {
		t.Fatalf("free: %v, %v, %d logins", done, err, logins)
	}
	if done, err := try(hold); done || !errors.Is(err, visitor.ErrStuck) {
		t.Fatalf("held when it was entered: %v, %v", done, err)
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		var waiting int
		err := platform.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'object' AND objid = $1 AND NOT granted", trap.OID).Scan(&waiting)
		if err == nil && waiting > 0 {
			err = fmt.Errorf("%d logins wait", waiting)
		}
		return err
	})
	release()
	if done, err := try(nothing); done || err != nil || logins != 2 {
		t.Fatalf("it failed a moment ago: %v, %v, %d logins", done, err, logins)
	}
}
