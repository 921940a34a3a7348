package reconcile

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"howdah/internal/control/plan"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// TestPlacesFollow makes random changes. What is kept up to date must equal what a look at
// everything finds.
func TestPlacesFollow(t *testing.T) {
	b := newBench(t)
	kept := &view.Places{Cache: b.cache}
	random := rand.New(rand.NewPCG(3, 4))
	classes := []string{"db.t3.micro", "db.t3.small", "db.m5.large", "db.unknown"}
	port := 15432
	for round := range 60 {
		var ops []state.Op
		for _, n := range random.Perm(8)[:1+random.IntN(4)] {
			ops = append(ops, b.disturb(random, n, classes, &port)...)
		}
		if random.IntN(10) == 0 {
			ops = append(ops, state.Put(state.Drain("a"), true))
		}
		b.put(ops...)
		got, want := byPort(kept.Hosts()), byPort((&view.Places{Cache: b.cache}).Hosts())
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d:\n%+v, want\n%+v", round, got, want)
		}
	}
	b.put(state.DeletePrefix(state.InstanceRoot), state.DeletePrefix(state.LayoutRoot))
	for _, h := range kept.Hosts() {
		if h.Committed != 0 || len(h.UsedPorts) != 0 {
			t.Errorf("nothing is left, and %s has %d bytes and the ports %v in use", h.Name, h.Committed, h.UsedPorts)
		}
	}
}

// disturb changes something of the n-th database. The first half are instances, the others clusters
// of two.
func (b *bench) disturb(random *rand.Rand, n int, classes []string, port *int) []state.Op {
	id := fmt.Sprintf("db-%d", n)
	layout := plan.Layout{ID: id}
	member := func(name, seat string) {
		*port += 2
		host := []string{"a", "b", "c", "gone"}[random.IntN(4)]
		layout.Members = append(layout.Members, plan.Placed{Name: name, Seat: seat, Host: host, Port: *port, RESTPort: *port + 10000})
	}
	var ops []state.Op
	instance := func(id, cluster string) {
		i := spec.Instance{Cluster: cluster, Class: classes[random.IntN(len(classes))]}
		i.Name, i.ResourceID, i.Deleting = id, id, random.IntN(4) == 0
		op := state.Put(state.Instance(account, region, id), i)
		if random.IntN(5) == 0 {
			op = state.Delete(state.Instance(account, region, id))
		}
		ops = append(ops, op)
	}
	if n < 4 {
		member("m1", "")
		instance(id, "")
	} else {
		for _, seat := range []string{id + "-x", id + "-y"} {
			member(seat, seat)
			instance(seat, id)
		}
	}
	switch random.IntN(4) {
	case 0:
		return ops
	case 1:
		return append(ops, state.Delete(state.Layout(id)))
	}
	return append(ops, state.Put(state.Layout(id), layout))
}

// TestTwoThatChangePlaces: what both take is known however their records changed places.
func TestTwoThatChangePlaces(t *testing.T) {
	b := newBench(t)
	kept := &view.Places{Cache: b.cache}
	put := func(name, id, class string) state.Op {
		i := spec.Instance{Class: class}
		i.Name, i.ResourceID = name, id
		return state.Put(state.Instance(account, region, name), i)
	}
	layout := func(id string) state.Op {
		return state.Put(state.Layout(id), plan.Layout{ID: id, Members: []plan.Placed{{Name: "m1", Host: "a", Port: 1, RESTPort: 2}}})
	}
	b.put(put("x", "db-1", "db.t3.micro"), put("y", "db-2", "db.m5.large"), layout("db-1"), layout("db-2"))
	before := kept.Hosts()
	for range 3 {
		b.put(put("x", "db-2", "db.m5.large"), put("y", "db-1", "db.t3.micro"))
		if now := kept.Hosts(); !reflect.DeepEqual(byPort(now), byPort(before)) || now[0].Committed == 0 {
			t.Fatalf("%+v, want %+v", now, before)
		}
		b.put(put("x", "db-1", "db.t3.micro"), put("y", "db-2", "db.m5.large"))
		kept.Hosts()
	}
}

func byPort(hosts []plan.Host) []plan.Host {
	for n := range hosts {
		hosts[n].UsedPorts = append([]int{}, hosts[n].UsedPorts...)
		slices.Sort(hosts[n].UsedPorts)
	}
	return hosts
}

// TestRoutesAreFollowed checks that the routes of a database are those that exist now.
func TestRoutesAreFollowed(t *testing.T) {
	b := newBench(t)
	w := look(b.cache, b.now)
	for _, step := range []struct {
		ops  []state.Op
		want map[string][]string
	}{
		{nil, map[string][]string{"one": nil}},
		{[]state.Op{b.route("r1", "one"), b.route("r2", "one"), b.route("r3", "two")}, map[string][]string{"one": {"r1", "r2"}, "two": {"r3"}}},
		{[]state.Op{state.Delete(state.Route("r1")), b.route("r3", "two")}, map[string][]string{"one": {"r2"}, "two": {"r3"}}},
		{[]state.Op{state.DeletePrefix(state.RouteRoot)}, map[string][]string{"one": nil, "two": nil}},
	} {
		if len(step.ops) > 0 {
			b.put(step.ops...)
		}
		for database, want := range step.want {
			if got := w.routesOf(database); !slices.Equal(got, want) {
				t.Errorf("%s has %v, want %v", database, got, want)
			}
		}
	}
}

func (b *bench) route(id, database string) state.Op {
	return state.Put(state.Route(id), route.Route{ID: id, Database: database})
}
