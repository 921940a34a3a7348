package operation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/model/operation"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
	"howdah/internal/testkit"
	"howdah/internal/testkit/etcdtest"
	"howdah/internal/testkit/hometest"
)

// mumbler is a ledger whose answers are lost now and then, after what was asked happened or
// instead of it, and which is slow.
type mumbler struct {
	*memory
	rand *rand.Rand
	mu   sync.Mutex // guards rand
}

var errMumbled = errors.New("context deadline exceeded")

func (m *mumbler) draw(n int) int { m.mu.Lock(); defer m.mu.Unlock(); return m.rand.IntN(n) }

func (m *mumbler) write(ctx context.Context, r operation.Record, revision int64, ops ...state.Op) (int64, error) {
	time.Sleep(time.Duration(m.draw(5000)) * time.Millisecond)
	switch m.draw(4) {
	case 0:
		return 0, errMumbled
	case 1:
		if _, err := m.memory.write(ctx, r, revision, ops...); err != nil {
			return 0, err
		}
		return 0, errMumbled
	}
	return m.memory.write(ctx, r, revision, ops...)
}

func (m *mumbler) read(ctx context.Context, id string) (operation.Record, int64, error) {
	if m.draw(3) == 0 {
		return operation.Record{}, 0, errMumbled
	}
	return m.memory.read(ctx, id)
}

func (m *mumbler) prove(ctx context.Context, id string, revision int64) error {
	if m.draw(3) == 0 {
		return errMumbled
	}
	return m.memory.prove(ctx, id, revision)
}

// Whatever answers are lost, what goes with a record happens once, and it ends as it should.
func TestAnswersThatAreLost(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			tr := &trail{}
			d := errand(tr)
			m := begin(t, d)
			drv := m.driver(d, "a")
			drv.books = &mumbler{memory: m, rand: rand.New(rand.NewPCG(seed, 1))}
			drv.run(t.Context())
			told := 0
			if m.record.Told {
				told = 1
			}
			if m.record.State != operation.Done || m.ops != 1+told {
				t.Errorf("seed %d: %d changes:\n%s", seed, m.ops, m.text())
			}
			for n, r := range m.history[1:] {
				if before := m.history[n]; r.Turn < before.Turn || r.Progress.Done < before.Progress.Done {
					t.Errorf("seed %d: %+v after %+v", seed, r, before)
				}
			}
		})
	}
}

// Several that think that they lead: of all of them together each change happens once.
func TestSeveralThatThinkTheyLead(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			tr := &trail{}
			d := errand(tr)
			m := begin(t, d)
			var all sync.WaitGroup
			for n := range 3 {
				drv := m.driver(d, fmt.Sprint("s", n))
				drv.books = &mumbler{memory: m, rand: rand.New(rand.NewPCG(seed, uint64(n)))}
				all.Go(func() { drv.run(t.Context()) })
			}
			all.Wait()
			told := 0
			if m.record.Told {
				told = 1
			}
			if m.record.State != operation.Done || m.ops != 1+told {
				t.Errorf("seed %d: %d changes:\n%s", seed, m.ops, m.text())
			}
		})
	}
}

// What another version has recorded is left alone: a step or a state that is not known.
func TestRecordsOfAnotherVersion(t *testing.T) {
	for name, change := range map[string]func(*operation.Record){
		"another step":       func(r *operation.Record) { r.Step = "fly" },
		"another one before": func(r *operation.Record) { r.Step, r.Entered = "walk", []string{"fly", "walk"} },
		"another state":      func(r *operation.Record) { r.State = "paused" },
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := &trail{}
			m := begin(t, errand(tr))
			change(&m.record)
			m.wished = &operation.Wish{By: "KEY"}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			m.driver(errand(tr), "a").run(ctx)
			if len(m.history) != 0 || len(tr.calls) != 0 {
				t.Errorf("%s: %q\n%s", name, tr.calls, m.text())
			}
		})
	}
}

// With an etcd that is full nothing begins; what is old still goes; and when there is room
// again all goes on by itself.
func TestAFullEtcd(t *testing.T) {
	t.Parallel()
	const quota = 4 << 20
	h := hometest.NewSmall(t, quota)
	gate := make(chan struct{})
	d := patient(gate)
	called := make(chan struct{}, 1000)
	wait := d.Steps["wait"]
	do := wait.Do
	wait.Do = func(ctx context.Context, run *Run) (Outcome, error) { called <- struct{}{}; return do(ctx, run) }
	d.Steps["wait"] = wait
	s := &site{t: t, store: h.Store}
	s.cache = etcdtest.Cache(t, h.Store, func(c *state.Cache) {
		s.runner = New(Config{Store: h.Store, Cache: c, Name: "s1", Definitions: []*Definition{d}, Log: slog.New(slog.DiscardHandler)})
	})
	s.begin("old", d.Kind, func(r *operation.Record) { r.State, r.Ended = operation.Done, time.Now().Add(-2*operation.Keep) })
	s.begin("one", d.Kind, nil)
	lead, err := s.store.Commit(t.Context(), state.Put(state.ElectionRoot+"s1", "s1"))
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		if _, err := h.Store.Commit(t.Context(), state.Put(fmt.Sprintf("/filler/%d", n), strings.Repeat("x", 256<<10))); err != nil {
			if !strings.Contains(err.Error(), "space") {
				t.Fatal(err)
			}
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = s.runner.Run(ctx, state.Held(state.ElectionRoot+"s1", lead)) })
	t.Cleanup(func() { cancel(); done.Wait() })
	testkit.Eventually(t, 20*time.Second, func() error {
		if names := s.cache.Names(state.OperationRoot); !slices.Equal(names, []string{"one"}) {
			return fmt.Errorf("there are %q", names)
		}
		return nil
	})
	select {
	case <-called:
		t.Error("a step began, and nobody would know")
	default:
	}
	makeRoom(t, h)
	close(gate)
	s.is("one", operation.Done)
}

// makeRoom does what `howdah etcd mend` does.
func makeRoom(t *testing.T, h *hometest.Home) {
	t.Helper()
	if _, err := h.Store.Commit(t.Context(), state.DeletePrefix("/filler/")); err != nil {
		t.Fatal(err)
	}
	pair, err := certs.Load(h.CertDir())
	if err != nil {
		t.Fatal(err)
	}
	keeper := &etcd.Keeper{Member: h.Member, Credentials: pair, Log: slog.New(slog.DiscardHandler)}
	testkit.Eventually(t, 20*time.Second, func() error {
		if _, err := keeper.Mend(t.Context()); err != nil {
			return err
		}
		_, err := h.Store.Commit(t.Context(), state.Put("/filler/last", true))
		return err
	})
}
