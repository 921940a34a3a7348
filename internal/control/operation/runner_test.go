package operation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/etcdtest"
)

// site is a home's state with a runner.
type site struct {
	t      *testing.T
	store  *state.Store
	cache  *state.Cache
	runner *Runner
}

func newSite(t *testing.T, definitions ...*Definition) *site {
	t.Helper()
	s := &site{t: t, store: etcdtest.Store(t)}
	s.cache = etcdtest.Cache(t, s.store, func(c *state.Cache) {
		s.runner = New(Config{Store: s.store, Cache: c, Name: "s1", Definitions: definitions, Log: slog.New(slog.DiscardHandler)})
	})
	return s
}

// lead has the runner run, as the one that is elected, until the answer is called.
func (s *site) lead(key string) func() {
	s.t.Helper()
	revision, err := s.store.Commit(s.t.Context(), state.Put(state.ElectionRoot+key, key))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := s.runner.Run(ctx, state.Held(state.ElectionRoot+key, revision)); err != nil {
			s.t.Errorf("run: %v", err)
		}
	})
	stop := sync.OnceFunc(func() { cancel(); done.Wait() })
	s.t.Cleanup(stop)
	return stop
}

func (s *site) begin(id string, k operation.Kind, change func(*operation.Record)) {
	s.t.Helper()
	r, err := operation.New(id, k, about, nil, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	if change != nil {
		change(&r)
	}
	etcdtest.Put(s.t, s.store, s.cache, state.Swap(state.Operation(id), 0, r))
}

func (s *site) is(id string, want operation.State) {
	s.t.Helper()
	testkit.Eventually(s.t, 20*time.Second, func() error {
		r, err := state.Load[operation.Record](s.cache, state.Operation(id))
		if err == nil && r.Value.State != want {
			return fmt.Errorf("%s is %+v", id, r.Value)
		}
		return err
	})
}

// patient is a kind whose only step waits until it is told to end.
func patient(gate <-chan struct{}) *Definition {
	return &Definition{Kind: operation.Kind{Name: "patient", Within: time.Hour}, First: "wait", Steps: map[string]Step{
		"wait": {
			Do: func(context.Context, *Run) (Outcome, error) {
				select {
				case <-gate:
					return End(), nil
				default:
					return Nap(leastNap), nil
				}
			},
			Undo: func(context.Context, *Run) (Outcome, error) { return End(), nil },
		},
	}}
}

func TestTheRunner(t *testing.T) {
	gate := make(chan struct{})
	d := patient(gate)
	s := newSite(t, d)
	s.begin("early", d.Kind, nil)
	s.begin("stranger", operation.Kind{Name: "of-tomorrow", Within: time.Hour}, nil)
	stop := s.lead("one")
	s.begin("late", d.Kind, nil)
	s.begin("slow", d.Kind, func(r *operation.Record) { r.Deadline = time.Now().Add(-time.Second) })
	testkit.Eventually(t, 20*time.Second, func() error {
		told := state.LoadAll[event.Event](s.cache, state.EventRoot)
		if len(told) != 1 || told[0].Value.ID != "HOWDAH-EVENT-013" || told[0].Value.Source != "orders" {
			return fmt.Errorf("events %+v", told)
		}
		return nil
	})
	etcdtest.Put(t, s.store, s.cache, state.Put(state.OperationCancel("late"), operation.Wish{By: "KEY"}))
	s.is("late", operation.Cancelled)
	testkit.Eventually(t, 20*time.Second, func() error {
		if _, _, there := s.cache.Raw(state.OperationCancel("late")); there {
			return errors.New("the wish is still there")
		}
		return nil
	})
	stop()
	close(gate)
	s.is("early", operation.Running)
	stop = s.lead("two")
	s.is("early", operation.Done)
	s.is("slow", operation.Done)
	s.is("stranger", operation.Running)
	stop()
	if told := s.cache.Keys(state.EventRoot); len(told) != 1 {
		t.Errorf("events %q", told)
	}
}

// What has ended goes when it is old; a wish goes that came too late.
func TestOldOperationsGo(t *testing.T) {
	s := newSite(t)
	kind := operation.Kind{Name: "any", Within: time.Hour}
	ended := func(ago time.Duration) func(*operation.Record) {
		return func(r *operation.Record) { r.State, r.Ended = operation.Done, time.Now().Add(-ago) }
	}
	s.begin("old", kind, ended(operation.Keep+time.Hour))
	s.begin("new", kind, ended(time.Hour))
	s.begin("running", kind, nil)
	for _, id := range []string{"old", "new", "running", "never"} {
		etcdtest.Put(t, s.store, s.cache, state.Put(state.OperationCancel(id), operation.Wish{By: "KEY"}))
	}
	s.lead("one")
	testkit.Eventually(t, 20*time.Second, func() error {
		ops, wishes := s.cache.Names(state.OperationRoot), s.cache.Names(state.OperationCancelRoot)
		if fmt.Sprint(ops, wishes) != "[new running] [running]" {
			return fmt.Errorf("%q, %q", ops, wishes)
		}
		return nil
	})
}

// Who does not lead changes nothing, whatever it thinks.
func TestWhoDoesNotLead(t *testing.T) {
	gate := make(chan struct{})
	close(gate)
	d := patient(gate)
	s := newSite(t, d)
	s.begin("one", d.Kind, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := s.runner.Run(ctx, state.Held(state.ElectionRoot+"nobody", 7)); err != nil {
		t.Error(err)
	}
	s.is("one", operation.Running)
	if r, err := state.Load[operation.Record](s.cache, state.Operation("one")); err != nil || r.Value.Turn != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A step that does not heed its context keeps nobody from leading.
func TestAStepThatHangs(t *testing.T) {
	free := make(chan struct{})
	t.Cleanup(func() { close(free) })
	called := make(chan struct{}, 8)
	d := &Definition{Kind: operation.Kind{Name: "deaf", Within: time.Hour}, First: "hang", Steps: map[string]Step{
		"hang": {Do: func(context.Context, *Run) (Outcome, error) { called <- struct{}{}; <-free; return End(), nil }},
	}}
	s := newSite(t, d)
	s.begin("one", d.Kind, nil)
	stop := s.lead("one")
	<-called
	stop()
	s.lead("two")
	<-called // by the one that leads now
}

// A step that naps is called as soon as its job has ended, and not for what a job says meanwhile, nor
// for the jobs of others.
func TestAJobThatEndsEndsANap(t *testing.T) {
	var s *site
	calls := make(chan struct{}, 8)
	d := &Definition{Kind: operation.Kind{Name: "sleepy", Within: time.Hour}, First: "wait", Steps: map[string]Step{
		"wait": {Do: func(context.Context, *Run) (Outcome, error) {
			calls <- struct{}{}
			report, err := state.Load[member.JobReport](s.cache, state.JobReport("zone-a", "one/1"))
			if err == nil && report.Value.State == member.JobDone {
				return End(), nil
			}
			return Nap(time.Hour), nil
		}},
	}}
	s = newSite(t, d)
	s.begin("one", d.Kind, nil)
	s.lead("one")
	<-calls
	for job, is := range map[string]member.JobState{"one/1": member.JobRuns, "another/1": member.JobDone} {
		etcdtest.Put(t, s.store, s.cache, state.Put(state.JobReport("zone-a", job), member.JobReport{Name: job, State: is}))
	}
	s.is("one", operation.Running)
	etcdtest.Put(t, s.store, s.cache, state.Put(state.JobReport("zone-a", "one/1"), member.JobReport{Name: "one/1", State: member.JobDone}))
	s.is("one", operation.Done)
	<-calls
	if len(calls) > 0 {
		t.Errorf("the step was called %d times more", len(calls))
	}
}
