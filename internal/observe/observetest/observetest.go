// Package observetest is for tests that observe a real PostgreSQL: an observer whose rows are kept,
// servers in control groups, and pgbench.
package observetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"howdah/internal/host/proc/cgroup"
	"howdah/internal/observe"
	"howdah/internal/observe/series"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// soon is long enough for a group to be left by what was killed.
const soon = 20 * time.Second

// Observed is an observer that runs as long as the test.
type Observed struct {
	*observe.Observer

	mu   sync.Mutex
	rows []series.Row // guarded by mu
}

// Start observes. It samples ten times a second and makes five rows a second, unless config says
// otherwise.
func Start(t testing.TB, config observe.Config) *Observed {
	t.Helper()
	if config.Row == 0 {
		config.Row, config.Sample = 200*time.Millisecond, 100*time.Millisecond
	}
	observer, err := observe.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	o := &Observed{Observer: observer}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- observer.Run(ctx, o.keep) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		observer.Close()
	})
	return o
}

func (o *Observed) keep(row series.Row) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rows = append(o.rows, row)
}

// Rows returns those so far.
func (o *Observed) Rows() []series.Row {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rows[:len(o.rows):len(o.rows)]
}

// Eventually waits for a row that check returns nil for.
func (o *Observed) Eventually(t testing.TB, within time.Duration, check func(series.Row) error) {
	t.Helper()
	seen := 0
	last := errors.New("there is no row")
	testkit.Eventually(t, within, func() error {
		rows := o.Rows()
		for _, row := range rows[seen:] {
			if last = check(row); last == nil {
				return nil
			}
		}
		seen = len(rows)
		return last
	})
}

// Group is a control group of a server, in whichever versions this machine has.
type Group struct {
	t      testing.TB
	layout cgroup.Layout
	name   string
	dirs   []string
}

// NewGroup makes an empty one, which is gone after the test. It needs root.
func NewGroup(t testing.TB) *Group {
	t.Helper()
	testkit.NeedRoot(t)
	g := &Group{t: t, name: fmt.Sprintf("howdah-observe-test-%d-%d", os.Getpid(), time.Now().UnixNano())}
	var err error
	if g.layout, err = cgroup.Detect("/proc", g.name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.remove)
	for _, top := range []string{g.layout.Unified, g.layout.Accounting, g.layout.CPU.Top, g.layout.Memory.Top, g.layout.IO.Top} {
		if top != "" {
			g.add(top)
		}
	}
	return g
}

// add makes a group below a top.
func (g *Group) add(top string) {
	dir := filepath.Join(top, "server")
	if err := cgroup.Make(dir); err != nil {
		g.t.Fatal(err)
	}
	if top == g.layout.Unified {
		// What cannot be enabled Detect has named, and it is not in the layout.
		_ = cgroup.Enable(filepath.Dir(top), top)
	}
	g.dirs = append(g.dirs, dir)
}

func (g *Group) remove() {
	for _, dir := range g.dirs {
		testkit.Eventually(g.t, soon, func() error { return cgroup.Remove(filepath.Dir(dir)) })
	}
}

// Add moves processes into the group.
func (g *Group) Add(pids ...int) {
	g.t.Helper()
	for _, dir := range g.dirs {
		for _, pid := range pids {
			if err := cgroup.Add(dir, pid); err != nil {
				g.t.Fatal(err)
			}
		}
	}
}

// AddServer moves a server into the group. What it starts later is there, too. The server is killed
// at the end of the test, before the group is removed.
func (g *Group) AddServer(s *pgtest.Server) {
	g.t.Helper()
	g.t.Cleanup(s.Kill)
	postmaster := Postmaster(g.t, s)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", postmaster))
	if err != nil {
		g.t.Fatal(err)
	}
	g.Add(postmaster)
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil && alive(pid) {
			g.Add(pid)
		}
	}
}

func alive(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}

// LimitCPU lets the group use so many CPUs. The test is skipped if this machine cannot do that.
func (g *Group) LimitCPU(cpus float64) {
	g.t.Helper()
	if g.layout.CPU.Version == cgroup.None {
		g.t.Skip("needs a limit of CPU: " + g.layout.CPU.Reason)
	}
	if err := cgroup.SetCPU(g.layout.CPU.Version, filepath.Join(g.layout.CPU.Top, "server"), cpus); err != nil {
		g.t.Fatal(err)
	}
}

// LimitIOPS lets the group do so many reads, and so many writes, a second on the disk that a path is
// on. The test is skipped if this machine cannot do that.
func (g *Group) LimitIOPS(path string, iops int64) {
	g.t.Helper()
	if g.layout.IO.Version == cgroup.None {
		g.t.Skip("needs a limit of I/O: " + g.layout.IO.Reason)
	}
	device, err := cgroup.System{}.DeviceOf(path)
	if err != nil {
		g.t.Fatal(err)
	}
	if err := cgroup.SetIOPS(g.layout.IO.Version, filepath.Join(g.layout.IO.Top, "server"), device, iops); err != nil {
		g.t.Fatal(err)
	}
}

// Postmaster returns the process id of a server.
func Postmaster(t testing.TB, s *pgtest.Server) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.DataDir(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
