package host

import (
	"testing"

	"howdah/internal/control/plan"
)

// Who takes the place of a member that goes is one of its own seat, and of those the newest: they
// were added for the ones that go.
func TestReplacement(t *testing.T) {
	placed := func(name, host string, going plan.Going) plan.Placed {
		return plan.Placed{Name: name, Seat: "s", Host: host, Going: going}
	}
	other := placed("m9", "z", plan.Staying)
	other.Seat = "another"
	leaving := placed("m8", "z", plan.Staying)
	leaving.Leaving = true
	layout := plan.Layout{Members: []plan.Placed{
		placed("m1", "a", plan.Staying), placed("m2", "b", plan.Replaced), placed("m10", "e", plan.Replaced),
		placed("m11", "c", plan.Staying), placed("m12", "d", plan.Staying), other, leaving,
	}}
	for name, want := range map[string]string{"m2": "c", "m10": "d", "m1": "", "m7": ""} {
		got, ok := replacement(layout, plan.Placed{Name: name, Seat: "s"})
		if got.Host != want || ok != (want != "") {
			t.Errorf("%s: %+v, %v, want %q", name, got, ok, want)
		}
	}
	// Nobody has been added yet.
	layout.Members = layout.Members[1:3]
	if got, ok := replacement(layout, layout.Members[0]); ok {
		t.Errorf("%+v", got)
	}
}
