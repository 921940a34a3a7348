package observe_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/observe"
	"howdah/internal/observe/counter"
	"howdah/internal/observe/machine"
	"howdah/internal/observe/observetest"
	"howdah/internal/observe/series"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// soon is long enough for a row, or a new connection, on a busy machine.
const soon = 30 * time.Second

// load runs a statement again and again until the test ends.
func load(t *testing.T, server *pgtest.Server, sql string) {
	t.Helper()
	loadAs(t, server, sql, func(*pgx.ConnConfig) {})
}

// loadAs does so by a connection that as changes.
func loadAs(t *testing.T, server *pgtest.Server, sql string, as func(*pgx.ConnConfig)) {
	t.Helper()
	config := server.Config()
	as(config)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done; conn.Close(context.Background()) })
}

// has returns an error unless a row has these columns with these values.
func has(row series.Row, want map[string]float64) error {
	for name, value := range want {
		if got, known := row.Values[name]; !known || got != value {
			return fmt.Errorf("%s is %v (%t), want %v; the row: %v", name, got, known, value, row.Values)
		}
	}
	return nil
}

// Eight who sleep are 8, five who wait for a lock are 5, and a loop is one on a CPU.
func TestAKnownLoadIsSeen(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	server.Exec("CREATE TABLE t AS SELECT 1 AS n")
	for range 8 {
		load(t, server, "SELECT pg_sleep(1000)")
	}
	load(t, server, "BEGIN; LOCK TABLE t; SELECT pg_sleep(1000)")
	for range 5 {
		load(t, server, "SELECT count(*) FROM t")
	}
	load(t, server, "DO $$ BEGIN LOOP END LOOP; END $$")
	o := observetest.Start(t, observe.Config{Conn: server.Config()})
	if missing := strings.Join(o.Missing(), "; "); strings.Contains(missing, "sessions") {
		t.Errorf("missing: %s", missing)
	}
	o.Eventually(t, soon, func(row series.Row) error {
		if row.Values[series.ServerCPU] <= 0 {
			return fmt.Errorf("the server used %v CPUs", row.Values[series.ServerCPU])
		}
		return has(row, map[string]float64{
			series.Active: 15, series.ActiveTimeout: 9, series.ActiveLock: 5, series.ActiveCPU: 1, series.LockOnPrefix + "t": 5,
			"wait.Timeout:PgSleep": 9, "wait.Lock:relation": 5, series.ObserverConnected: 1, series.ActiveIO: 0,
		})
	})
}

// Sessions of other programs, and of the same one in another database, are not the load's.
func TestSessionsOfOthers(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	server.Exec("CREATE DATABASE other")
	called := func(name, database string) func(*pgx.ConnConfig) {
		return func(c *pgx.ConnConfig) { c.RuntimeParams["application_name"], c.Database = name, database }
	}
	for range 2 {
		loadAs(t, server, "SELECT pg_sleep(1000)", called("test-load", server.Database))
	}
	for range 3 {
		loadAs(t, server, "SELECT pg_sleep(1000)", called("test-load", "other"))
	}
	load(t, server, "SELECT pg_sleep(1000)")
	o := observetest.Start(t, observe.Config{Conn: server.Config(), Load: "test-load"})
	o.Eventually(t, soon, func(row series.Row) error {
		return has(row, map[string]float64{series.Active: 2, series.Sessions: 2, series.SessionsForeign: 4, "wait.Timeout:PgSleep": 2})
	})
}

func TestARowHasWhatThereIs(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	observetest.InitBench(t, server, 1)
	o := observetest.Start(t, observe.Config{Conn: server.Config()})
	if !o.Local() {
		t.Fatalf("the server is not found on this machine: %v", o.Missing())
	}
	bench := observetest.StartBench(t, server, "", "-c", "4", "-T", "1000")
	o.Watch(observe.Processes{Generator: []int{bench.PID()}, Known: []int{os.Getppid()}})
	o.Eventually(t, soon, func(row series.Row) error {
		if row.Seconds <= 0 || row.At < time.Now().Add(-time.Hour).UnixMilli() {
			t.Fatalf("a row of %v s at %d", row.Seconds, row.At)
		}
		for name := range row.Values {
			if _, known := series.Explain(name); !known {
				t.Fatalf("%s is not explained", name)
			}
		}
		for _, name := range []string{
			series.Active, series.Commits, series.WALBytes, series.WALPosition, series.HitRatio, series.ServerCPU, series.ServerMemory,
			series.GeneratorCPU, series.MachineCPU, series.MachineCPUs, series.ObserverRoundTrip, series.ObserverSample,
		} {
			if row.Values[name] <= 0 {
				return fmt.Errorf("%s is %v; the row: %v", name, row.Values[name], row.Values)
			}
		}
		for _, name := range []string{series.MachineForeign, series.KnownCPU, series.ObserverCPU, series.ObserverBackendCPU, series.DeviceFreeShare, series.ObserverClockStep, "checkpoint.timed"} {
			if _, known := row.Values[name]; !known {
				return fmt.Errorf("%s is not known; the row: %v", name, row.Values)
			}
		}
		return nil
	})
	rows := o.Rows()
	s := series.Summarise(rows, time.UnixMilli(rows[0].At).Add(-time.Hour), time.Now())
	if cpu, known := s.Mean(series.ServerCPU); s.Rows != len(rows) || !known || cpu <= 0 {
		t.Errorf("%d of %d rows, CPU %v", s.Rows, len(rows), cpu)
	}
}

