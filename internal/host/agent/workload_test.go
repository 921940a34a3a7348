package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"howdah/internal/host/job"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/model/regain"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/patience"
)

// sleepers are workloads of one process that does nothing: what the core promises to a kind of
// workload can be seen without a database.
type sleepers struct {
	agent *Agent
	room  int64 // of each

	mu   sync.Mutex
	said []string // guarded by mu; what workloads were told of
}

func (k *sleepers) Dirs() []string                         { return nil }
func (k *sleepers) Open(_ context.Context, a *Agent) error { k.agent = a; return nil }
func (k *sleepers) New(m *Member) Workload                 { return &sleeper{Member: m, kind: k} }
func (k *sleepers) Handler() http.Handler                  { return http.NotFoundHandler() }
func (k *sleepers) Facts(h *member.Host) error             { h.Cut = "none"; return nil }
func (k *sleepers) Release(string) error                   { return nil }
func (k *sleepers) Jobs() []job.Kind                       { return []job.Kind{{Name: "whoami", Run: k.whoami}} }
func (k *sleepers) Inspector() Inspector                   { return k }

func (k *sleepers) Begin(context.Context) func(context.Context) error {
	return func(ctx context.Context) error { <-ctx.Done(); return nil }
}

func (k *sleepers) Forget(id string) error {
	k.note("forget " + id)
	return nil
}

// Inspect finds no data anywhere.
func (k *sleepers) Inspect(_ context.Context, c regain.Copy) (regain.Copy, bool) { return c, false }

func (k *sleepers) note(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.said = append(k.said, text)
}

// heard counts what begins with a text.
func (k *sleepers) heard(text string) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.said {
		if strings.HasPrefix(s, text) {
			n++
		}
	}
	return n
}

// sleeper is a workload whose leader is the server as well.
type sleeper struct {
	*Member
	kind    *sleepers
	limited bool
	asked   bool // to stop
}

func (s *sleeper) Beside() []func(context.Context) { return nil }
func (s *sleeper) Look(context.Context) bool       { return true }
func (s *sleeper) Room() int64                     { return s.kind.room }
func (s *sleeper) Buried()                         {}
func (s *sleeper) Aim()                            {}

func (s *sleeper) Told(changed bool) {
	s.kind.note(fmt.Sprintf("told %d, changed: %v", s.Want.Generation, changed))
}

func (s *sleeper) Runs(ctx context.Context) bool {
	if s.Leader.Alive() {
		return true
	}
	process, err := s.Group.Leader()
	if err != nil {
		return false
	}
	s.Watch(ctx, &s.Leader, process)
	s.kind.note("took over")
	return s.Leader.Alive()
}

func (s *sleeper) Start(ctx context.Context) {
	s.Acted, s.limited, s.asked = s.Want.Generation, false, false
	command := proc.Command{
		Path: "/bin/sleep", Args: []string{"1000"}, Dir: s.Dir(), DataDir: s.Dir(), LogFile: filepath.Join(s.Dir(), "out"), Env: []string{"PATH=/bin"},
	}
	if u := s.User(); u != nil {
		command.User = &proc.User{UID: uint32(u.UID), GID: uint32(u.GID)}
	}
	process, err := s.Group.Start(ctx, command)
	if err != nil {
		s.Problem, s.Detail = member.StartFails, err.Error()
		return
	}
	s.Problem, s.Detail = member.None, ""
	s.Watch(ctx, &s.Leader, process)
}

func (s *sleeper) Keep(context.Context) {
	s.Acted = s.Want.Generation
	if !s.limited && s.Limit(s.Leader.Process) {
		s.limited = true
		s.kind.note("limited")
	}
}

func (s *sleeper) Stop(ctx context.Context) bool {
	if !s.Runs(ctx) {
		return true
	}
	if !s.asked {
		s.asked = true
		_ = s.agent.Procs.Signal(s.Leader.Process, syscall.SIGTERM)
	}
	return false
}

func (s *sleeper) Ended(_ context.Context, p *Process, exit proc.Exit) {
	if p == &s.Leader {
		s.kind.note("ended " + exit.String())
	}
}

func (s *sleeper) Describe(report *member.Report) {
	report.Patroni = s.Leader.Alive()
	s.Trouble(report, s.Leader.Alive(), false, "")
}

var errNoSuch = errors.New("a sleeper does no such thing")

func (s *sleeper) Perform(ctx context.Context, task member.Task, finish func(error)) {
	if task.Kind != member.Restart {
		finish(errNoSuch)
		return
	}
	if !s.KillAll(ctx, "it is to be started again") {
		finish(errNoSuch)
		return
	}
	finish(nil)
}

func (s *sleeper) Performed(context.Context, member.Task) (bool, error) { return false, nil }

