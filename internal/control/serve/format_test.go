package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"howdah/internal/edge/seen"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/state/format"
	"howdah/internal/testkit"
	"howdah/internal/testkit/etcdtest"
)

// The number is raised once the last part of the home reads it, also if that part is away.
func TestAllRead(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	reads := format.Said{Reads: 2}
	for _, step := range []struct {
		key   string
		value any
		want  bool
	}{
		{state.Control("s1"), hostapi.ControlMember{Name: "s1", Said: reads}, true},
		{state.Host("a"), member.Host{Name: "a"}, false},
		{state.Host("a"), member.Host{Name: "a", Reads: 1}, false},
		{state.Host("a"), member.Host{Name: "a", Reads: 3}, true},
		{state.Edge("e"), map[string]string{"name": "e"}, false},
		{state.Edge("e"), seen.Status{Name: "e", Reads: 2}, true},
		{state.Control("s2"), map[string]string{"name": "s2"}, false},
		{state.Control("s2"), hostapi.ControlMember{Name: "s2", Said: reads}, true},
		{state.Host("b"), "no record", false},
	} {
		etcdtest.Put(t, store, cache, state.Put(step.key, step.value))
		if got := allRead(cache, 2); got != step.want {
			t.Errorf("after %s is %+v: %v", step.key, step.value, got)
		}
	}
}

// A control plane raises the number and tells hosts of it. It ends once a newer release has raised
// the number further.
func TestTheFormatIsRaisedAndFollowed(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	cfg := Config{
		Name: "s1", Version: "1.1", Address: "127.0.0.1", Log: slog.New(slog.DiscardHandler),
		Home: &home.Home{Config: home.Config{Listen: "127.0.0.1:7443"}},
	}
	if _, err := cfg.introduce(t.Context(), store, format.Record{}, ""); err != nil {
		t.Fatal(err)
	}
	etcdtest.Put(t, store, cache, state.Put(state.Notice("round"), 1))
	var work sync.WaitGroup
	ended := make(chan error, 1)
	work.Go(func() { ended <- cfg.follow(t.Context(), store, cache) })
	won, err := store.Commit(t.Context(), state.Put(state.ElectionRoot+"s1", "s1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.raiseFormat(t.Context(), store, cache, state.Held(state.ElectionRoot+"s1", won)); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 4*raiseEvery, func() error {
		if r := format.Heard(cache); r.Format != format.Newest || r.Release != "1.1" {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	etcdtest.Put(t, store, cache, state.Put(state.HomeFormat, format.Record{Format: format.Newest + 1, Release: "2.0"}))
	work.Wait()
	if err := <-ended; !errors.Is(err, format.ErrNewer) {
		t.Errorf("%v", err)
	}
	if err := cfg.readable(t.Context(), store.Client); !errors.Is(err, format.ErrNewer) {
		t.Errorf("%v", err)
	}
}
