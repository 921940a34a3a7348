package serve

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"howdah/internal/host/hostapi"
	"howdah/internal/identity/home"
	"howdah/internal/model/zone"
	"howdah/internal/state"
	"howdah/internal/state/format"
	"howdah/internal/testkit"
	"howdah/internal/testkit/etcdtest"
	"howdah/internal/view"
)

// The zone is the home's: what the last control plane was told counts, and one that is told nothing
// changes nothing.
func TestTheZoneIsSet(t *testing.T) {
	t.Parallel()
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	told := func(z zone.Zone) *zone.Zone { return &z }
	for _, step := range []struct {
		told *zone.Zone
		want zone.Zone
	}{
		{nil, ""}, {told(""), ""}, {told("a.test"), "a.test"}, {nil, "a.test"}, {told("a.test"), "a.test"}, {told("b.test"), "b.test"}, {told(""), ""}, {nil, ""}, {told("b.test"), "b.test"},
	} {
		cfg := Config{Zone: step.told, Log: slog.New(slog.DiscardHandler)}
		got, err := cfg.setZone(t.Context(), store)
		if err != nil || got != step.want {
			t.Errorf("%q, %v; want %q", got, err, step.want)
		}
		etcdtest.Put(t, store, cache, state.Put(state.Notice("round"), 1))
		if got := view.DNSZone(cache); got != step.want {
			t.Errorf("the state has %q, want %q", got, step.want)
		}
	}
}

// A control plane tells edges of a zone that another one has set.
func TestTheZoneIsTold(t *testing.T) {
	t.Parallel()
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	cfg := Config{
		Name: "s1", Version: "1.1", Address: "127.0.0.1", Log: slog.New(slog.DiscardHandler),
		Home: &home.Home{Config: home.Config{Listen: "127.0.0.1:7443"}},
	}
	if _, err := cfg.introduce(t.Context(), store, format.Record{}, "a.test"); err != nil {
		t.Fatal(err)
	}
	etcdtest.Put(t, store, cache, state.Put(state.DNSZone(), zone.Setting{Zone: "a.test"}))
	var work sync.WaitGroup
	work.Go(func() { _ = cfg.follow(t.Context(), store, cache) })
	defer work.Wait()
	for _, z := range []zone.Zone{"b.test", "", "a.test"} {
		if z == "" {
			etcdtest.Put(t, store, cache, state.Delete(state.DNSZone()))
		} else {
			etcdtest.Put(t, store, cache, state.Put(state.DNSZone(), zone.Setting{Zone: z}))
		}
		testkit.Eventually(t, 20*time.Second, func() error {
			me, err := state.Load[hostapi.ControlMember](cache, state.Control("s1"))
			if err == nil && (me.Value.Zone != z || me.Value.URL == "") {
				err = fmt.Errorf("it says %+v, want the zone %q", me.Value, z)
			}
			return err
		})
	}
	etcdtest.Put(t, store, cache, state.Put(state.HomeFormat, format.Record{Format: format.Newest + 1, Release: "2.0"}))
}
