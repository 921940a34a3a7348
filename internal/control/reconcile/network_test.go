package reconcile

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/control/plan"
	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/seen"
	"howdah/internal/model/member"
	"howdah/internal/model/network"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// group writes a security group that lets these networks in to a port.
func (b *bench) group(id string, port int, sources ...string) {
	b.Helper()
	scope := spec.Scope{Account: account, Region: region}
	g := network.Group{Scope: scope, ID: id, Name: id}
	for _, s := range sources {
		g.Rules = append(g.Rules, network.Rule{Protocol: network.TCP, From: port, To: port, Source: netip.MustParsePrefix(s)})
	}
	b.put(state.Put(state.SecurityGroup(account, region, id), g))
}

// allowed returns what the members and the edges were told.
func (b *bench) allowed() (members, endpoints []string) {
	b.Helper()
	b.settle()
	for _, a := range state.LoadAll[member.Assignment](b.cache, state.AssignRoot) {
		if a.Value.Scope == dbID {
			members = a.Value.Allow
		}
	}
	r, err := state.Load[route.Route](b.cache, state.Route(dbID))
	if err != nil {
		b.Fatal(err)
	}
	return members, r.Value.Allow
}

func (b *bench) tells(wantMembers, wantEndpoints []string) {
	b.Helper()
	members, endpoints := b.allowed()
	if diff := cmp.Diff(wantMembers, members); diff != "" {
		b.Errorf("members (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantEndpoints, endpoints); diff != "" {
		b.Errorf("endpoints (-want +got):\n%s", diff)
	}
}

// A change of a group reaches the members and the endpoint of its databases.
func TestSecurityGroupsReachMembersAndEndpoints(t *testing.T) {
	b := made(t, false)
	b.tells(nil, nil)
	i := b.instance(false)
	i.SecurityGroups = []string{"sg-1", "sg-2"}
	b.want(i)
	b.tells([]string{}, []string{})
	b.group("sg-1", 5432, "10.1.0.0/16")
	b.group("sg-2", 5433, "0.0.0.0/0")
	b.tells([]string{"10.1.0.0/16"}, []string{"10.1.0.0/16"})
	b.group("sg-2", 5432, "10.0.0.0/16", "10.2.0.0/16")
	b.tells([]string{"10.0.0.0/15", "10.2.0.0/16"}, []string{"10.0.0.0/15", "10.2.0.0/16"})
	b.group("sg-2", 5432, "0.0.0.0/0")
	b.tells(nil, nil)
}

// A change of a subnet group reaches the databases that are in it, and only these.
func TestSubnetGroupsDecideZones(t *testing.T) {
	b := newBench(t)
	scope := spec.Scope{Account: account, Region: region}
	group := func(scope spec.Scope, zones ...string) {
		g := spec.SubnetGroup{Scope: scope, Name: "nets"}
		for _, z := range zones {
			g.Subnets = append(g.Subnets, spec.Subnet{ID: spec.SubnetOf(z), Zone: z})
		}
		b.put(state.Put(state.SubnetGroup(scope.Account, scope.Region, g.Name), g))
	}
	group(scope, "b", "c")
	group(spec.Scope{Account: account, Region: "elsewhere"}, "a")
	i, other := b.instance(true), b.instance(false)
	i.SubnetGroup = "nets"
	b.want(i)
	other.Name, other.ResourceID, other.Address = "other", "db-2", "127.9.0.2"
	b.want(other)
	first := lookAgain(nil, b.cache, b.now)
	kept := first.database("db-2")
	zones := func(w *world, want []string) {
		t.Helper()
		if diff := cmp.Diff(want, w.database(dbID).Want.Zones); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	zones(first, []string{"b", "c"})
	if len(kept.Want.Zones) > 0 {
		t.Errorf("a database in no group is kept to %q", kept.Want.Zones)
	}
	if id, ok := databaseOf(state.SubnetGroup(account, region, "nets")); id != "" || !ok {
		t.Errorf("a group wakes %q, %v", id, ok)
	}
	group(scope, "c", "a")
	second := lookAgain(first, b.cache, b.now)
	zones(second, []string{"a", "c"})
	if d := second.database(dbID); !d.changed || second.database("db-2") != kept || kept.changed {
		t.Errorf("changed: %v; the other one: %v", d.changed, kept.changed)
	}
	zones(lookAgain(second, b.cache, b.now), []string{"a", "c"})
	b.settle()
	var placed []string
	for _, m := range b.layout().Members {
		placed = append(placed, m.Zone)
	}
	if diff := cmp.Diff([]string{"a", "c"}, sorted(placed)); diff != "" {
		t.Errorf("members are in (-want +got)\n%s", diff)
	}
	// Nobody moves because the group changed.
	group(scope, "b")
	b.settle()
	for _, m := range b.layout().Members {
		if m.Zone == "b" || m.Leaving {
			t.Errorf("%+v", m)
		}
	}
}

// If an edge stands between clients and members, members let the edge in: it has already checked
// the client.
func TestMembersLetEdgesIn(t *testing.T) {
	b := made(t, false)
	i := b.instance(false)
	i.SecurityGroups = []string{"sg-1"}
	b.want(i)
	b.group("sg-1", 5432, "10.1.0.0/16")
	b.put(state.Put(state.Edge("visible"), seen.Status{Name: "visible", Info: endpoint.Info{ClientAddressVisible: true}}))
	b.tells([]string{"10.1.0.0/16"}, []string{"10.1.0.0/16"})
	b.put(state.Put(state.Between("proxy"), seen.Between{Addresses: []string{"10.7.0.1", "fd00::1", "nonsense"}}))
	b.tells([]string{"10.1.0.0/16", "10.7.0.1/32", "127.9.0.1/32"}, []string{"10.1.0.0/16"})
}

// The hosts of a database that follows another one replicate through its endpoint.
func TestFollowersPass(t *testing.T) {
	b := made(t, false)
	i := b.instance(false)
	i.SecurityGroups = []string{"sg-1"}
	b.want(i)
	b.group("sg-1", 5432, "10.1.0.0/16")
	replica := b.instance(false)
	replica.Name, replica.ResourceID, replica.Address, replica.Source = "replica", "db-2", "127.9.0.2", dbID
	b.put(state.Put(state.Instance(account, region, "replica"), replica))
	w := b.look()
	d := w.database(dbID)
	for _, tt := range []struct{ address, want string }{{"127.0.0.3", "127.0.0.1/32"}, {"10.5.0.7", "10.5.0.7/32"}} {
		b.put(state.Put(state.Layout("db-2"), plan.Layout{ID: "db-2", Members: []plan.Placed{{Name: "m1", Address: tt.address}}}))
		if diff := cmp.Diff([]string{"10.1.0.0/16", tt.want}, sorted(passing(w, d))); diff != "" {
			t.Errorf("%s: %s", tt.address, diff)
		}
	}
	if got := passing(w, w.database("db-2")); got != nil {
		t.Errorf("the replica, which everyone may use, lets in %v", got)
	}
}

// passing returns the networks that a database's endpoint lets through.
func passing(w *world, d *database) []string { return w.basis(d).Routes(plan.Layout{})[0].Allow }

func sorted(all []string) []string {
	if len(all) == 2 && all[0] > all[1] {
		all[0], all[1] = all[1], all[0]
	}
	return all
}
