package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
	"howdah/internal/testkit/patience"
)

// soon is how long a host may take for what it does at once.
const soon = 20 * time.Second

var worlds atomic.Int64

// world is a host in an etcd that others share.
type world struct {
	*testing.T
	home  *hometest.Home
	order order
}

func newWorld(t *testing.T, h *hometest.Home) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	n := worlds.Add(1)
	dir := hometest.Dir(t)
	w := &world{T: t, home: h, order: order{
		Etcd: h.Etcd, Certs: h.CertDir(), Host: fmt.Sprintf("h%d", n), Dir: filepath.Join(dir, "host"), World: filepath.Join(dir, "world"),
		Parent: fmt.Sprintf("howdah-test-job-%d-%d", os.Getpid(), n),
	}}
	for _, d := range []string{w.order.Dir, w.order.World} {
		if err := os.Mkdir(d, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(w.nothingRuns)
	return w
}

// nothingRuns kills what agents left that a test has killed.
func (w *world) nothingRuns() {
	for _, group := range w.groups() {
		ctx, cancel := context.WithTimeout(context.Background(), patience.For(soon))
		defer cancel()
		if _, err := group.Kill(ctx); err != nil {
			w.Error(err)
		}
		if err := group.Remove(); err != nil {
			w.Error(err)
		}
	}
}

// groups are the groups of programs that there are.
func (w *world) groups() (all []*proc.Group) {
	w.Helper()
	procs, err := proc.Open(proc.Config{Parent: w.order.Parent, StateDir: filepath.Join(w.order.Dir, "proc")})
	if err != nil {
		w.Fatal(err)
	}
	names, err := procs.Groups()
	if err != nil {
		w.Fatal(err)
	}
	for _, name := range names {
		group, err := procs.Group(name)
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, group)
	}
	return all
}

// agent is a child.
type agent struct {
	*world
	cmd  *exec.Cmd
	out  bytes.Buffer
	done chan struct{}
}

// start starts an agent.
func (w *world) start(change func(*order)) *agent {
	w.Helper()
	o := w.order
	if change != nil {
		change(&o)
	}
	text, err := json.Marshal(o)
	if err != nil {
		w.Fatal(err)
	}
	a := &agent{world: w, done: make(chan struct{})}
	a.cmd = exec.Command(os.Args[0])
	a.cmd.Env = append(os.Environ(), "HOWDAH_TEST_JOB="+string(text))
	a.cmd.Stdout, a.cmd.Stderr = &a.out, &a.out
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	testkit.Start(w.T, a.cmd)
	go func() { _ = a.cmd.Wait(); close(a.done) }()
	w.Cleanup(func() {
		a.kill()
		if w.Failed() {
			w.Logf("an agent said:\n%s", a.out.String())
		}
	})
	return a
}

// kill ends an agent as kill -9 does.
func (a *agent) kill() {
	_ = a.cmd.Process.Kill()
	<-a.done
}

// died waits until an agent has killed itself.
func (a *agent) died() {
	a.Helper()
	select {
	case <-a.done:
	case <-time.After(patience.For(soon)):
		a.Fatal("the agent does not die")
	}
}

// stopped waits until an agent has stopped itself.
func (a *agent) stopped() {
	a.Helper()
	a.eventually(func() error {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid))
		if err != nil || !bytes.Contains(text, []byte("State:\tT")) {
			return fmt.Errorf("it is not stopped: %w", err)
		}
		return nil
	})
}

func (a *agent) goOn() {
	a.Helper()
	if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		a.Fatal(err)
	}
}

func (w *world) eventually(check func() error) {
	w.Helper()
	testkit.Eventually(w.T, soon, check)
}

func (w *world) commit(ops ...state.Op) int64 {
	w.Helper()
	revision, err := w.home.Store.Commit(w.Context(), ops...)
	if err != nil {
		w.Fatal(err)
	}
	return revision
}

// ask asks for a job, and returns its name. Its files in the world have the id.
func (w *world) ask(kind, id string, turn int64) string {
	w.Helper()
	args, err := json.Marshal(wish{ID: id})
	if err != nil {
		w.Fatal(err)
	}
	name := w.order.Host + "-" + id + "/fill"
	w.commit(state.Swap(state.Job(w.order.Host, name), 0, member.Job{Name: name, Host: w.order.Host, Kind: kind, Turn: turn, Args: args, At: time.Now()}))
	return name
}

// cancel removes the key of a job.
func (w *world) cancel(name string) {
	w.Helper()
	w.commit(state.Delete(state.Job(w.order.Host, name)))
}

// allow lets a job go on.
func (w *world) allow(id string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.order.World, id+".go"), nil, 0o644); err != nil {
		w.Fatal(err)
	}
}

// journal is what a job did.
func (w *world) journal(id string) string {
	text, err := os.ReadFile(filepath.Join(w.order.World, id))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Error(err)
	}
	return strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "; ")
}

// did waits until a job has done something.
func (w *world) did(id, what string) {
	w.Helper()
	w.eventually(func() error {
		if text := w.journal(id); !strings.Contains(text, what) {
			return fmt.Errorf("it did: %s", text)
		}
		return nil
	})
}

// report is that of a job, for which check returns nil.
func (w *world) report(name string, check func(member.JobReport) error) member.JobReport {
	w.Helper()
	var got member.JobReport
	w.eventually(func() error {
		r, err := state.Get[member.JobReport](w.Context(), w.home.Store, state.JobReport(w.order.Host, name))
		if err != nil {
			return err
		}
		got = r.Value
		return check(got)
	})
	return got
}

func ends(r member.JobReport) error {
	if r.State == member.JobRuns {
		return fmt.Errorf("report %+v", r)
	}
	return nil
}

// forgotten waits until nothing of any job is left on the host.
func (w *world) forgotten() {
	w.Helper()
	w.eventually(func() error {
		left, err := state.List[member.JobReport](w.Context(), w.home.Store, state.JobReportPrefix(w.order.Host))
		if err != nil || len(left) > 0 {
			return fmt.Errorf("reports %+v, %w", left, err)
		}
		entries, err := os.ReadDir(filepath.Join(w.order.Dir, "jobs"))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Name() != turnsFile {
				return fmt.Errorf("%s is there", e.Name())
			}
		}
		for _, group := range w.groups() {
			return fmt.Errorf("%s is there", group.Name())
		}
		return nil
	})
}
