package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// TestNewMembersHaveNamesOfTheirOwn: once every part of the home knows them, no two
// databases have members of one name, as Patroni and PostgreSQL see them.
func TestNewMembersHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]string{}
	for n := range 20 {
		in := newCluster()
		in.Want.ID, in.Want.SpreadZones = fmt.Sprintf("db-%026d", n), true
		in.OwnNames = true
		out := Next(in)
		if len(out.Layout.Members) != 2 {
			t.Fatalf("%d members", len(out.Layout.Members))
		}
		for _, m := range out.Layout.Members {
			a := Assign(in.Want, out.Layout, m, 0)
			slot := patroni.SlotName(a.PatroniName())
			if other, taken := seen[slot]; taken || len(slot) > patroni.MaxName {
				t.Errorf("%s has the slot %s, as has %q", a.ID, slot, other)
			}
			seen[slot] = a.ID
		}
	}
	in := newCluster()
	if m := Next(in).Layout.Members[0]; m.OwnName {
		t.Error("a name that some part of the home does not know")
	}
}

// nameless is a database of an older release that follows another one, with a standby:
// m2 leads.
func nameless() Input {
	in := newCluster()
	in.Want.ID, in.Want.Seats, in.Want.SpreadZones = "db-2", []Seat{{}, {}}, true
	in.Want.Upstream = &patroni.Upstream{Host: "10.9.9.9", Port: 5432, Slot: SlotName("db-2")}
	in.Leader, in.OwnNames = "m2", true
	in.Reports, in.Applied, in.Assigned = map[string]member.Report{}, map[string]int64{}, map[string]int64{}
	for i, host := range []string{"a", "b"} {
		m := Placed{Name: fmt.Sprintf("m%d", i+1), Host: host, Zone: host, Address: "10.0.0.1", Port: 15432 + i, RESTPort: 25432 + i, Served: true, Votes: true}
		in.Layout.Members = append(in.Layout.Members, m)
		in.Layout.Next++
		id := member.ID("db-2", m.Name)
		in.Reports[id] = member.Report{Ready: true, InRecovery: true, Streaming: true, Patroni: true, Postgres: true}
		in.Applied[id], in.Assigned[id] = 3, 3
	}
	in.Layout.Created = true
	in.Ways = map[string][]string{"": {in.Layout.Members[1].Listen()}}
	return in
}

func ownNames(l Layout) []string {
	var names []string
	for _, m := range l.Members {
		if m.OwnName {
			names = append(names, m.Name)
		}
	}
	return names
}

// TestMembersOfFollowersAreRenamed: one after the other where they serve, the leader
// last; and nobody whose commits could count.
func TestMembersOfFollowersAreRenamed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Input)
		want   []string
	}{
		{"two serve: the standby first", func(*Input) {}, []string{"m1"}},
		{"the standby was told, and has not taken it over", func(in *Input) {
			in.Layout.Members[0].OwnName, in.Assigned["db-2.m1"] = true, 4
		}, []string{"m1"}},
		{"the standby has its name", func(in *Input) { in.Layout.Members[0].OwnName = true }, []string{"m1", "m2"}},
		{"another setting is on its way to the standby", func(in *Input) {
			in.Layout.Members[0].OwnName, in.Assigned["db-2.m1"] = true, 9
		}, []string{"m1"}},
		{"the standby does not serve: nothing to wait for", func(in *Input) { in.Reports["db-2.m1"] = member.Report{} }, []string{"m1", "m2"}},
		{"the standby's host is lost", func(in *Input) { in.Hosts[0].Alive = false }, []string{"m1", "m2"}},
		{"nobody serves", func(in *Input) { in.Reports, in.Leader = nil, "" }, []string{"m1", "m2"}},
		{"some part of the home does not know such names", func(in *Input) { in.OwnNames = false }, nil},
		{"it follows nobody any more", func(in *Input) { in.Want.Upstream = nil }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := nameless()
			tt.change(&in)
			if got := ownNames(Next(in).Layout); !slices.Equal(got, tt.want) {
				t.Errorf("names of their own: %v, want %v", got, tt.want)
			}
		})
	}
}

// TestRenamingComesToItsEnd: whatever happens meanwhile, all members of a follower have
// names of their own in the end, and all is at rest.
func TestRenamingComesToItsEnd(t *testing.T) {
	p := &player{sim: newSim("a", "b", "c")}
	for _, command := range []string{"want multi-az", "follow", "run"} {
		if err := p.play(strings.Fields(command)); err != nil {
			t.Fatal(err)
		}
	}
	if names := ownNames(p.sim.layout); len(names) != 0 {
		t.Fatalf("before it is known: %v", names)
	}
	p.sim.ownNames = true
	for _, command := range []string{"run", "host b lost", "run", "host b back", "run"} {
		if err := p.play(strings.Fields(command)); err != nil {
			t.Fatal(err)
		}
	}
	if names := ownNames(p.sim.layout); len(names) != len(p.sim.layout.Members) || len(p.sim.layout.Steps) != 0 {
		t.Errorf("names of their own: %v, steps %v", names, p.sim.layout.Steps)
	}
	if err := p.sim.errors(); err != nil {
		t.Error(err)
	}
}
