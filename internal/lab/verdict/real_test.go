package verdict_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"howdah/internal/lab/verdict"
	"howdah/internal/observe"
	"howdah/internal/observe/observetest"
	"howdah/internal/observe/series"
	"howdah/internal/testkit/loopdisk"
	"howdah/internal/testkit/pgtest"
)

// These tests build situations whose bottleneck is known, measure them with pgbench, and read the
// verdict. What else the machine does makes them slower, and may not change what limits them.

// seconds is how long a situation is measured.
const seconds = 5

// situation is a load on a server.
type situation struct {
	server  *pgtest.Server
	addr    string // to reach it by; "" is its own
	clients int
	cores   float64 // of the generator; 0 is all
	trips   float64
	args    []string
	begin   func(pgbench int) // once pgbench runs
}

// judge measures a situation.
func (s situation) judge(t *testing.T) verdict.Finding {
	t.Helper()
	config := s.server.Config()
	if s.addr != "" {
		host, port, _ := strings.Cut(s.addr, ":")
		config.Host = host
		_, _ = fmt.Sscan(port, &config.Port)
	}
	o := observetest.Start(t, observe.Config{Conn: config})
	args := append([]string{"-n", "-c", fmt.Sprint(s.clients), "-T", fmt.Sprint(seconds)}, s.args...)
	bench := observetest.StartBench(t, s.server, s.addr, args...)
	o.Watch(observe.Processes{Generator: []int{bench.PID()}})
	if s.begin != nil {
		s.begin(bench.PID())
	}
	// The first second is the warm-up, in which sessions begin. At the end they leave.
	began := time.Now()
	result := bench.Result()
	from, to := began.Add(time.Second), began.Add((seconds-1)*time.Second)
	if s.cores == 0 {
		s.cores = float64(runtime.NumCPU())
	}
	evidence := verdict.Evidence{
		Observed: series.Summarise(o.Rows(), from, to),
		Load:     verdict.Load{Clients: s.clients, Cores: s.cores, TPS: result.TPS, LatencyMS: result.LatencyMS, RoundTrips: s.trips},
	}
	v := verdict.Judge(evidence)
	// Other tests use the machine at the same time. That is noise, and is told as such.
	f := v.Limit()
	t.Logf("%.0f TPS, %.2f ms: %s of %q: %s", result.TPS, result.LatencyMS, f.Cause, f.Subject, f.Sentence)
	for _, r := range f.Reasons {
		t.Log("  ", r.Text)
	}
	if t.Failed() || f.Cause == verdict.Unknown {
		t.Logf("%+v", evidence)
	}
	return f
}

// expect fails unless the verdict is this one. The subject may be "".
func (s situation) expect(t *testing.T, cause verdict.Cause, subject string) {
	t.Helper()
	f := s.judge(t)
	if f.Cause != cause || subject != "" && f.Subject != subject {
		t.Errorf("it is %s of %q, want %s of %q", f.Cause, f.Subject, cause, subject)
	}
}

// Sixteen sessions change one row of pgbench_branches.
func TestRowLocks(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	observetest.InitBench(t, server, 1)
	situation{server: server, clients: 16, trips: 7, args: []string{"-j", "2"}}.expect(t, verdict.RowLock, "pgbench_branches")
}

// One session at a time has the table.
func TestALockOnATable(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	server.Exec("CREATE TABLE queue (n int)")
	script := observetest.Script(t, "BEGIN;", "LOCK TABLE queue IN ACCESS EXCLUSIVE MODE;", "SELECT pg_sleep(0.01);", "COMMIT;")
	situation{server: server, clients: 8, trips: 4, args: []string{"-f", script}}.expect(t, verdict.Lock, "queue")
}

// A lock that a program made up.
func TestAnAdvisoryLock(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	script := observetest.Script(t, "BEGIN;", "SELECT pg_advisory_xact_lock(1);", "SELECT pg_sleep(0.01);", "COMMIT;")
	situation{server: server, clients: 8, trips: 4, args: []string{"-f", script}}.expect(t, verdict.Lock, "Lock:advisory")
}

const insert = "INSERT INTO log VALUES (1, 'a line of some length');"

// The standby has what the primary sent, and applies it late.
func TestAStandbyThatConfirmsLate(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	server.Exec("CREATE TABLE log (n int, line text)")
	server.Follow("late", pgtest.Options{Settings: "recovery_min_apply_delay = '30ms'\n"})
	server.Exec("ALTER SYSTEM SET synchronous_standby_names = 'late'")
	server.Exec("ALTER SYSTEM SET synchronous_commit = 'remote_apply'")
	server.Exec("SELECT pg_reload_conf()")
	script := observetest.Script(t, insert)
	situation{server: server, clients: 8, trips: 1, args: []string{"-f", script}}.expect(t, verdict.Replication, "late")
}

