package state

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// TestClientCounts checks that no step is lost if several clients count at the same time. It checks
// that reads after Fresh see what others wrote, and wait for Settle, too.
func TestClientCounts(t *testing.T) {
	store := newStore(t)
	cache := NewCache(store.Client, quiet(), "/x")
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = cache.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	c := &Client{Store: store, Cache: cache, Newest: func(ctx context.Context) (int64, error) {
		answer, err := store.Client.Get(ctx, "/")
		if err != nil {
			return 0, err
		}
		return answer.Header.Revision, nil
	}}
	const each = 10
	var counting sync.WaitGroup
	for range 3 {
		counting.Go(func() {
			for range each {
				if err := c.Retry(ctx, func() error { return step(ctx, c) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	counting.Wait()
	if _, err := store.Commit(ctx, Put("/x/other", thing{"other", 7})); err != nil {
		t.Fatal(err)
	}
	if err := c.Fresh(ctx); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int{"/x/counter": 3 * each, "/x/other": 7} {
		if r, err := Load[thing](cache, key); err != nil || r.Value.Count != want {
			t.Errorf("%s: %+v, %v, want %d", key, r.Value, err, want)
		}
	}
	unsettled := errors.New("not yet")
	c.Settle = func(context.Context) error { return unsettled }
	if err := c.Retry(ctx, func() error { t.Error("it was not waited for"); return nil }); !errors.Is(err, unsettled) {
		t.Error(err)
	}
}

// step increases the count by one.
func step(ctx context.Context, c *Client) error {
	r, err := Load[thing](c.Cache, "/x/counter")
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	r.Value.Count++
	return c.Commit(ctx, Swap("/x/counter", r.Revision, r.Value))
}
