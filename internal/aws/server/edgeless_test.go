package server

import (
	"testing"

	"howdah/internal/edge/seen"
	"howdah/internal/state"
	"howdah/internal/view"
)

// Where addresses move with the edges of hosts, a host needs one that runs; a gateway serves
// those of all hosts.
func TestAHostWithoutAnEdge(t *testing.T) {
	w := newWorld(t)
	edge := func(name, own string) state.Op {
		return state.Put(state.Edge(name), seen.Status{Name: name, Own: own})
	}
	for _, step := range []struct {
		name string
		ops  []state.Op
		want bool
	}{
		{"no edge at all is another problem", []state.Op{state.Delete(state.Edge("edge"))}, false},
		{"a gateway that does not run, too", []state.Op{edge("gate", "")}, false},
		{"its own edge does not run", []state.Op{edge("a", "zone-a")}, true},
		{"another host's edge runs", []state.Op{edge("b", "zone-b"), state.Put(state.Runs("b"), true)}, true},
		{"its own edge runs", []state.Op{state.Put(state.Runs("a"), true)}, false},
		{"it dies", []state.Op{state.Delete(state.Runs("a"))}, true},
		{"a gateway runs", []state.Op{state.Put(state.Runs("gate"), true)}, false},
	} {
		w.put(step.ops...)
		if got := view.Edgeless(w.server.Cache)("zone-a"); got != step.want {
			t.Errorf("%s: %v", step.name, got)
		}
	}
}
