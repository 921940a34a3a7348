package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"howdah/internal/host/proc"
	"howdah/internal/identity/certs"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
	"howdah/internal/testkit/patience"
)

// sleepers are workloads of one process that does nothing: what the core promises to a kind of
// workload can be seen without a database.
type sleepers struct {
	agent *Agent

	mu   sync.Mutex
	said []string // guarded by mu; what workloads were told of
}

func (k *sleepers) Dirs() []string                         { return nil }
func (k *sleepers) Open(_ context.Context, a *Agent) error { k.agent = a; return nil }
func (k *sleepers) New(m *Member) Workload                 { return &sleeper{Member: m, kind: k} }
func (k *sleepers) Handler() http.Handler                  { return http.NotFoundHandler() }
func (k *sleepers) Facts(h *member.Host) error             { h.Cut = "none"; return nil }
func (k *sleepers) Release(string) error                   { return nil }
func (k *sleepers) Inspector() Inspector                   { return nil }

func (k *sleepers) Begin(context.Context) func(context.Context) error {
	return func(ctx context.Context) error { <-ctx.Done(); return nil }
}

func (k *sleepers) Forget(id string) error {
	k.note("forget " + id)
	return nil
}

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
func (s *sleeper) Room() int64                     { return 0 }
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

// site is a home with one host, all of whose members sleep.
type site struct {
	*testing.T
	*hometest.Home
	dir   string
	certs string
}

const siteHost = "zone-s"

func newSite(t *testing.T) *site {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	_ = proc.TakeOrphans(context.Background())
	h := hometest.New(t)
	s := &site{T: t, Home: h, dir: filepath.Join(h.Dir, "host"), certs: filepath.Join(h.Dir, "agent")}
	s.must(os.MkdirAll(s.certs, 0o700))
	s.must(h.Issue(t, "agent:"+siteHost).Write(s.certs))
	t.Cleanup(s.end)
	return s
}

// end leaves nothing behind.
func (s *site) end() {
	ctx, cancel := context.WithTimeout(context.Background(), patience.For(30*time.Second))
	defer cancel()
	procs, err := OpenProcesses(s.ID, siteHost, s.dir)
	s.must(err)
	groups, err := procs.Groups()
	s.must(err)
	for _, name := range groups {
		group, err := procs.Group(name)
		s.must(err)
		_, err = group.Kill(ctx)
		s.must(errors.Join(err, group.Remove()))
	}
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) run(kind *sleepers) (stop func()) {
	s.Helper()
	pair, err := certs.Load(s.certs)
	s.must(err)
	identity, err := certs.NewIdentity(pair)
	s.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	a, err := New(ctx, Config{
		Name: siteHost, Zone: "s", Address: "127.0.0.1", Dir: s.dir, HomeID: s.ID, Version: "test", Etcd: s.Etcd, Identity: identity,
		Kind: kind, Remember: func([]string) {}, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	s.must(err)
	client, err := etcd.Dial(ctx, s.Etcd, pair)
	s.must(err)
	var done sync.WaitGroup
	done.Go(func() {
		if err := a.Run(ctx, client); err != nil {
			s.Errorf("agent ended: %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		done.Wait()
		client.Close()
	})
	s.Cleanup(stop)
	return stop
}

func (s *site) put(key string, value any) {
	s.Helper()
	_, err := s.Store.Commit(s.Context(), state.Put(key, value))
	s.must(err)
}

func (s *site) assign(generation int64, want member.Want) {
	s.Helper()
	s.put(state.Assign(siteHost, "sleeper.m1"), member.Assignment{
		ID: "sleeper.m1", Generation: generation, Want: want, Scope: "sleeper", Name: "m1", Major: 1, Address: "127.0.0.1",
		Port: 7001, RESTPort: 7002, Limits: member.Limits{CPUs: 1, MemoryBytes: 64 << 20},
	})
}

func (s *site) awaits(what string, check func(member.Report) bool) {
	s.Helper()
	testkit.Eventually(s.T, patience.For(10*time.Second), func() error {
		r, err := state.Get[member.Report](s.Context(), s.Store, state.Report(siteHost, "sleeper.m1"))
		if err == nil && !check(r.Value) {
			err = fmt.Errorf("%s: report %+v", what, r.Value)
		}
		return err
	})
}

// hears waits until workloads of the kind have said something so often.
func (s *site) hears(kind *sleepers, text string, times int) {
	s.Helper()
	testkit.Eventually(s.T, patience.For(10*time.Second), func() error {
		if n := kind.heard(text); n < times {
			return fmt.Errorf("%q was said %d times, want %d", text, n, times)
		}
		return nil
	})
}

// leader is the process of the member; the zero one: none is there.
func (s *site) leader() proc.Process {
	s.Helper()
	procs, err := OpenProcesses(s.ID, siteHost, s.dir)
	s.must(err)
	group, err := procs.Group(groupName("sleeper.m1"))
	s.must(err)
	process, _ := group.Leader()
	return process
}

// Whatever its workload is, a member runs as assigned, is limited, is started again when it is
// killed, is taken over by the next agent, does tasks once, is stopped, and is removed.
func TestAMemberOfAnyKind(t *testing.T) {
	s := newSite(t)
	kind := &sleepers{}
	stop := s.run(kind)
	s.assign(2, member.Running)
	runs := func(generation int64) func(member.Report) bool {
		return func(r member.Report) bool { return r.Patroni && r.Generation == generation && r.Problem == member.None }
	}
	s.awaits("it runs", runs(2))
	s.hears(kind, "limited", 1)
	s.assign(1, member.Stopped)
	s.awaits("an older assignment is refused", func(r member.Report) bool { return r.Patroni && r.Problem == member.BadAssignment })
	s.assign(3, member.Running)
	s.awaits("a newer one is taken", runs(3))
	first := s.leader()
	s.must(syscall.Kill(first.PID, syscall.SIGKILL))
	again := func(before proc.Process) proc.Process {
		t.Helper()
		var now proc.Process
		testkit.Eventually(t, patience.For(10*time.Second), func() error {
			if now = s.leader(); now == before || now == (proc.Process{}) {
				return errors.New("it was not started again")
			}
			return nil
		})
		return now
	}
	second := again(first)
	s.hears(kind, "ended", 1)
	s.hears(kind, "limited", 2) // it is kept

	stop()
	next := &sleepers{}
	s.run(next)
	s.hears(next, "took over", 1)
	if s.leader() != second {
		t.Error("it was started again")
	}

	task := member.Task{ID: "t1", Kind: member.Restart, Host: siteHost, Member: "sleeper.m1", Within: time.Minute, Deadline: time.Now().Add(time.Minute)}
	s.put(state.Task(siteHost, task.ID), task)
	again(second)
	testkit.Eventually(t, patience.For(10*time.Second), func() error {
		r, err := state.Get[member.Result](t.Context(), s.Store, state.Result(task.ID))
		if err == nil && !r.Value.Done {
			err = fmt.Errorf("result %+v", r.Value)
		}
		return err
	})

	s.assign(4, member.Stopped)
	s.awaits("it stops", func(r member.Report) bool { return !r.Patroni && r.Generation == 4 && !r.Gone })
	s.assign(5, member.Absent)
	s.awaits("it is removed", func(r member.Report) bool { return r.Gone && r.Generation == 5 })
	if _, err := os.Stat(filepath.Join(s.dir, "members", "sleeper.m1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v", err)
	}
	s.hears(next, "forget sleeper.m1", 1)
}
