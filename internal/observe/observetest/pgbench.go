package observetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// Bench is a run of pgbench.
type Bench struct {
	t      testing.TB
	cmd    *exec.Cmd
	output strings.Builder
}

// Result is what pgbench says of a run.
type Result struct {
	TPS       float64
	LatencyMS float64 // without what a rate had it wait
}

// InitBench makes pgbench's tables at this scale.
func InitBench(t testing.TB, s *pgtest.Server, scale int) {
	t.Helper()
	StartBench(t, s, "", "-i", "-q", "-s", strconv.Itoa(scale)).wait()
}

// StartBench starts pgbench against an address; "" is the server's own. It ends with the test at
// the latest.
func StartBench(t testing.TB, s *pgtest.Server, addr string, args ...string) *Bench {
	t.Helper()
	if addr == "" {
		addr = s.Addr
	}
	host, port, _ := strings.Cut(addr, ":")
	b := &Bench{t: t, cmd: exec.CommandContext(t.Context(), testkit.NeedProgram(t, "pgbench"), append(args, "-h", host, "-p", port, "-U", s.User, s.Database)...)}
	b.cmd.Env = append(os.Environ(), "PGSSLMODE=disable", "PGCONNECT_TIMEOUT=30")
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	b.cmd.Stdout, b.cmd.Stderr = &b.output, &b.output
	testkit.Start(t, b.cmd)
	return b
}

// PID is pgbench's process.
func (b *Bench) PID() int { return b.cmd.Process.Pid }

func (b *Bench) wait() string {
	b.t.Helper()
	if err := b.cmd.Wait(); err != nil {
		b.t.Fatalf("pgbench: %v\n%s", err, b.output.String())
	}
	return b.output.String()
}

var (
	latencyForm = regexp.MustCompile(`latency average = ([0-9.]+) ms`)
	lagForm     = regexp.MustCompile(`rate limit schedule lag: avg ([0-9.]+) `)
	tpsForm     = regexp.MustCompile(`tps = ([0-9.]+) `)
)

// Result waits for the end of the run.
func (b *Bench) Result() Result {
	b.t.Helper()
	text := b.wait()
	number := func(form *regexp.Regexp) float64 {
		match := form.FindStringSubmatch(text)
		if match == nil {
			return 0
		}
		value, _ := strconv.ParseFloat(match[1], 64)
		return value
	}
	r := Result{TPS: number(tpsForm), LatencyMS: number(latencyForm) - number(lagForm)}
	if r.TPS == 0 || r.LatencyMS <= 0 {
		b.t.Fatalf("pgbench said:\n%s", text)
	}
	return r
}

// Script writes a script for pgbench, a line each.
func Script(t testing.TB, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.sql")
	if err := os.WriteFile(path, []byte(fmt.Sprintln(strings.Join(lines, "\n"))), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
