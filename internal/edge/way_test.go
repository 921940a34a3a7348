package edge

import (
	"fmt"
	"log/slog"
	"testing"

	"howdah/internal/model/route"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
	"howdah/internal/testkit/hometest"
)

// A gateway that begins, a zone that fails over, and one that ends change the ways of a
// thousand routes at once.
func TestAThousandWaysAreTold(t *testing.T) {
	const routes = 1000
	h := hometest.New(t)
	e := New(Config{Name: "gate", Store: h.Store, Log: slog.New(slog.DiscardHandler)})
	e.cache = etcdtest.Cache(t, h.Store, nil)
	ways := func(target string) map[string]route.Way {
		all := map[string]route.Way{}
		for n := range routes {
			id := fmt.Sprintf("db-%d", n)
			all[id] = route.Way{Route: id, Edge: "gate", Listen: fmt.Sprintf("10.9.%d.%d:5432", n/250, n%250+1), Targets: []string{target}}
		}
		return all
	}
	for _, c := range []struct {
		ways map[string]route.Way
		want int
	}{{ways("10.1.0.1:5432"), routes}, {ways("10.1.0.2:5432"), routes}, {nil, 0}} {
		if err := e.writeWays(t.Context(), c.ways); err != nil {
			t.Fatal(err)
		}
		told, err := state.List[route.Way](t.Context(), h.Store, state.WayRoot)
		if err != nil || len(told) != c.want {
			t.Fatalf("%d ways are told, want %d, %v", len(told), c.want, err)
		}
		for _, way := range told {
			if want := c.ways[way.Value.Route].Targets[0]; way.Value.Targets[0] != want {
				t.Fatalf("%s leads to %v, want %s", way.Value.Route, way.Value.Targets, want)
			}
		}
	}
}
