package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	step "howdah/internal/control/operation"
	host "howdah/internal/host/job"
	"howdah/internal/host/proc"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/etcdtest"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// What is said of a job by what hosts report, and by what is known of hosts.
func TestLook(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	h := New(store, cache)
	h.now = func() time.Time { return noon }
	const there, away, lost, gone = "there", "away", "lost", "gone"
	live := func(alive bool, ago time.Duration) member.Liveness {
		return member.Liveness{Alive: alive, Since: noon.Add(-ago)}
	}
	etcdtest.Put(t, store, cache,
		state.Put(state.Host(there), member.Host{Name: there}), state.Put(state.Live(there), live(true, time.Hour)),
		state.Put(state.Host(away), member.Host{Name: away}), state.Put(state.Live(away), live(false, 20*time.Second)),
		state.Put(state.Host(lost), member.Host{Name: lost}), state.Put(state.Live(lost), live(false, 40*time.Second)),
	)
	running := member.JobReport{State: member.JobRuns, Done: 3, Of: 8, Unit: "files", Detail: "waits"}
	done := member.JobReport{State: member.JobDone, Result: json.RawMessage(`{"label":"B1"}`)}
	for n, c := range []struct {
		name, host string
		asked      time.Duration // ago; 0: it is not asked for
		said       *member.JobReport
		stale      bool // what was said is of an earlier job
		want       step.JobState
		detail     string
		final      bool
	}{
		{name: "nobody asked", host: there, want: step.NotAsked},
		{name: "just asked", host: there, asked: time.Second, want: step.InProgress},
		{name: "lying there", host: there, asked: 3 * time.Minute, want: step.Lost, detail: "has not begun it within 2m0s"},
		{name: "lying there while the host is away", host: away, asked: 3 * time.Minute, want: step.InProgress},
		{name: "under way", host: there, asked: time.Hour, said: &running, want: step.InProgress, detail: "waits"},
		{name: "on a host that is away", host: away, asked: time.Hour, said: &running, want: step.InProgress, detail: "waits"},
		{name: "on a lost host", host: lost, asked: time.Hour, said: &running, want: step.Lost, detail: "host lost is lost since"},
		{name: "on a forgotten host", host: gone, asked: time.Second, want: step.Lost, detail: "there is no host gone"},
		{name: "done", host: there, asked: time.Hour, said: &done, want: step.Succeeded},
		{name: "done on a host that was lost later", host: lost, asked: time.Hour, said: &done, want: step.Succeeded},
		{name: "an earlier one was done", host: there, asked: time.Second, said: &done, stale: true, want: step.InProgress},
		{
			name: "failed", host: there, asked: time.Hour, want: step.Lost, detail: "no room",
			said: &member.JobReport{State: member.JobFailed, Detail: "no room"},
		},
		{
			name: "failed for good", host: there, asked: time.Hour, want: step.Lost, detail: "wrong key", final: true,
			said: &member.JobReport{State: member.JobFailed, Detail: "wrong key", Final: true},
		},
	} {
		name := fmt.Sprintf("copy-%d/fill", n)
		if c.asked > 0 {
			h.now = func() time.Time { return noon.Add(-c.asked) }
			etcdtest.Put(t, store, cache, h.Ask(step.Job{Host: c.host, Name: name, Kind: "copy", Turn: 1})...)
			h.now = func() time.Time { return noon }
		}
		if c.said != nil {
			asked, err := state.Get[member.Job](t.Context(), store, state.Job(c.host, name))
			if err != nil {
				t.Fatal(err)
			}
			said := *c.said
			if said.Name, said.Asked = name, asked.Revision; c.stale {
				said.Asked--
			}
			etcdtest.Put(t, store, cache, state.Put(state.JobReport(c.host, name), said))
		}
		got, err := h.Look(t.Context(), c.host, name)
		if err != nil || got.State != c.want || got.Final != c.final || !strings.Contains(got.Detail, c.detail) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
		if c.want == step.Succeeded && string(got.Result) != `{"label":"B1"}` {
			t.Errorf("%s: the result is %s", c.name, got.Result)
		}
	}
}

// What is asked for is not asked for twice.
func TestAskOnce(t *testing.T) {
	store := etcdtest.Store(t)
	h := New(store, etcdtest.Cache(t, store, nil))
	j := step.Job{Host: "h1", Name: "copy-1/fill", Kind: "copy", Turn: 1}
	if _, err := store.Commit(t.Context(), h.Ask(j)...); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Commit(t.Context(), h.Ask(j)...); !errors.Is(err, state.ErrConflict) {
		t.Errorf("a second time: %v", err)
	}
	if _, err := store.Commit(t.Context(), h.Forget("h1", j.Name)...); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Commit(t.Context(), h.Ask(j)...); err != nil {
		t.Errorf("after it was forgotten: %v", err)
	}
}

// site is a home whose one host does its jobs.
type site struct {
	*testing.T
	store *state.Store
	cache *state.Cache
	// runs counts how often the job was begun; it ends when go is there.
	runs atomic.Int32
	gate string
	lead string
}

