// Package fault breaks things on purpose: real hosts, real Patroni and PostgreSQL, in a network
// namespace of their own. Each test reads as a story with deadlines. Writers remember every
// acknowledgement, and all acknowledged rows must be there at the end.
package fault

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/ack"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/rig"
)

var binary string

func TestMain(m *testing.M) {
	if !rig.Isolate() {
		fmt.Fprintln(os.Stderr, "the fault tests need root: they make network namespaces")
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "howdah-fault-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // some stories run as an ordinary user
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "howdah")
	build := exec.Command("go", "build", "-o", binary, "howdah/cmd/howdah")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// story is one test on a rig of its own.
type story struct {
	*testing.T
	rig *rig.Rig
}

// begin starts a rig that is gone when the test ends, beside the rigs of other stories. If the test
// fails, it shows the rig's logs.
func begin(t *testing.T, change func(*rig.Options)) *story {
	t.Helper()
	if isAlone(t) {
		t.Fatalf("%s begins beside others: no story of that name does", t.Name())
	}
	t.Parallel()
	return start(t, change)
}

// alone is begin for a story that changes what rigs share: it has namespaces, whose addresses are
// the same in each rig, or it changes the kernel's rules. The name of such a story says so.
// scripts/test runs these stories in a process of their own, which has a network of its own, beside
// the one of all others.
func alone(t *testing.T, change func(*rig.Options)) *story {
	t.Helper()
	if !isAlone(t) {
		t.Fatalf("%s begins alone: its name must begin with TestAlone", t.Name())
	}
	return start(t, change)
}

func isAlone(t *testing.T) bool { return strings.HasPrefix(t.Name(), "TestAlone") }

func start(t *testing.T, change func(*rig.Options)) *story {
	t.Helper()
	dir, err := os.MkdirTemp("", "howdah-fault-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	o := rig.Options{Binary: binary, Dir: dir}
	// What a test adds to the directory is removed after the rig and before its files.
	t.Cleanup(func() {
		// An agent that was killed may have been making a spare: initdb's server ends by itself.
		testkit.Eventually(t, 30*time.Second, func() error { return os.RemoveAll(dir) })
	})
	if change != nil {
		change(&o)
	}
	before := o.Programs["serve"] != "" // of the release before
	r, err := rig.Start(t.Context(), o)
	if err != nil {
		showLogs(t, o.Dir)
		t.Fatalf("start the rig: %v", err)
	}
	t.Cleanup(func() {
		refusedNobody(t, o.Dir, before)
		if t.Failed() {
			showLogs(t, o.Dir)
		}
		if err := r.Close(); err != nil {
			t.Errorf("close the rig: %v", err)
		}
	})
	return &story{T: t, rig: r}
}

// refusedNobody looks for keys that a control plane refused to our own agents and edges: what they
// ask for, they need, and must get. What came of a task or of a job that nobody waits for any more does
// not count, and a control plane of the release before knows of no jobs.
func refusedNobody(t *testing.T, dir string, before bool) {
	logs, err := filepath.Glob(filepath.Join(dir, "serve*.log"))
	if err != nil || len(logs) == 0 {
		t.Errorf("logs of the control plane: %v, %v", logs, err)
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "refused a key that is not the caller's") && strings.Contains(line, "etcd-door") &&
				!strings.Contains(line, state.ResultRoot) && !strings.Contains(line, state.JobReportRoot) && !strings.Contains(line, thiefsName) &&
				!(before && strings.Contains(line, strings.TrimSuffix(state.JobRoot, "/"))) {
				t.Errorf("%s: %s", filepath.Base(path), line)
			}
		}
	}
}

// thiefsName is in the keys that a story asks for with keys that it stole.
const thiefsName = "stolen"

