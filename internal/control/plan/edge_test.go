package plan

import "testing"

// Among equal hosts a member goes to one with an edge: that comes after its zone and its
// own host, which are about data, and before what is free.
func TestAMemberGoesWhereAnEdgeRuns(t *testing.T) {
	host := func(name, zone string, committed int64, edgeless bool) Host {
		return Host{Name: name, Zone: zone, Alive: true, Majors: []int{15}, CPUs: 8, Memory: 1 << 34, Committed: committed, Edgeless: edgeless}
	}
	dead := host("a", "za", 0, false)
	dead.Alive = false
	for _, c := range []struct {
		name  string
		hosts []Host
		want  string
	}{
		{"equal ones", []Host{host("a", "za", 0, true), host("b", "zb", 0, false)}, "b"},
		{"more is free on the other one", []Host{host("a", "za", 0, true), host("b", "zb", 1<<30, false)}, "b"},
		{"none has one", []Host{host("a", "za", 1<<30, true), host("b", "zb", 0, true)}, "b"},
		{"all have one", []Host{host("a", "za", 0, false), host("b", "zb", 0, false)}, "a"},
		{"the one with an edge is lost", []Host{dead, host("b", "zb", 0, true)}, "b"},
		{"it is in the zone of the other member", []Host{host("a", "zc", 0, false), host("b", "zb", 0, true)}, "b"},
	} {
		in := Input{Want: Database{ID: "db-1", Major: 15, Seats: []Seat{{Key: "s"}}}, Hosts: c.hosts,
			Layout: Layout{Members: []Placed{{Name: "m1", Host: "c", Zone: "zc"}}}}
		m, err := begin(in).place(in.Want.Seats[0])
		if err != nil || m.Host != c.want {
			t.Errorf("%s: placed on %q, %v, want %s", c.name, m.Host, err, c.want)
		}
	}
}

// Among standbys that stay and have the same tier, that with an edge takes over.
func TestAStandbyWithAnEdgeTakesOver(t *testing.T) {
	for _, c := range []struct {
		name                 string
		edgelessA, edgelessB bool
		going                Going
		tierB                int
		want                 bool // b is preferred
	}{
		{name: "both have one"},
		{name: "neither has one", edgelessA: true, edgelessB: true},
		{name: "only the second", edgelessA: true, want: true},
		{name: "only the first", edgelessB: true},
		{name: "the second has a later tier", edgelessA: true, tierB: 1},
		{name: "the second is to leave", edgelessA: true, going: Surplus},
	} {
		in := Input{Want: Database{ID: "db-1", Seats: []Seat{{Key: "a"}, {Key: "b", Tier: c.tierB}}},
			Hosts: []Host{{Name: "a", Edgeless: c.edgelessA}, {Name: "b", Edgeless: c.edgelessB}}}
		a, b := &Placed{Name: "m1", Seat: "a", Host: "a"}, &Placed{Name: "m2", Seat: "b", Host: "b", Going: c.going}
		if got := begin(in).preferred(b, a); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