// dorm is a home with one host, all of whose members sleep.
type dorm struct {
	*hosttest.Site
	kind  *sleepers
	agent *Agent // the newest
}

func newDorm(t *testing.T) *dorm {
	t.Helper()
	d := &dorm{Site: hosttest.New(t, 0), kind: &sleepers{}}
	t.Cleanup(d.end)
	return d
}

// end leaves nothing behind.
func (d *dorm) end() {
	ctx, cancel := context.WithTimeout(context.Background(), patience.For(30*time.Second))
	defer cancel()
	err := Ending{
		HomeID: d.HomeID, Host: hosttest.Name, Dir: d.Dir, Release: d.kind.Release,
		Stop: func(context.Context, *proc.Host, *proc.Group, string) error { return nil },
	}.Run(ctx)
	if err != nil {
		d.Error(err)
	}
}

// open prepares an agent that is not run.
func (d *dorm) open() *Agent {
	d.Helper()
	identity, _, err := d.Identity()
	d.Must(err)
	d.agent, err = New(d.Context(), Config{
		Name: hosttest.Name, Zone: "t", Address: "127.0.0.1", Dir: d.Dir, HomeID: d.HomeID, Version: "test", Etcd: d.Etcd, Control: d.Control,
		Identity: identity, Kind: d.kind, Remember: func([]string) {}, Log: hosttest.Log(),
	})
	d.Must(err)
	return d.agent
}

// run starts an agent. Its members go on when it ends.
func (d *dorm) run() (stop func()) {
	d.Helper()
	return d.Run(d.open().Run)
}

// start has a member run, and waits for it.
func (d *dorm) start() member.Assignment {
	d.Helper()
	a := d.Assignment("db-1", 1)
	a.Limits = member.Limits{CPUs: 1, MemoryBytes: 64 << 20}
	d.Assign(a)
	d.Awaits(a.ID, hosttest.Soon, hosttest.Running(1))
	return a
}

// passed returns when the agent has seen everything that was written before: it acts in order.
func (d *dorm) passed(marker string) {
	d.Helper()
	a := d.Assignment(marker, 1)
	d.Assign(a)
	d.Awaits(a.ID, hosttest.Soon, hosttest.Running(1))
}

// hears waits until workloads have said something so often.
func (d *dorm) hears(text string, times int) {
	d.Helper()
	testkit.Eventually(d.T, hosttest.Soon, func() error {
		if n := d.kind.heard(text); n < times {
			return fmt.Errorf("%q was said %d times, want %d", text, n, times)
		}
		return nil
	})
}

// leader is the process of a member; the zero one: none is there.
func (d *dorm) leader(id string) proc.Process {
	d.Helper()
	procs, err := OpenProcesses(d.HomeID, hosttest.Name, d.Dir)
	d.Must(err)
	group, err := procs.Group(groupName(id))
	d.Must(err)
	process, _ := group.Leader()
	return process
}

// Whatever its workload is, a member runs as assigned, is limited, is started again when it is
// killed, is taken over by the next agent, does tasks once, is stopped, and is removed.
func TestAMemberOfAnyKind(t *testing.T) {
	d := newDorm(t)
	stop := d.run()
	a := d.start()
	d.hears("limited", 1)
	first := d.leader(a.ID)
	d.Must(syscall.Kill(first.PID, syscall.SIGKILL))
	again := func(before proc.Process) proc.Process {
		t.Helper()
		var now proc.Process
		testkit.Eventually(t, hosttest.Soon, func() error {
			if now = d.leader(a.ID); now == before || now == (proc.Process{}) {
				return errors.New("it was not started again")
			}
			return nil
		})
		return now
	}
	second := again(first)
	d.hears("ended", 1)
	d.hears("limited", 2) // it is kept

	stop()
	d.kind = &sleepers{}
	d.run()
	d.hears("took over", 1)
	if d.leader(a.ID) != second {
		t.Error("it was started again")
	}

	d.Ask("t1", member.Restart, a.ID, time.Minute)
	again(second)
	if r := d.Ended("t1"); !r.Done {
		t.Errorf("result %+v", r)
	}

	a.Generation, a.Want = 4, member.Stopped
	d.Assign(a)
	d.Awaits(a.ID, hosttest.Soon, func(r member.Report) error {
		if r.Patroni || r.Generation != 4 || r.Gone {
			return fmt.Errorf("it is to stop: report %+v", r)
		}
		return nil
	})
	a.Generation, a.Want = 5, member.Absent
	d.Assign(a)
	if r := d.Awaits(a.ID, hosttest.Soon, hosttest.Gone); r.Generation != 5 {
		t.Errorf("report %+v", r)
	}
	if _, err := os.Stat(d.MemberDir(a.ID)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v", err)
	}
	d.hears("forget "+a.ID, 1)
}