// showLogs prints the end of every log of a rig.
func showLogs(t *testing.T, dir string) {
	patterns := []string{"*.log", "home/hosts/*/members/*/log/patroni.log", "host-*/members/*/log/patroni.log", "home/hosts/*/members/*/log/patroni.out"}
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			continue
		}
		for _, f := range files {
			out, err := exec.Command("tail", "-n", "40", f).Output()
			if err == nil {
				t.Logf("---- %s\n%s", f, out)
			}
		}
	}
}

// must ends the test if a step of the story failed.
func (s *story) must(err error, step string) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", step, err)
	}
}

// given makes an instance and returns its database id.
func (s *story) given(name string, multiAZ bool) string {
	s.Helper()
	s.must(s.rig.Create(s.Context(), name, multiAZ), "create "+name)
	id, err := s.rig.Database(s.Context(), name)
	s.must(err, "find "+name)
	if multiAZ {
		s.eventually(30*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	}
	return id
}

func (s *story) eventually(within time.Duration, check func() error) {
	s.Helper()
	testkit.Eventually(s.T, within, check)
}

// leader returns the member with the leader key.
func (s *story) leader(database string) rig.Member {
	s.Helper()
	m, err := s.rig.Leader(s.Context(), database)
	s.must(err, "find the leader")
	return m
}

// writers write through the endpoint of an instance until they are stopped. Then every acknowledged
// row must be there.
type writers struct {
	s    *story
	load *ack.Load
	stop func()
}

func (s *story) writing(name string) *writers {
	s.Helper()
	config, err := s.rig.Config(s.Context(), name)
	s.must(err, "find the endpoint")
	return s.writingTo(config)
}

// writingTo starts writers at an endpoint.
func (s *story) writingTo(config *pgx.ConnConfig) *writers {
	s.Helper()
	l := &ack.Load{Config: config, Table: fmt.Sprintf("acks_%d", time.Now().UnixNano()), Writers: 3, Pause: 5 * time.Millisecond}
	s.must(l.Prepare(s.Context()), "prepare the load")
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { l.Run(ctx) })
	w := &writers{s: s, load: l, stop: func() { cancel(); done.Wait() }}
	s.Cleanup(w.stop)
	w.works(10 * time.Second)
	return w
}

// works waits until every writer is acknowledged again by whichever member serves from now on. What
// a writer sent before may have been answered before, and is only read now.
func (w *writers) works(within time.Duration) {
	w.s.Helper()
	from := time.Now()
	w.s.eventually(within, func() error {
		seen := map[int]bool{}
		for _, a := range w.load.Acks() {
			if a.Began.After(from) {
				seen[a.Writer] = true
			}
		}
		if len(seen) < w.load.Writers {
			return fmt.Errorf("%d of %d writers are acknowledged: %v", len(seen), w.load.Writers, w.load.Errors())
		}
		return nil
	})
}

// nothingLost ends the writers and checks every acknowledgement.
func (w *writers) nothingLost() {
	w.s.Helper()
	w.stop()
	acks := w.load.Acks()
	var missing []ack.Ack
	w.s.eventually(20*time.Second, func() (err error) {
		missing, err = ack.Missing(w.s.Context(), w.load.Config, w.load.Table, acks)
		return err
	})
	if len(missing) > 0 {
		w.s.Errorf("%d of %d acknowledged rows are lost, the first %+v", len(missing), len(acks), missing[0])
	}
}

// query runs one query through the endpoint of an instance.
func (s *story) query(name, sql string) (string, error) {
	config, err := s.rig.Config(s.Context(), name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(s.Context(), patience.For(5*time.Second))
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var text string
	err = conn.QueryRow(ctx, sql).Scan(&text)
	return text, err
}

// hasEvent returns nil once an event about an instance says so.
func (s *story) hasEvent(name, part string) error {
	all, err := s.rig.Events(s.Context(), name)
	if err != nil {
		return err
	}
	for _, e := range all {
		if strings.Contains(e, part) {
			return nil
		}
	}
	return fmt.Errorf("no event says %q: %q", part, all)
}