const zone = "zone-a"

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, store: etcdtest.Store(t), gate: filepath.Join(t.TempDir(), "go")}
	s.cache = etcdtest.Cache(t, s.store, nil)
	procs, err := proc.Open(proc.Config{Parent: fmt.Sprintf("howdah-test-control-job-%d", os.Getpid()), StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	jobs, err := host.New(host.Config{
		Host: zone, Dir: filepath.Join(t.TempDir(), "jobs"), Procs: procs, Refuse: func() error { return nil }, Discard: os.RemoveAll, Log: log,
		Kinds: []host.Kind{{Name: "copy", Run: s.copy}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { _ = jobs.Run(ctx, s.store) })
	t.Cleanup(func() { cancel(); done.Wait() })
	etcdtest.Put(t, s.store, s.cache, state.Put(state.Host(zone), member.Host{Name: zone}))
	return s
}

// copy ends when it is let go.
func (s *site) copy(ctx context.Context, call host.Call) (any, error) {
	s.runs.Add(1)
	for n := int64(1); ; n++ {
		if _, err := os.Lstat(s.gate); err == nil {
			return "copied", nil
		}
		call.Progress(n, 0, "looks")
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// control has a control plane lead, and nobody before it.
func (s *site) control(name string) (stop func()) {
	s.Helper()
	cache := state.NewCache(s.store.Client, slog.New(slog.DiscardHandler), state.Root)
	hosts := New(s.store, cache)
	runner := step.New(step.Config{Store: s.store, Cache: cache, Name: name, Log: slog.New(slog.DiscardHandler), Definitions: []*step.Definition{{
		Kind: copying, First: "fill", Steps: map[string]step.Step{
			"fill": {Do: func(ctx context.Context, run *step.Run) (step.Outcome, error) {
				return step.Await(ctx, run, hosts, step.Job{Host: zone, Name: run.Name(), Kind: "copy"}, func(result json.RawMessage) (step.Outcome, error) {
					run.Note("result", string(result))
					return step.End(), nil
				})
			}},
		},
	}}})
	ops := []state.Op{state.Put(state.ElectionRoot+name, name)}
	if s.lead != "" {
		ops = append(ops, state.Delete(s.lead))
	}
	s.lead = state.ElectionRoot + name
	revision, err := s.store.Commit(s.Context(), ops...)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { _ = cache.Run(ctx) })
	done.Go(func() { _ = runner.Run(ctx, state.Held(s.lead, revision)) })
	stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	s.Cleanup(stop)
	return stop
}

var copying = operation.Kind{Name: "copying", Within: time.Hour}

// begin begins the operation, and waits until the host does its job.
func (s *site) begin(id string) {
	s.Helper()
	about := operation.About{Scope: spec.Scope{Account: "123456789012", Region: "us-east-1"}, Type: event.Instance, Name: "orders", Database: "db-1"}
	r, err := operation.New(id, copying, about, nil, time.Now())
	if err != nil {
		s.Fatal(err)
	}
	etcdtest.Put(s.T, s.store, s.cache, state.Swap(state.Operation(id), 0, r))
	testkit.Eventually(s.T, 20*time.Second, func() error {
		if s.runs.Load() == 0 {
			return errors.New("nobody does it")
		}
		return nil
	})
}

// ends waits for the end of the operation, and until nothing is left of its job.
func (s *site) ends(id string, want operation.State) (got operation.Record) {
	s.Helper()
	testkit.Eventually(s.T, 30*time.Second, func() error {
		r, err := state.Load[operation.Record](s.cache, state.Operation(id))
		if err != nil || r.Value.State != want {
			return fmt.Errorf("%+v, %w", r.Value, err)
		}
		got = r.Value
		if left := append(s.cache.Keys(state.JobRoot), s.cache.Keys(state.JobReportRoot)...); len(left) > 0 {
			return fmt.Errorf("%v is left", left)
		}
		return nil
	})
	return got
}

// A control plane that takes over finds the job that the one before asked for, and its result.
func TestControlPlanesChange(t *testing.T) {
	s := newSite(t)
	stop := s.control("s1")
	s.begin("copy-1")
	stop()
	s.control("s2")
	if err := os.WriteFile(s.gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := s.ends("copy-1", operation.Done)
	if n := s.runs.Load(); n != 1 || got.Notes["result"] != `"copied"` {
		t.Errorf("begun %d times: %+v", n, got)
	}
}

// A host does not go on with what an operation wanted that was cancelled, also if no step of it undoes that.
func TestCancelled(t *testing.T) {
	for name, wish := range map[string]operation.Wish{"cancelled": {By: "KEY"}, "abandoned": {By: "KEY", Abandon: true}} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.control("s1")
			s.begin("copy-1")
			etcdtest.Put(t, s.store, s.cache, state.Put(state.OperationCancel("copy-1"), wish))
			s.ends("copy-1", operation.Cancelled)
		})
	}
}

// Jobs of operations that are not there, and reports of hosts that were forgotten, are swept away.
func TestOrphans(t *testing.T) {
	s := newSite(t)
	etcdtest.Put(t, s.store, s.cache,
		state.Put(state.Job(zone, "copy-0/fill"), member.Job{Name: "copy-0/fill", Host: zone, Kind: "copy"}),
		state.Put(state.Job("zone-x", "copy-0/fill"), member.Job{Name: "copy-0/fill", Host: "zone-x", Kind: "copy"}),
		state.Put(state.JobReport("zone-x", "copy-9/fill"), member.JobReport{Name: "copy-9/fill"}))
	s.control("s1")
	testkit.Eventually(t, 20*time.Second, func() error {
		if left := append(s.cache.Keys(state.JobRoot), s.cache.Keys(state.JobReportRoot)...); len(left) > 0 {
			return fmt.Errorf("%v is left", left)
		}
		return nil
	})
}
