package serve

import (
	"testing"

	"howdah/internal/control/plan"
	"howdah/internal/state"
	"howdah/internal/testkit/hometest"
)

// placed knows where a member is that the home knows.
func TestPlaced(t *testing.T) {
	t.Parallel()
	h := hometest.New(t)
	layout := plan.Layout{ID: "d1", Members: []plan.Placed{{Name: "m1", Host: "a"}, {Name: "m2", Host: "b"}}}
	if _, err := h.Store.Commit(t.Context(), state.Put(state.Layout("d1"), layout)); err != nil {
		t.Fatal(err)
	}
	for member, want := range map[[2]string]string{{"d1", "m1"}: "a", {"d1", "m2"}: "b", {"d1", "m3"}: "", {"d2", "m1"}: ""} {
		if host, err := placed(t.Context(), h.Store, member[0], member[1]); err != nil || host != want {
			t.Errorf("%v is at %q, %v, want %q", member, host, err, want)
		}
	}
}