// The server goes away and comes back. The rows go on, and say nothing of it meanwhile.
func TestAServerThatIsStartedAgain(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	o := observetest.Start(t, observe.Config{Conn: server.Config()})
	up := func(row series.Row) error {
		if row.Values[series.ServerMemory] <= 0 {
			return fmt.Errorf("no memory of the server: %v", row.Values)
		}
		return has(row, map[string]float64{series.ObserverConnected: 1, series.Active: 0})
	}
	o.Eventually(t, soon, up)
	server.Kill()
	o.Eventually(t, soon, func(row series.Row) error {
		for _, name := range []string{series.Active, series.ServerCPU, series.Commits, series.ObserverRoundTrip} {
			if value, known := row.Values[name]; known {
				return fmt.Errorf("%s of a server that does not run is %v", name, value)
			}
		}
		if row.Values[series.MachineCPUs] == 0 {
			t.Fatalf("nothing is known of the machine: %v", row.Values)
		}
		return has(row, map[string]float64{series.ObserverConnected: 0})
	})
	seen := len(o.Rows())
	server.Up()
	testkit.Eventually(t, soon, func() error {
		rows := o.Rows()
		return up(rows[len(rows)-1])
	})
	for _, row := range o.Rows()[seen:] {
		if commits := row.Values[series.Commits]; commits > 1000 {
			t.Errorf("%v commits a second over the restart", commits)
		}
	}
}

func TestAServerInAControlGroup(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	group := observetest.NewGroup(t)
	group.LimitCPU(0.1)
	group.AddServer(server)
	load(t, server, "DO $$ BEGIN LOOP END LOOP; END $$")
	o := observetest.Start(t, observe.Config{Conn: server.Config(), Row: time.Second, Sample: time.Second})
	o.Eventually(t, soon, func(row series.Row) error {
		v := row.Values
		if v[series.ServerCPU] < 0.05 || v[series.ServerCPU] > 0.15 || v[series.ServerThrottled] <= 0 || v["server.throttled_seconds"] <= 0 || v[series.ServerMemory] <= 0 {
			return fmt.Errorf("%v", v)
		}
		return has(row, map[string]float64{series.ServerCPULimit: 0.1})
	})
}

// Nothing of a machine is told of a server on another one.
func TestAServerElsewhere(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	o := observetest.Start(t, observe.Config{Conn: server.Config(), System: machine.System{Proc: t.TempDir()}})
	if o.Local() {
		t.Error("a server elsewhere is here")
	}
	o.Eventually(t, soon, func(row series.Row) error {
		for name := range row.Values {
			if strings.HasPrefix(name, "server.") || strings.HasPrefix(name, "device.") || strings.HasPrefix(name, "machine.") {
				t.Fatalf("%s of a server elsewhere", name)
			}
		}
		if _, known := row.Values[series.Commits]; !known {
			return fmt.Errorf("no commits: %v", row.Values)
		}
		return has(row, map[string]float64{series.Active: 0})
	})
}

func TestTheConnectionOfAnObserver(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	observetest.Start(t, observe.Config{Conn: server.Config()})
	conn, err := pgx.ConnectConfig(t.Context(), server.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var count int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", observe.Application).Scan(&count); err != nil || count != 1 {
		t.Errorf("%d connections, %v", count, err)
	}
	config := server.Config()
	if _, named := config.RuntimeParams["application_name"]; named {
		t.Error("the configuration was changed")
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig("postgres://nobody@" + testkit.FreeAddr(t) + "/none?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := observe.Open(t.Context(), observe.Config{Conn: config}); err == nil || !strings.Contains(err.Error(), "observe: ") {
		t.Errorf("%v", err)
	}
}

// BenchmarkSample prints what a reading costs the observer and a server, with sessions that wait.
func BenchmarkSample(b *testing.B) {
	server := pgtest.Start(b, pgtest.Options{})
	conn, err := pgx.ConnectConfig(b.Context(), server.Config())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.Background())
	reader, err := counter.NewReader(b.Context(), conn)
	if err != nil {
		b.Fatal(err)
	}
	var system machine.System
	own, backend := system.TreeOf(os.Getpid()), system.TreeOf(reader.Who.BackendPID)
	own.Alone = true
	cpu := func(tree machine.Tree) float64 {
		family, _ := system.CPU("x", tree)
		return family.Counters["x"]
	}
	var load counter.Load
	began, beganThere := cpu(own), cpu(backend)
	for b.Loop() {
		system.Machine()
		if err := reader.Sessions(b.Context(), &load); err != nil {
			b.Fatal(err)
		}
		if _, err := reader.Read(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((cpu(own)-began)/float64(b.N)*1000, "own-cpu-ms/op")
	b.ReportMetric((cpu(backend)-beganThere)/float64(b.N)*1000, "backend-cpu-ms/op")
}