// The server may use a tenth of a CPU.
func TestAClassOfFewCPUs(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	observetest.InitBench(t, server, 1)
	group := observetest.NewGroup(t)
	group.LimitCPU(0.1)
	group.AddServer(server)
	situation{server: server, clients: 4, trips: 1, args: []string{"-S", "-M", "prepared"}}.expect(t, verdict.CPU, "class")
}

// The generator sends less than the server could do.
func TestAGeneratorWithARate(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	observetest.InitBench(t, server, 1)
	situation{server: server, clients: 8, trips: 1, args: []string{"-S", "-R", "50"}}.expect(t, verdict.Client, "rate")
}

// The generator thinks between its statements.
func TestAGeneratorThatSleeps(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	script := observetest.Script(t, "BEGIN;", "SELECT 1;", `\sleep 30 ms`, "COMMIT;")
	situation{server: server, clients: 8, trips: 3, args: []string{"-f", script}}.expect(t, verdict.Client, "rate")
}

// The generator may use a twentieth of a CPU.
func TestAGeneratorWithoutCPU(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	observetest.InitBench(t, server, 1)
	group := observetest.NewGroup(t)
	group.LimitCPU(0.05)
	situation{server: server, clients: 4, trips: 1, cores: 0.05, args: []string{"-S"}, begin: func(pid int) { group.Add(pid) }}.expect(t, verdict.Client, "CPU")
}

// Statements and answers take their time on the way.
func TestAFarNetwork(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	observetest.InitBench(t, server, 4)
	situation{server: server, addr: slowWay(t, server.Addr, 15*time.Millisecond), clients: 4, trips: 7}.expect(t, verdict.Network, "")
}

// The sessions do what the workload says: they sleep.
func TestAnotherWait(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	script := observetest.Script(t, "SELECT pg_sleep(0.05);")
	situation{server: server, clients: 4, trips: 1, args: []string{"-f", script}}.expect(t, verdict.Wait, "Timeout:PgSleep")
}

// noSocket is for directories with long names, in which a socket has no place.
const noSocket = "unix_socket_directories = ''\n"

// A disk does a hundred reads a second, and nothing of the data is in memory.
func TestReadsFromASlowDisk(t *testing.T) {
	disk := loopdisk.New(t, "600")
	t.Setenv("TMPDIR", disk.Dir)
	server := pgtest.Start(t, pgtest.Options{Settings: "shared_buffers = '16MB'\n" + noSocket})
	observetest.InitBench(t, server, 15)
	server.Exec("CHECKPOINT")
	server.Kill()
	disk.Unmount() // the kernel forgets what it had of it
	disk.Mount(t)
	server.Up()
	limited(t, server, 100)
	situation{server: server, clients: 8, trips: 1, args: []string{"-S", "-M", "prepared"}}.expect(t, verdict.IOLimit, "reads")
}

// A disk does fifty writes a second, and every commit needs one.
func TestCommitsToASlowDisk(t *testing.T) {
	disk := loopdisk.New(t, "300")
	t.Setenv("TMPDIR", disk.Dir)
	server := pgtest.Start(t, pgtest.Options{Settings: "fsync = on\n" + noSocket})
	server.Exec("CREATE TABLE log (n int, line text)")
	server.Exec("CHECKPOINT")
	limited(t, server, 50)
	situation{server: server, clients: 8, trips: 1, args: []string{"-f", observetest.Script(t, insert)}}.expect(t, verdict.IOLimit, "writes")
}

// limited lets a server do so many reads, and so many writes, a second on the disk of its data.
func limited(t *testing.T, server *pgtest.Server, iops int64) {
	t.Helper()
	group := observetest.NewGroup(t)
	group.LimitIOPS(server.DataDir(), iops)
	group.AddServer(server)
}

// slowWay listens for connections and carries each to an address. What is sent arrives after a
// delay, both ways, however much of it is on its way.
func slowWay(t *testing.T, to string, delay time.Duration) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn // guarded by mu
	all.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", to)
			if err != nil {
				_ = from.Close()
				continue
			}
			mu.Lock()
			open = append(open, from, there)
			mu.Unlock()
			all.Go(func() { carry(from, there, delay) })
			all.Go(func() { carry(there, from, delay) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return listener.Addr().String()
}

// carry copies what comes, each piece after the delay. The channel has room for what is on its way.
func carry(from io.Reader, to io.WriteCloser, delay time.Duration) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		for {
			buffer := make([]byte, 16<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				pieces <- piece{buffer[:n], time.Now().Add(delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		<-time.After(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	_ = to.Close()
	for range pieces { // until its writer has ended
	}
}
