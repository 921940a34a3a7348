package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
)

// contender campaigns until it is stopped, and counts how often it led.
type contender struct {
	leading atomic.Bool
	terms   atomic.Int32
	held    atomic.Pointer[state.Op] // of the last term
	fail    chan error               // ends a term
	stop    func()
}

func campaign(t *testing.T, h *hometest.Home, name string, leaders *atomic.Int32) *contender {
	t.Helper()
	c := &contender{fail: make(chan error)}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		lead(ctx, h.Store.Client, name, slog.New(slog.DiscardHandler), func(ctx context.Context, held state.Op) error {
			if _, err := h.Store.Commit(ctx, held, state.Put(state.Live(name), true)); err != nil {
				t.Errorf("the leader may not write: %v", err)
			}
			c.held.Store(&held)
			if n := leaders.Add(1); n != 1 {
				t.Errorf("%d lead at the same time", n)
			}
			defer leaders.Add(-1)
			c.terms.Add(1)
			c.leading.Store(true)
			defer c.leading.Store(false)
			select {
			case <-ctx.Done():
				return nil
			case err := <-c.fail:
				return err
			}
		})
	})
	c.stop = func() { cancel(); done.Wait() }
	t.Cleanup(c.stop)
	return c
}

func leads(c *contender) func() error {
	return func() error {
		if !c.leading.Load() {
			return fmt.Errorf("does not lead, after %d terms", c.terms.Load())
		}
		return nil
	}
}

// One leads. When it stops, the other one does. After a term that fails, either of them begins
// another one.
func TestLeadership(t *testing.T) {
	h, leaders := hometest.New(t), &atomic.Int32{}
	first := campaign(t, h, "s1", leaders)
	testkit.Eventually(t, 10*time.Second, leads(first))
	second := campaign(t, h, "s2", leaders)
	first.stop()
	left, err := h.Store.Client.Get(t.Context(), state.ElectionRoot, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, candidate := range left.Kvs {
		if string(candidate.Value) == "s1" {
			t.Error("one that stopped is waited for until its lease ends")
		}
	}
	testkit.Eventually(t, 10*time.Second, leads(second))
	if _, err := h.Store.Commit(t.Context(), *first.held.Load(), state.Put(state.Live("s1"), false)); !errors.Is(err, state.ErrConflict) {
		t.Errorf("one that led before may write: %v", err)
	}
	if second.terms.Load() != 1 || first.terms.Load() != 1 {
		t.Errorf("terms %d and %d, want 1 and 1", first.terms.Load(), second.terms.Load())
	}
	second.fail <- errors.New("the work failed")
	testkit.Eventually(t, 10*time.Second, func() error {
		if second.terms.Load() < 2 {
			return errors.New("no second term")
		}
		return leads(second)()
	})
}
