package counter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/observe/series"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
	"howdah/internal/testkit/pgversion"
)

// soon is long enough for statistics to be seen: backends report them once a second.
const soon = 20 * time.Second

func connect(t *testing.T, s *pgtest.Server, user string) *pgx.Conn {
	t.Helper()
	config := s.Config()
	if user != "" {
		config.User = user
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func reader(t *testing.T, conn *pgx.Conn) *Reader {
	t.Helper()
	r, err := NewReader(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func read(t *testing.T, r *Reader) series.Reading {
	t.Helper()
	reading, err := r.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return reading
}

// columns lists what a server calls the columns of all queries.
func columns(t *testing.T, conn *pgx.Conn, queries []Query) string {
	t.Helper()
	var names []string
	for _, q := range queries {
		rows, err := conn.Query(t.Context(), q.SQL)
		if err != nil {
			t.Fatalf("%s: %v", q.Name, err)
		}
		for _, field := range rows.FieldDescriptions() {
			if field.Name != "epoch" && field.Name != "key" {
				names = append(names, q.Column("NAME", field.Name))
			}
		}
		rows.Close()
		if err := rows.Err(); err != nil {
			t.Fatalf("%s: %v", q.Name, err)
		}
	}
	return strings.Join(names, "\n") + "\n"
}

func TestAServerHasTheColumnsOfItsVersion(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	major := pgversion.Major()
	queries, err := Queries(major)
	if err != nil {
		t.Fatal(err)
	}
	got := columns(t, connect(t, server, ""), queries)
	text, want := golden(t, major)
	if *update {
		write(t, major, text, got)
	} else if got != want {
		t.Errorf("the columns of %d are not those of %s:\n%s", major, goldenFile(major), got)
	}
}

func TestCounters(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	conn := connect(t, server, "")
	r := reader(t, conn)
	if missing := r.Missing(); len(missing) != 0 {
		t.Errorf("missing: %v", missing)
	}
	if r.Who.Major != pgversion.Major() || r.Who.InRecovery || r.Who.BackendPID == 0 || !r.Who.Sees {
		t.Errorf("%+v", r.Who)
	}
	before := read(t, r)
	server.Exec("CREATE TABLE t AS SELECT generate_series(1, 10000) AS n")
	server.Exec("DELETE FROM t WHERE n % 2 = 0")
	server.Exec("CHECKPOINT")
	want := map[string]float64{
		"db.commits": 3, "db.rows_inserted": 10000, "db.rows_deleted": 5000, "db.sessions": 3,
		"wal.records": 15000, "wal.bytes": 500_000, "lsn.bytes": 500_000, "checkpoint.requested": 1, "checkpoint.buffers": 40,
	}
	testkit.Eventually(t, soon, func() error {
		after := read(t, r)
		for name, least := range want {
			family, _, _ := strings.Cut(name, ".")
			b, known := before.Families[family].Counters[name]
			a, also := after.Families[family].Counters[name]
			if !known || !also || a-b < least {
				return fmt.Errorf("%s was %v (%t) and is %v (%t), want %v more", name, b, known, a, also, least)
			}
		}
		return nil
	})
}

// A reset begins an epoch. It is a gap, and no rate below 0.
func TestAResetIsAGap(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	r := reader(t, connect(t, server, ""))
	before := read(t, r)
	server.Exec("SELECT pg_stat_reset()")
	server.Exec("SELECT pg_stat_reset_shared('wal')")
	testkit.Eventually(t, soon, func() error {
		after := read(t, r)
		for _, name := range []string{"db", "wal"} {
			if before.Families[name].Epoch == after.Families[name].Epoch {
				return fmt.Errorf("the epoch of %s is %s as before", name, after.Families[name].Epoch)
			}
			if rates := series.Rates(before.Families[name], after.Families[name]); rates != nil {
				t.Fatalf("rates of %s over a reset: %v", name, rates)
			}
		}
		if before.Families["lsn"].Epoch != after.Families["lsn"].Epoch {
			t.Fatal("the position in the WAL has a new epoch")
		}
		return nil
	})
}

func TestALoginWithoutRights(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	server.Exec("CREATE ROLE plain LOGIN")
	r := reader(t, connect(t, server, "plain"))
	if missing := strings.Join(r.Missing(), "; "); !strings.Contains(missing, "pg_read_all_stats") {
		t.Errorf("missing: %s", missing)
	}
	var load Load
	if err := r.Sessions(t.Context(), &load); err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	if load.Take(values); len(values) != 0 {
		t.Errorf("sessions that cannot be seen are counted: %v", values)
	}
	if _, known := read(t, r).Families["db"]; !known {
		t.Error("the database's counters, which all may read, are not known")
	}
	server.Exec("GRANT pg_monitor TO plain")
	if missing := reader(t, connect(t, server, "plain")).Missing(); len(missing) != 0 {
		t.Errorf("with pg_monitor these are missing: %v", missing)
	}
}

// A query that fails leaves the others. One that is refused is not asked again.
func TestAQueryThatFailsIsAGap(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	r := reader(t, connect(t, server, ""))
	all := r.queries
	r.queries = append([]Query{
		{Name: "fails", SQL: "SELECT '' AS epoch, (1 / (SELECT 0))::float8 AS n"},
		{Name: "refused", SQL: "SELECT '' AS epoch, no_such_column AS n"},
	}, all...)
	for range 2 {
		reading := read(t, r)
		if _, known := reading.Families["fails"]; known {
			t.Error("what failed is known")
		}
		for _, q := range all {
			if _, known := reading.Families[q.Name]; !q.Gauges && !q.Keyed && !known {
				t.Errorf("%s is not known", q.Name)
			}
		}
	}
	if len(r.queries) != len(all)+1 || !strings.Contains(strings.Join(r.Missing(), "; "), "refused: ") {
		t.Errorf("%d queries, missing %v", len(r.queries), r.Missing())
	}
}

func TestAConnectionThatIsLost(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	r := reader(t, connect(t, server, ""))
	server.Kill()
	if _, err := r.Read(t.Context()); err == nil {
		t.Error("statistics of a server that was killed")
	}
	if err := r.Sessions(t.Context(), &Load{}); err == nil {
		t.Error("sessions of a server that was killed")
	}
	if !r.conn.IsClosed() {
		t.Error("the connection is not closed")
	}
}

// hold runs a statement in a transaction of its own, which stays open until the test ends.
func hold(t *testing.T, server *pgtest.Server, sql string) {
	t.Helper()
	conn := connect(t, server, "")
	for _, each := range []string{"BEGIN", sql} {
		if _, err := conn.Exec(t.Context(), each); err != nil {
			t.Fatal(err)
		}
	}
}

// stuck runs a statement that does not end by itself.
func stuck(t *testing.T, server *pgtest.Server, sql string) {
	t.Helper()
	conn := connect(t, server, "")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _, _ = conn.Exec(ctx, sql) }()
	t.Cleanup(func() { cancel(); <-done })
}

// sample samples once.
func sample(t *testing.T, r *Reader) map[string]float64 {
	t.Helper()
	var load Load
	if err := r.Sessions(t.Context(), &load); err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	load.Take(values)
	return values
}

func TestSessionsAreSeen(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	server.Exec("CREATE TABLE rows AS SELECT 1 AS n")
	server.Exec(`CREATE TABLE "Whole Table" AS SELECT 1 AS n`)
	r := reader(t, connect(t, server, ""))
	if active := sample(t, r)[series.Active]; active != 0 {
		t.Errorf("%v sessions are active in a server that is idle", active)
	}
	hold(t, server, "UPDATE rows SET n = 2")
	hold(t, server, `LOCK TABLE "Whole Table"`)
	server.Exec("CREATE FUNCTION change() RETURNS void LANGUAGE sql AS 'UPDATE rows SET n = 5'")
	for _, sql := range []string{"UPDATE rows SET n = 3", "update  public.rows SET n = 4", "SELECT n FROM rows FOR UPDATE", "DELETE FROM only rows", "SELECT change()"} {
		stuck(t, server, sql)
	}
	for range 2 {
		stuck(t, server, `SELECT * FROM "Whole Table"`)
	}
	for range 4 {
		stuck(t, server, "SELECT pg_sleep(1000)")
	}
	stuck(t, server, "SET application_name = '"+Aside+"'; SELECT pg_sleep(1000)") // it is left out
	testkit.Eventually(t, soon, func() error {
		got := sample(t, r)
		for name, want := range map[string]float64{
			series.Active: 11, series.ActiveLock: 7, series.ActiveTimeout: 4, series.SessionsInTrans: 2, series.LockWaiting: 7,
			"wait.Timeout:PgSleep": 4, "wait.Lock:relation": 2, series.LockOnPrefix + "rows": 5, series.LockOnPrefix + `"Whole Table"`: 2,
		} {
			if got[name] != want {
				return fmt.Errorf("%s is %v, want %v; all: %v", name, got[name], want, got)
			}
		}
		return nil
	})
}

// Who waits for a session that waits itself counts for what that one waits for.
func TestAChainOfWaits(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	server.Exec("CREATE TABLE branches AS SELECT 1 AS n")
	server.Exec("CREATE TABLE tellers AS SELECT 1 AS n")
	r := reader(t, connect(t, server, ""))
	hold(t, server, "UPDATE branches SET n = 2")
	stuck(t, server, "DO 'BEGIN UPDATE tellers SET n = 2; UPDATE branches SET n = 3; END'")
	waiting := func(want map[string]float64) {
		t.Helper()
		testkit.Eventually(t, soon, func() error {
			got := sample(t, r)
			for name, want := range want {
				if got[name] != want {
					return fmt.Errorf("%s is %v, want %v; all: %v", name, got[name], want, got)
				}
			}
			return nil
		})
	}
	waiting(map[string]float64{series.LockWaiting: 1})
	stuck(t, server, "UPDATE branches SET n = 4")
	waiting(map[string]float64{series.LockWaiting: 2})
	for range 3 {
		stuck(t, server, "UPDATE tellers SET n = 4")
	}
	// The first in the queue waits within a block, whose text names no table.
	waiting(map[string]float64{series.LockWaiting: 5, series.LockOnPrefix + "branches": 5, series.LockOnPrefix + "tellers": 0})
}

// Two standbys may have the same name.
func TestStandbysAreSeen(t *testing.T) {
	primary := pgtest.Start(t, pgtest.Options{Settings: "wal_level = replica\n"})
	standby := primary.Follow("second", pgtest.Options{})
	primary.Exec("SELECT pg_create_physical_replication_slot('kept', true)")
	r := reader(t, connect(t, primary, ""))
	primary.Exec("CREATE TABLE t AS SELECT generate_series(1, 1000) AS n")
	testkit.Eventually(t, soon, func() error {
		got := read(t, r).Gauges
		if got["standby.second.streaming"] != 1 || got["standby.second.replay_lsn"] == 0 || got["standby.second.replay_lag_bytes"] != 0 {
			return fmt.Errorf("the standby: %v", got)
		}
		if retained, known := got["slot.kept.retained_bytes"]; !known || retained <= 0 || got["slot.kept.active"] != 0 {
			return fmt.Errorf("the slot: %v", got)
		}
		return nil
	})
	there := reader(t, connect(t, standby, ""))
	if !there.Who.InRecovery || len(there.Missing()) != 0 {
		t.Errorf("on the standby: %+v, missing %v", there.Who, there.Missing())
	}
	testkit.Eventually(t, soon, func() error {
		got := read(t, there)
		if lag, known := got.Gauges["recovery.replay_lag_seconds"]; !known || lag != 0 {
			return fmt.Errorf("lag of a standby that has all: %v (%t)", lag, known)
		}
		if got.Families["lsn"].Counters[series.WALPosition] == 0 {
			return errors.New("it has no position")
		}
		return nil
	})
	if _, known := read(t, r).Gauges["recovery.received_lsn"]; known {
		t.Error("a primary receives WAL")
	}
}

func TestTwoOfOneName(t *testing.T) {
	q := Query{Name: "standby", Gauges: true, Keyed: true}
	reading := series.NewReading()
	seen := map[string]int{}
	for _, lag := range []float64{5, -7, 9} {
		q.add(map[string]any{"key": "walreceiver", "sent_lag_bytes": lag, "sync": nil}, time.Now(), seen, reading)
	}
	var names []string
	for name := range reading.Gauges {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"standby.walreceiver#2.sent_lag_bytes", "standby.walreceiver#3.sent_lag_bytes", "standby.walreceiver.sent_lag_bytes"}
	if !slices.Equal(names, want) || reading.Gauges[want[0]] != 0 {
		t.Errorf("%v", reading.Gauges)
	}
}

// A server that says more than there can be fills no memory.
func TestAnAnswerIsBounded(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	conn := connect(t, server, "")
	for most, want := range map[int]error{mostRows: nil, mostRows + 1: errRows} {
		q := Query{Name: "many", Gauges: true, Keyed: true, SQL: fmt.Sprintf("SELECT 'x' || n AS key, n::float8 AS value FROM generate_series(1, %d) AS n", most)}
		rows, err := conn.Query(t.Context(), q.SQL)
		if err != nil {
			t.Fatal(err)
		}
		reading := series.NewReading()
		if err := q.collect(rows, time.Now(), reading); !errors.Is(err, want) || len(reading.Gauges) != mostRows {
			t.Errorf("%d rows: %d gauges, %v", most, len(reading.Gauges), err)
		}
	}
}
