package reconcile

import (
	"testing"

	"howdah/internal/edge/seen"
	"howdah/internal/host/hostapi"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// Members get names of their own once every part of the home knows such names. An older part would
// not find a member by one.
func TestNamesOfTheirOwnAwaitEveryPart(t *testing.T) {
	for _, tt := range []struct {
		name string
		old  state.Op
		key  string
	}{
		{"a host", state.Put(state.Host("old"), member.Host{Name: "old"}), state.Host("old")},
		{"an edge", state.Put(state.Edge("old"), seen.Status{Name: "old"}), state.Edge("old")},
		{"a control plane", state.Put(state.Control("old"), hostapi.ControlMember{Name: "old"}), state.Control("old")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.put(state.Put(state.Edge("new"), seen.Status{Name: "new", OwnNames: true}),
				state.Put(state.Control("new"), hostapi.ControlMember{Name: "new", OwnNames: true}), tt.old)
			b.want(b.instance(true))
			b.settle()
			for _, m := range b.layout().Members {
				if m.OwnName || b.assigned(m.Host, m.Name).Value.OwnName {
					t.Errorf("%+v, with an older part", m)
				}
			}
			b.put(state.Delete(tt.key))
			b.settle()
			if !b.input().OwnNames {
				t.Error("all parts know them now")
			}
			// A member whose confirmations count keeps its name.
			for _, m := range b.layout().Members {
				if m.OwnName {
					t.Errorf("%s was renamed", m.Name)
				}
			}
		})
	}
	b := newBench(t)
	b.want(b.instance(true))
	b.settle()
	for _, m := range b.layout().Members {
		if a := b.assigned(m.Host, m.Name).Value; !m.OwnName || a.PatroniName() != dbID+"."+m.Name {
			t.Errorf("%+v is called %s", m, a.PatroniName())
		}
	}
}
