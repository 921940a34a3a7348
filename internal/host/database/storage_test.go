package database

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/internal/engine/patroni/program"
	"howdah/internal/identity/scram"
	"howdah/internal/model/member"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// A database that has all of its storage writes no more, whoever writes, and goes on
// writing when it got more. Nothing that was acknowledged is lost, also by a restart.
func TestADatabaseTakesNoMoreStorageThanItWasGiven(t *testing.T) {
	t.Parallel()
	if _, err := program.Find(); err != nil {
		testkit.Missing(t, err.Error())
	}
	w := newWorld(t, "")
	w.run(func(a *Host) { a.spares.Keep = 1 })
	a := w.Assignment("db-full", 1)
	verifier, err := scram.Verifier("secret-password")
	w.Must(err)
	a.Cluster.Parameters = map[string]string{"shared_preload_libraries": "howdah"}
	a.Owner = member.Owner{Name: "ada", Verifier: verifier, Serial: 1, Database: "works"}
	w.Assign(a)
	r := w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if !r.Ready || r.StorageBytes == 0 || r.OwnerSerial != 1 {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	limit := r.StorageBytes + 200<<20
	a.Generation, a.Limits.StorageBytes = 2, limit
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, hosttest.Running(2))

	conn := w.connect(a)
	w.exec(conn, "CREATE TABLE t (i int, filler text)")
	acked := 0
	testkit.Eventually(t, time.Minute, func() error {
		_, err := conn.Exec(t.Context(), "INSERT INTO t SELECT $1, repeat('x', 1000) FROM generate_series(1, 5000)", acked+1)
		if err == nil {
			acked++
			return errors.New("it writes still")
		}
		if !hasCode(err, "53100") && !hasCode(err, "57014") {
			t.Fatal(err)
		}
		return nil
	})
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.Problem != member.StorageFull || !r.Ready {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	if _, err := conn.Exec(t.Context(), "INSERT INTO t VALUES (0)"); !hasCode(err, "53100") {
		t.Errorf("a write: %v", err)
	}
	w.exec(conn, "DELETE FROM t WHERE i = 0")

	w.Ask("db-full/restart", member.Restart, a.ID, time.Minute)
	w.Ended("db-full/restart")
	testkit.Eventually(t, time.Minute, func() error {
		again, err := w.tryConnect(a)
		if err != nil {
			return err
		}
		conn = again
		if _, err := conn.Exec(t.Context(), "INSERT INTO t VALUES (0)"); !hasCode(err, "53100") {
			return fmt.Errorf("a write after a restart: %w", err)
		}
		return nil
	})
	w.exec(conn, "DELETE FROM t WHERE i = 0")

	a.Generation, a.Limits.StorageBytes = 3, 100*limit
	w.Assign(a)
	testkit.Eventually(t, time.Minute, func() error {
		_, err := conn.Exec(t.Context(), "INSERT INTO t VALUES (0)")
		return err
	})
	var kept int
	w.Must(conn.QueryRow(t.Context(), "SELECT count(DISTINCT i) FROM t WHERE i > 0").Scan(&kept))
	if kept < acked {
		t.Errorf("%d of %d acknowledged writes", kept, acked)
	}
}

// A statement that goes on writing is cancelled before it has taken much more.
func TestAStatementThatFillsTheStorageIsCancelled(t *testing.T) {
	t.Parallel()
	if _, err := program.Find(); err != nil {
		testkit.Missing(t, err.Error())
	}
	w := newWorld(t, "")
	w.run(func(a *Host) { a.spares.Keep = 1 })
	a := w.Assignment("db-bulk", 1)
	verifier, err := scram.Verifier("secret-password")
	w.Must(err)
	a.Cluster.Parameters = map[string]string{"shared_preload_libraries": "howdah"}
	a.Owner = member.Owner{Name: "ada", Verifier: verifier, Serial: 1, Database: "works"}
	a.Limits.StorageBytes = 250 << 20
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if !r.Ready || r.OwnerSerial != 1 {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	conn := w.connect(a)
	const bulk = "CREATE TABLE big AS SELECT i, repeat('x', 1000) FROM generate_series(1, 6000000) i"
	// A statement that does not end when it is cancelled has its connection ended.
	if _, err := conn.Exec(t.Context(), bulk); !hasCode(err, "57014") && !hasCode(err, "53100") && !hasCode(err, "57P01") {
		t.Errorf("a table of 6 GB: %v", err)
	}
	if conn.IsClosed() {
		conn = w.connect(a)
	}
	if _, err := conn.Exec(t.Context(), "SELECT count(*) FROM (SELECT i, random() r FROM generate_series(1, 100000000) i ORDER BY r) s"); err == nil {
		t.Error("a sort that needs gigabytes of the disk went through")
	}
}

// A statement that had written nothing yet when the storage was full gets no further than one
// that had, also where a function catches the cancel.
func TestAStatementThatBeganBeforeTheStorageWasFullIsStopped(t *testing.T) {
	t.Parallel()
	if _, err := program.Find(); err != nil {
		testkit.Missing(t, err.Error())
	}
	w := newWorld(t, "")
	w.run(func(a *Host) { a.spares.Keep = 1 })
	a := w.Assignment("db-before", 1)
	verifier, err := scram.Verifier("secret-password")
	w.Must(err)
	a.Cluster.Parameters = map[string]string{"shared_preload_libraries": "howdah"}
	a.Owner = member.Owner{Name: "ada", Verifier: verifier, Serial: 1, Database: "works"}
	a.Limits.StorageBytes = 200 << 20
	w.Assign(a)
	w.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if !r.Ready || r.OwnerSerial != 1 {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	first, early := w.connect(a), w.connect(a)
	w.exec(first, "CREATE TABLE t (i int, filler text)")
	w.exec(first, `CREATE FUNCTION stubborn(i int) RETURNS int LANGUAGE plpgsql AS $$BEGIN PERFORM pg_sleep(0.00001); RETURN i; EXCEPTION WHEN query_canceled THEN RETURN i; END$$`)
	w.exec(first, "SELECT pg_advisory_lock(1)")
	ended := make(chan error, 1)
	go func() {
		_, err := early.Exec(t.Context(), `INSERT INTO t SELECT stubborn(i), repeat('x', 1000)
			FROM (SELECT pg_advisory_lock(1) OFFSET 0) l CROSS JOIN generate_series(1, 1000000) i`)
		ended <- err
	}()
	testkit.Eventually(t, time.Minute, func() error {
		var waits bool
		err := first.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)").Scan(&waits)
		if err == nil && !waits {
			err = errors.New("it did not begin yet")
		}
		return err
	})
	testkit.Eventually(t, time.Minute, func() error {
		_, err := first.Exec(t.Context(), "INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) i")
		if err == nil {
			return errors.New("it writes still")
		}
		if hasCode(err, "53100") {
			return nil
		}
		return err
	})
	w.exec(first, "SELECT pg_advisory_unlock(1)")
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it wrote all")
		}
	case <-time.After(2 * time.Minute):
		t.Error("it goes on")
	}
}

func (w *world) exec(conn *pgx.Conn, sql string) {
	w.Helper()
	if _, err := conn.Exec(w.Context(), sql); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) connect(a member.Assignment) *pgx.Conn {
	w.Helper()
	conn, err := w.tryConnect(a)
	w.Must(err)
	return conn
}

func (w *world) tryConnect(a member.Assignment) (*pgx.Conn, error) {
	conn, err := pgx.Connect(w.Context(), fmt.Sprintf("host=%s port=%d user=ada password=secret-password dbname=works sslmode=require", a.Address, a.Port))
	if err == nil {
		w.Cleanup(func() { conn.Close(w.Context()) })
	}
	return conn, err
}

func hasCode(err error, code string) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == code
}
