package programs

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/testkit"
)

// Flyway migrates a schema with extensions, roles, concurrent indexes and views, cleans it, and migrates
// it anew.
func TestFlyway(t *testing.T) {
	java := testkit.NeedProgram(t, "java")
	i := given(t, "flyway", false)
	i.sql("postgres", "CREATE DATABASE shop")
	out := i.runs(3*time.Minute, "/", i.environ("shop"), java, "-cp", installed(t, "java", "*"), testdata(t, "java", "Migrate.java"),
		i.jdbc("shop"), testdata(t, "java", "migrations"))
	if out != "migrated 4\nagain 0\nanew 4\n" {
		t.Errorf("it said\n%s", out)
	}
	if total := i.ask("shop", "SELECT sum(total)::text FROM shop.totals"); total != "1000.00" {
		t.Errorf("the total is %s", total)
	}
}

// A program with HikariCP and PostgreSQL's own driver writes through a failover. Its pool finds the new
// primary by itself, and no row that it was told of is lost.
func TestHikariThroughAFailover(t *testing.T) {
	java := testkit.NeedProgram(t, "java")
	i := given(t, "pooled", true)
	i.sql("postgres", "CREATE TABLE rows (n bigint PRIMARY KEY)")
	p := i.pool(java)
	p.goesOn(200)
	in := &rds.RebootDBInstanceMessage{DBInstanceIdentifier: &i.name, ForceFailover: new(true)}
	testkit.Eventually(t, 30*time.Second, func() error { return all.Call(t.Context(), "RebootDBInstance", in, &rds.RebootDBInstanceResult{}) })
	if err := all.WaitStatus(t.Context(), i.name, "available", time.Minute); err != nil {
		t.Fatal(err)
	}
	p.goesOn(200)
	acked, longest := p.end()
	t.Logf("%d rows were acknowledged; the longest time between two was %s", len(acked), longest.Round(time.Millisecond))
	conn := i.connect("postgres")
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), "SELECT n FROM rows")
	if err != nil {
		t.Fatal(err)
	}
	there := map[int64]bool{}
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		there[n] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, n := range acked {
		if !there[n] {
			t.Fatalf("row %d is lost", n)
		}
	}
}

// pool is a Java program that writes.
type pool struct {
	*testing.T
	cmd  *exec.Cmd
	stop func()

	mu      sync.Mutex
	acked   []int64       // guarded by mu
	last    time.Time     // guarded by mu
	longest time.Duration // guarded by mu
	ended   chan struct{}
}

func (i *instance) pool(java string) *pool {
	i.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(i.Context()))
	p := &pool{T: i.T, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, java, "-cp", installed(i.T, "java", "*"), testdata(i.T, "java", "Pool.java"), i.jdbc("postgres"))
	p.cmd.Env = i.environ("postgres")
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		i.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		i.Fatal(err)
	}
	testkit.Start(i.T, p.cmd)
	p.stop = func() { stdin.Close() }
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if n, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
				p.acknowledged(n)
			}
		}
	}()
	i.Cleanup(func() { cancel(); <-p.ended; _ = p.cmd.Wait() })
	return p
}

func (p *pool) acknowledged(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); len(p.acked) > 0 {
		p.longest = max(p.longest, now.Sub(p.last))
	}
	p.last = time.Now()
	p.acked = append(p.acked, n)
}

func (p *pool) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.acked)
}

// goesOn waits until so many more rows have been acknowledged.
func (p *pool) goesOn(more int) {
	p.Helper()
	before := p.count()
	testkit.Eventually(p, 60*time.Second, func() error {
		if n := p.count() - before; n < more {
			return fmt.Errorf("%d more rows", n)
		}
		return nil
	})
}

// end ends the program, and returns the rows that were acknowledged, and the longest time without any.
func (p *pool) end() ([]int64, time.Duration) {
	p.Helper()
	p.stop()
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acked, p.longest
}
