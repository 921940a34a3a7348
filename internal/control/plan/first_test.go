package plan

import (
	"slices"
	"testing"
	"time"

	"howdah/internal/model/member"
)

// newCluster is a cluster of two instances on two hosts that nobody has led yet.
func newCluster() Input {
	return Input{
		Now:  time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC),
		Want: Database{ID: "cluster-1", Major: 15, State: member.Running, Seats: []Seat{{Key: "i1"}, {Key: "i2"}}},
		Hosts: []Host{
			{Name: "a", Zone: "a", Alive: true, Majors: []int{15}, Memory: 8 << 30, CPUs: 4},
			{Name: "b", Zone: "b", Alive: true, Majors: []int{15}, Memory: 8 << 30, CPUs: 4},
		},
	}
}

func seatsTaken(out Output) []string {
	var keys []string
	for _, m := range out.Layout.Members {
		keys = append(keys, m.Seat)
	}
	return keys
}

// TestTheOldestInstanceStartsAlone: of two that start together Patroni would make
// either the writer.
func TestTheOldestInstanceStartsAlone(t *testing.T) {
	all, first := []string{"i1", "i2"}, []string{"i1"}
	one := []Placed{{Name: "m1", Seat: "i1", Host: "a", Zone: "a"}}
	for _, tt := range []struct {
		name   string
		change func(*Input)
		want   []string
	}{
		{"both at once", func(*Input) {}, first},
		{"one starts, and another one is asked for", func(in *Input) { in.Layout.Members = one }, first},
		{"one leads", func(in *Input) { in.Layout.Members, in.Leader = one, "m1" }, all},
		{"one led, and its successor is not known yet", func(in *Input) { in.Layout.Members, in.Layout.Created = one, true }, all},
		{"one served before all was there", func(in *Input) {
			in.Layout.Members = []Placed{{Name: "m1", Seat: "i1", Host: "a", Zone: "a", Served: true}}
		}, all},
		{"the host of the first is lost", func(in *Input) { in.Layout.Members, in.Hosts[0].Alive = one, false }, all},
		{"no host takes the first", func(in *Input) { in.Want.Seats[0].Zone = "nowhere" }, []string{"i2"}},
		{"the first is deleted meanwhile", func(in *Input) { in.Layout.Members, in.Want.Seats = one, in.Want.Seats[1:] }, []string{"i2"}},
		{"a Multi-AZ DB cluster is made as a whole", func(in *Input) { in.Want.SpreadZones = true }, all},
		{"standbys of an instance are all alike", func(in *Input) { in.Want.Seats = []Seat{{}, {}} }, []string{"", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := newCluster()
			tt.change(&in)
			if got := seatsTaken(Next(in)); !slices.Equal(got, tt.want) {
				t.Errorf("members of the seats %q, not %q", got, tt.want)
			}
		})
	}
}

// TestMembersOfOneDecisionAreSpread: what the decision promised counts as what was
// promised before it.
func TestMembersOfOneDecisionAreSpread(t *testing.T) {
	in := newCluster()
	in.Want.Seats = []Seat{
		{Key: "i1", Limits: member.Limits{MemoryBytes: 1 << 30}}, {Key: "i2", Limits: member.Limits{MemoryBytes: 1 << 30}},
		{Key: "i3", Limits: member.Limits{MemoryBytes: 1 << 30}},
	}
	in.Leader, in.Layout.Next = "m1", 1
	in.Layout.Members = []Placed{{Name: "m1", Seat: "i1", Host: "b", Zone: "b"}}
	in.Hosts[1].Committed = 1 << 30
	in.Hosts[0].Committed = 512 << 20
	out := Next(in)
	var hosts []string
	for _, m := range out.Layout.Members {
		hosts = append(hosts, m.Host)
	}
	// The third would go to a, had a not been given the second just now.
	if want := []string{"b", "a", "b"}; !slices.Equal(hosts, want) {
		t.Errorf("on the hosts %q, not %q", hosts, want)
	}
}

// TestOneDecisionFillsTheEmptierHost: what others were promised still counts.
func TestOneDecisionFillsTheEmptierHost(t *testing.T) {
	in := newCluster()
	in.Want.Seats = append(in.Want.Seats, Seat{Key: "i3"})
	in.Leader, in.Layout.Next = "m1", 1
	in.Layout.Members = []Placed{{Name: "m1", Seat: "i1", Host: "a", Zone: "a"}}
	in.Hosts[0].Committed = 3 << 30
	if out := Next(in); len(out.Layout.Members) != 3 || out.Layout.Members[2].Host != "b" {
		t.Errorf("the third is not on the emptier host: %+v", out.Layout.Members)
	}
}
