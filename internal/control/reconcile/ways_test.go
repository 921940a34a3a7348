package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/model/route"
	"howdah/internal/state"
	"howdah/internal/view"
)

// Only edges that run lead clients anywhere, and only those at the route's own address.
func TestWaysOfLivingEdges(t *testing.T) {
	b := newBench(t)
	const address, other, target = "127.10.0.1:5432", "127.9.0.1:5432", "10.0.0.1:6000"
	routes := []route.Route{
		{ID: "c-7-writer", Kind: route.Leader, Listen: address},
		{ID: "c-7-reader", Kind: route.Readers, Listen: address},
		{ID: "i1", Kind: route.Seats, Seats: []string{"i1"}, Listen: address},
	}
	way := func(id, edge, listen string) state.Op {
		return state.Put(state.Way(id, edge), route.Way{Route: id, Edge: edge, Listen: listen, Targets: []string{target}})
	}
	for _, step := range []struct {
		name string
		ops  []state.Op
		want map[string][]string
	}{
		{"an edge that does not run", []state.Op{way("c-7-writer", "gone", address), way("i1", "gone", address)}, map[string][]string{}},
		{"one that does", []state.Op{way("i1", "east", address), way("c-7-reader", "east", address), state.Put(state.Runs("east"), true)}, map[string][]string{"i1": {target}}},
		{"at another address", []state.Op{way("i1", "east", other)}, map[string][]string{}},
		{"the first one returns", []state.Op{state.Put(state.Runs("gone"), true)}, map[string][]string{"": {target}, "i1": {target}}},
		{"and dies", []state.Op{state.Delete(state.Runs("gone"))}, map[string][]string{}},
	} {
		b.put(step.ops...)
		if diff := cmp.Diff(step.want, view.Ways(b.cache, routes, 0)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", step.name, diff)
		}
	}
	_, said, _ := b.cache.Raw(state.Runs("east"))
	for since, want := range map[int64]map[string][]string{said - 1: {"i1": {target}}, said: {}} {
		b.put(way("i1", "east", address))
		if diff := cmp.Diff(want, view.Ways(b.cache, routes, since)); diff != "" {
			t.Errorf("an edge that said at %d that it runs, and since %d (-want +got)\n%s", said, since, diff)
		}
	}
}
