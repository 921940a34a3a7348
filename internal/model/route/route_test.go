package route

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTargets(t *testing.T) {
	members := []Member{
		{Name: "m1", Seat: "i1", Address: "a:1"}, {Name: "m2", Seat: "i2", Address: "b:1"}, {Name: "m3", Seat: "i3", Address: "c:1"},
	}
	all := map[string]bool{"m1": true, "m2": true, "m3": true}
	for _, c := range []struct {
		name  string
		route Route
		view  View
		want  []string
	}{
		{"the leader", Route{Kind: Leader}, View{"m1", all}, []string{"a:1"}},
		{"the leader, seen to serve in its role, whatever its state says", Route{Kind: Leader}, View{"m2", nil}, []string{"b:1"}},
		{"no leader", Route{Kind: Leader}, View{"", all}, nil},
		{"a leader that is not known here", Route{Kind: Leader}, View{"m9", all}, nil},
		{"readers", Route{Kind: Readers}, View{"m1", all}, []string{"b:1", "c:1"}},
		{"readers that serve", Route{Kind: Readers}, View{"m1", map[string]bool{"m1": true, "m3": true}}, []string{"c:1"}},
		{"no reader: the primary", Route{Kind: Readers}, View{"m1", map[string]bool{"m1": true}}, []string{"a:1"}},
		{"readers without a primary", Route{Kind: Readers}, View{"", map[string]bool{"m2": true}}, []string{"b:1"}},
		{"nobody reads", Route{Kind: Readers}, View{"", nil}, nil},
		{"a seat", Route{Kind: Seats, Seats: []string{"i2"}}, View{"m1", all}, []string{"b:1"}},
		{"a seat that does not serve", Route{Kind: Seats, Seats: []string{"i2"}}, View{"m1", map[string]bool{"m3": true}}, nil},
		{"a seat that leads", Route{Kind: Seats, Seats: []string{"i1", "i2"}}, View{"m1", nil}, []string{"a:1"}},
		{"a seat that leads, for readers only", Route{Kind: Seats, Seats: []string{"i1", "i2"}, ReadersOnly: true}, View{"m1", all}, []string{"b:1"}},
		{"only the leader, for readers only", Route{Kind: Seats, Seats: []string{"i1"}, ReadersOnly: true}, View{"m1", all}, nil},
		{"no seat", Route{Kind: Seats}, View{"m1", all}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.route.Members = members
			if diff := cmp.Diff(c.want, c.route.Targets(c.view)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestIDsOfAClustersRoutes(t *testing.T) {
	for id, want := range map[string]string{Writer("cl-1"): "cl-1", Reader("cl-1"): "cl-1-reader", "db-1": "db-1", "": ""} {
		if got := Written(id); got != want {
			t.Errorf("Written(%q) = %q, want %q", id, got, want)
		}
	}
}
