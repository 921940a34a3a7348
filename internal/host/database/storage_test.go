package database

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/identity/scram"
	"howdah/internal/model/member"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

func TestTheLessIsLeftTheSoonerItIsMeasured(t *testing.T) {
	const limit = 100 << 30
	for _, c := range []struct {
		name         string
		bytes, limit int64
		took, want   time.Duration
	}{
		{"no limit", 1 << 40, 0, 0, loginEvery},
		{"much is left", 10 << 30, limit, 0, loginEvery},
		{"some is left", 95 << 30, limit, 0, 5 * time.Second},
		{"little is left", limit - 1, limit, 0, probeEvery},
		{"it is full", 2 * limit, limit, 0, probeEvery},
		{"measuring takes long", limit, limit, time.Second, 20 * time.Second},
	} {
		if got := dueAfter(c.bytes, c.limit, c.took); got != c.want {
			t.Errorf("%s: after %s, want %s", c.name, got, c.want)
		}
	}
}

func TestWhatIsFullStaysFullForAWhile(t *testing.T) {
	for _, c := range []struct {
		was         bool
		size, limit int64
		want        bool
	}{
		{false, 999, 1000, false},
		{false, 1000, 1000, true},
		{true, 980, 1000, true},
		{true, 979, 1000, false},
		{true, 1000, 2000, false},
		{true, 1000, 0, false},
		{false, 1000, 0, false},
	} {
		if got := isFull(c.was, c.size, c.limit); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// One measurement runs at a time, and nobody waits for it; one that fails leaves what was
// measured before.
func TestMeasuringHoldsNobodyUp(t *testing.T) {
	var g gauge
	began, answer := make(chan struct{}), make(chan int64)
	slow := func() (postgres.Usage, error) {
		began <- struct{}{}
		return postgres.Usage{Bytes: <-answer}, nil
	}
	last := func(measure func() (postgres.Usage, error)) int64 {
		usage, _ := g.last(0, measure)
		return usage.Bytes
	}
	if got := last(slow); got != 0 {
		t.Errorf("before the first: %d", got)
	}
	<-began
	if got := last(func() (postgres.Usage, error) { t.Error("a second one"); return postgres.Usage{}, nil }); got != 0 {
		t.Errorf("while it is measured: %d", got)
	}
	answer <- 7
	testkit.Eventually(t, hosttest.Soon, func() error {
		if got := last(slow); got != 7 {
			return fmt.Errorf("it is %d", got)
		}
		return nil
	})
	for _, c := range []struct{ counted, want int64 }{{0, 7}, {6, 7}, {8, 8}} {
		g.look(func() (postgres.Usage, error) { return postgres.Usage{Bytes: c.counted}, errors.New("no") })
		if got := last(slow); got != c.want {
			t.Errorf("after one that failed at %d: %d", c.counted, got)
		}
	}
}

func TestStorageLevels(t *testing.T) {
	const limit, left, full, over = 100 << 30, postgres.StorageLeft, postgres.StorageFull, postgres.StorageOver
	for _, c := range []struct {
		was   string
		size  int64
		limit int64
		want  string
	}{
		{left, limit - 1, limit, left},
		{left, limit, limit, full},
		{full, limit - 1, limit, full},
		{full, limit + 11<<30, limit, full},
		{full, limit + 12<<30, limit, over},
		{left, limit + 12<<30, limit, over},
		{over, limit + 11<<30, limit, over},
		{over, limit + 5<<30, limit, full},
		{over, limit / 2, limit, left},
		{over, limit, 0, left},
		{left, 3 << 30, 1 << 30, full},
	} {
		if got := storageLevel(c.was, c.size, c.limit); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// A database that has all of its storage writes no more, whoever writes, and goes on
// writing when it got more. Nothing that was acknowledged is lost, also by a restart.
func TestADatabaseTakesNoMoreStorageThanItWasGiven(t *testing.T) {
	t.Parallel()
	if _, err := FindPatroni(); err != nil {
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
		if !hasCode(err, diskFullCode) && !hasCode(err, "57014") {
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
	if _, err := conn.Exec(t.Context(), "INSERT INTO t VALUES (0)"); !hasCode(err, diskFullCode) {
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
		if _, err := conn.Exec(t.Context(), "INSERT INTO t VALUES (0)"); !hasCode(err, diskFullCode) {
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
	if _, err := FindPatroni(); err != nil {
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
	if _, err := conn.Exec(t.Context(), bulk); !hasCode(err, "57014") && !hasCode(err, diskFullCode) {
		t.Errorf("a table of 6 GB: %v", err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT count(*) FROM (SELECT i, random() r FROM generate_series(1, 100000000) i ORDER BY r) s"); err == nil {
		t.Error("a sort that needs gigabytes of the disk went through")
	}
}

// A statement that had written nothing yet when the storage was full gets no further than one
// that had, also where a function catches the cancel.
func TestAStatementThatBeganBeforeTheStorageWasFullIsStopped(t *testing.T) {
	t.Parallel()
	if _, err := FindPatroni(); err != nil {
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
		if hasCode(err, diskFullCode) {
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
