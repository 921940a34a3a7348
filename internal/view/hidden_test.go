package view

import (
	"slices"
	"testing"

	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/model/zone"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
)

// A hidden instance is a database like others, but users do not see it, and no endpoint leads to it.
// Its certificates name the address that it is about to have.
func TestAHiddenInstance(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	scope := spec.Scope{Account: "111111111111", Region: "us-east-1"}
	instance := func(name, id, address string) spec.Instance {
		return spec.Instance{Common: spec.Common{Scope: scope, Name: name, ResourceID: id, Address: address, Port: 5432}, Class: "db.t3.micro"}
	}
	put := func(i spec.Instance) state.Op {
		return state.Put(state.Instance(scope.Account, scope.Region, i.Name), i)
	}
	seen, hidden := instance("orders", "db-1", "10.0.0.1"), instance("orders-rewind", "db-2", "10.0.0.2")
	hidden.MadeBy, hidden.Expects = "op", "10.0.0.1"
	etcdtest.Put(t, store, cache, put(seen), put(hidden))
	records := &Records{Cache: cache}
	a := records.Made().Of(scope.Account)
	if len(a.Shown) != 1 || len(a.In(scope)) != 1 || len(a.Instances) != 2 {
		t.Errorf("%d of %d are shown", len(a.Shown), len(a.Instances))
	}
	if _, found := a.Named(scope, "orders-rewind"); found {
		t.Error("it is found by its name")
	}
	w, _ := Nothing(cache).After(records.Made())
	d := w.Database("db-2")
	layout := plan.Layout{Members: []plan.Placed{{Name: "m1", Host: "a", Address: "127.0.0.1", Port: 1}}}
	if d == nil || !d.Want.Hidden || !slices.Equal(d.Want.ServerIPs, []string{"10.0.0.1", "10.0.0.2"}) || !slices.Equal(d.Addresses(), []string{"10.0.0.2"}) {
		t.Fatalf("%+v", d)
	}
	if routes := w.Basis(d, layout, nil).Routes(layout); len(routes) > 0 {
		t.Errorf("it has the routes %+v", routes)
	}
	if routes := w.Basis(w.Database("db-1"), layout, nil).Routes(layout); len(routes) != 1 {
		t.Errorf("the other one has the routes %+v", routes)
	}
}

// The certificates of a hidden instance also have the name of the one whose place it is about to take.
// In another zone they have other names, and without one they have none.
func TestNamesOfAHiddenInstance(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	scope := spec.Scope{Account: "111111111111", Region: "us-east-1"}
	seen := spec.Instance{Common: spec.Common{Scope: scope, Name: "orders", ResourceID: "db-1", Address: "10.0.0.1", Port: 5432}, Class: "db.t3.micro"}
	hidden := seen
	hidden.Name, hidden.ResourceID, hidden.Address, hidden.MadeBy, hidden.Expects = "orders-rewind", "db-2", "10.0.0.2", "op", "10.0.0.1"
	for _, i := range []spec.Instance{seen, hidden} {
		etcdtest.Put(t, store, cache, state.Put(state.Instance(scope.Account, scope.Region, i.Name), i))
	}
	records := &Records{Cache: cache}
	w := Nothing(cache)
	for _, z := range []zone.Zone{"", "a.test", "b.test", ""} {
		if z == "" {
			etcdtest.Put(t, store, cache, state.Delete(state.DNSZone()))
		} else {
			etcdtest.Put(t, store, cache, state.Put(state.DNSZone(), zone.Setting{Zone: z}))
		}
		w, _ = w.After(records.Made())
		var own, both []string
		if z != "" {
			own = []string{nameOf(t, z, seen)}
			both = []string{own[0], nameOf(t, z, hidden)}
			slices.Sort(both)
		}
		if got := w.Database("db-1").Want.ServerNames; !slices.Equal(got, own) {
			t.Errorf("in %q: %v, want %v", z, got, own)
		}
		if got := w.Database("db-2").Want.ServerNames; !slices.Equal(got, both) {
			t.Errorf("in %q the hidden one has %v, want %v", z, got, both)
		}
	}
}

// Drivers hear of the instances of a cluster by their names, or by their addresses where there is no zone.
func TestNamesOfSeats(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	scope := spec.Scope{Account: "111111111111", Region: "us-east-1"}
	cluster := spec.Cluster{Common: spec.Common{Scope: scope, Name: "shop", ResourceID: "cluster-1", Address: "10.0.0.1", Port: 5432}}
	one := spec.Instance{Common: spec.Common{Scope: scope, Name: "shop-1", ResourceID: "db-1", Address: "10.0.0.2", Port: 5432}, Class: "db.t3.micro", Cluster: "cluster-1"}
	etcdtest.Put(t, store, cache, state.Put(state.Cluster(scope.Account, scope.Region, cluster.Name), cluster))
	etcdtest.Put(t, store, cache, state.Put(state.Instance(scope.Account, scope.Region, one.Name), one))
	records, w := &Records{Cache: cache}, Nothing(cache)
	for _, z := range []zone.Zone{"", "a.test", ""} {
		want := "10.0.0.2"
		etcdtest.Put(t, store, cache, state.Put(state.DNSZone(), zone.Setting{Zone: z}))
		if z != "" {
			want = nameOf(t, z, one)
		}
		w, _ = w.After(records.Made())
		if seats := w.Database("cluster-1").Want.Seats; len(seats) != 1 || seats[0].Endpoint != want {
			t.Errorf("in %q: %+v, want the endpoint %s", z, seats, want)
		}
	}
}

func nameOf(t *testing.T, z zone.Zone, i spec.Instance) string {
	t.Helper()
	name, err := z.Name(zone.Instance, i.Name, i.Account, i.Region)
	if err != nil {
		t.Fatal(err)
	}
	return name
}
