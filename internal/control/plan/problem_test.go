package plan

import (
	"slices"
	"testing"
)

// Whoever shows problems tells these kinds apart, and never by their text.
func TestKindsOfProblems(t *testing.T) {
	lead := func(in *Input) {
		in.Layout.Members, in.Layout.Created, in.Leader = []Placed{{Name: "m1", Seat: "i1", Host: "a", Zone: "a", Served: true}}, true, "m1"
	}
	for _, tt := range []struct {
		name   string
		change func(*Input)
		want   Problem // without its text
	}{
		{"no host in the zone", func(in *Input) { in.Want.Seats[0].Zone = "nowhere" }, Problem{Kind: NoPlace}},
		{"no host at all", func(in *Input) { in.Hosts = nil }, Problem{Kind: NoPlace}},
		{"a lost host", func(in *Input) { lead(in); in.Hosts[0].Alive, in.Leader = false, "" }, Problem{Kind: HostLost, Host: "a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := newCluster()
			tt.change(&in)
			all := Next(in).Problems
			if !slices.ContainsFunc(all, func(p Problem) bool { return p.Kind == tt.want.Kind && p.Host == tt.want.Host && p.Text != "" }) {
				t.Errorf("%+v, without %+v", all, tt.want)
			}
		})
	}
}
