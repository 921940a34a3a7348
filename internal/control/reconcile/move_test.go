package reconcile

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// listens returns the address of an endpoint's route.
func (b *bench) listens(id string) string {
	b.Helper()
	r, err := state.Load[route.Route](b.cache, state.Route(id))
	if err != nil {
		b.Fatal(err)
	}
	return r.Value.Listen
}

// acts makes an agent say that it acted on an assignment, and which one its certificate follows.
func (b *bench) acts(host, name string, change func(told int64, r *member.Report)) {
	b.Helper()
	key := state.Report(host, member.ID(dbID, name))
	r, err := state.Load[member.Report](b.cache, key)
	if err != nil {
		b.Fatal(err)
	}
	change(b.assigned(host, name).Value.Generation, &r.Value)
	b.put(state.Put(key, r.Value))
}

func (b *bench) steps() {
	b.Helper()
	for range 3 {
		if err := b.step(); err != nil {
			b.Fatal(err)
		}
	}
}

// moving returns a bench with an instance that has a standby and was just given another address.
func moving(t *testing.T) *bench {
	b := made(t, true)
	i := b.instance(true)
	i.Address, i.Former = "127.10.0.1", []string{"127.9.0.1"}
	b.want(i)
	return b
}

func (b *bench) hostsOf() (hosts [2]string) {
	for n, m := range b.layout().Members {
		hosts[n] = m.Host
	}
	return hosts
}

// An endpoint moves once the certificates of all members name its new address. It does not move if
// an agent only tried.
func TestAnEndpointMovesAfterItsCertificates(t *testing.T) {
	b := moving(t)
	hosts := b.hostsOf()
	b.steps()
	if got := b.listens(dbID); got != "127.9.0.1:5432" {
		t.Fatalf("before any agent acted: %s", got)
	}
	both := []string{"127.10.0.1", "127.9.0.1"}
	for n, name := range []string{"m1", "m2"} {
		ips := b.assigned(hosts[n], name).Value.ServerIPs
		if diff := cmp.Diff(both, ips[len(ips)-2:]); diff != "" {
			t.Errorf("%s: addresses of its certificate (-want +got)\n%s", name, diff)
		}
	}
	renewed := func(told int64, r *member.Report) { r.Generation, r.Rendered = told, told }
	b.acts(hosts[0], "m1", renewed)
	b.acts(hosts[1], "m2", func(told int64, r *member.Report) { r.Generation, r.Rendered = told, told-1 })
	b.steps()
	if got := b.listens(dbID); got != "127.9.0.1:5432" {
		t.Fatalf("although the standby has no certificate yet: %s", got)
	}
	b.acts(hosts[1], "m2", renewed)
	b.steps()
	if got := b.listens(dbID); got != "127.10.0.1:5432" {
		t.Fatalf("with all certificates: %s", got)
	}
	// Whatever is later asked of the members, the endpoint stays there.
	b.acts(hosts[0], "m1", func(told int64, r *member.Report) { r.Generation, r.Rendered = told, 1 })
	b.steps()
	if got := b.listens(dbID); got != "127.10.0.1:5432" {
		t.Errorf("afterwards: %s", got)
	}
}

// Neither a lost host nor an older agent keeps an endpoint where it was. If a control plane dies,
// another one goes on.
func TestAnEndpointMovesWithoutALostHost(t *testing.T) {
	b := moving(t)
	hosts := b.hostsOf()
	b.lose(hosts[1], true)
	b.steps()
	b.r = b.reconciler()
	b.cache = b.r.Cache
	b.acts(hosts[0], "m1", func(told int64, r *member.Report) { r.Generation, r.Rendered = told, 0 })
	b.steps()
	if got := b.listens(dbID); got != "127.10.0.1:5432" {
		t.Errorf("at %s", got)
	}
}

// A port changes at once, also during a move.
func TestAPortChangesOnTheWay(t *testing.T) {
	b := moving(t)
	b.steps()
	i := b.instance(true)
	i.Address, i.Former, i.Port = "127.10.0.1", []string{"127.9.0.1"}, 6000
	b.want(i)
	b.steps()
	if got := b.listens(dbID); got != "127.9.0.1:6000" {
		t.Errorf("at %s", got)
	}
}

// An endpoint that nobody serves yet begins at its new address. One that went back before it had
// moved stays.
func TestAnEndpointThatNeedNotMove(t *testing.T) {
	b := newBench(t)
	i := b.instance(false)
	i.Former = []string{"127.10.0.1"}
	b.want(i)
	b.settle()
	if got := b.listens(dbID); got != "127.9.0.1:5432" {
		t.Errorf("at %s", got)
	}
}

// Followers use the address that is certainly served.
func TestFollowersOfAMovingSource(t *testing.T) {
	b := moving(t)
	replica := b.instance(false)
	replica.Name, replica.ResourceID, replica.Address, replica.Source = "replica", "db-2", "127.9.0.2", dbID
	b.put(state.Put(state.Instance(account, region, "replica"), replica))
	if got := b.look().database("db-2").Want.Upstream.Host; got != "127.9.0.1" {
		t.Errorf("while it moves: %s", got)
	}
	i := b.instance(true)
	i.Address = "127.10.0.1"
	b.want(i)
	if got := b.look().database("db-2").Want.Upstream.Host; got != "127.10.0.1" {
		t.Errorf("afterwards: %s", got)
	}
}

// A database that is deleted during a move gives back all of its addresses.
func TestADeletedDatabaseGivesAllAddressesBack(t *testing.T) {
	b := moving(t)
	b.put(state.Put(state.Address("127.9.0.1"), dbID), state.Put(state.Address("127.10.0.1"), dbID), state.Put(state.Address("127.9.0.9"), "db-other"))
	i := b.instance(true)
	i.Address, i.Former, i.Deleting = "127.10.0.1", []string{"127.9.0.1"}, true
	b.want(i)
	b.settle()
	if left := b.cache.Keys(state.AddressRoot); !slices.Equal(left, []string{state.Address("127.9.0.9")}) {
		t.Errorf("left are %q", left)
	}
}

// All endpoints of a cluster move alike, and its deleted parts give all addresses back.
func TestEndpointsOfAClusterMove(t *testing.T) {
	b := newBench(t)
	scope := spec.Scope{Account: account, Region: region}
	cluster := spec.Cluster{
		Common:        spec.Common{Scope: scope, Name: "c", ResourceID: "cl-1", Engine: spec.Aurora, Major: 15, Port: 5432, Address: "127.10.0.1", Former: []string{"127.9.0.1"}},
		ReaderAddress: "127.10.0.2", ReaderFormer: []string{"127.9.0.2"},
	}
	instance := spec.Instance{
		Common: spec.Common{Scope: scope, Name: "w", ResourceID: "db-w", Created: b.now, Engine: spec.Aurora, Major: 15, Address: "127.10.0.3", Former: []string{"127.9.0.3"}},
		Class:  "db.t3.micro", Cluster: "cl-1",
	}
	custom := spec.Endpoint{Scope: scope, Name: "e", ResourceID: "ep-1", Cluster: "cl-1", Type: "ANY", Address: "127.10.0.4", Former: []string{"127.9.0.4"}}
	b.put(state.Put(state.Cluster(account, region, "c"), cluster), state.Put(state.Instance(account, region, "w"), instance),
		state.Put(state.Endpoint(account, region, "e"), custom))
	for id, listen := range map[string]string{
		route.Writer("cl-1"): "127.9.0.1:5432", route.Reader("cl-1"): "127.9.0.2:5432", "db-w": "127.9.0.3:5432", "ep-1": "127.10.0.4:5432",
	} {
		b.put(state.Put(state.Route(id), route.Route{ID: id, Database: "cl-1", Listen: listen}))
	}
	layout := plan.Layout{ID: "cl-1", Members: []plan.Placed{{Name: "m1", Seat: "db-w", Host: "a", Address: "10.0.0.1", Port: 1}}}
	id := member.ID("cl-1", "m1")
	look := func() map[string]string {
		w := b.look()
		d := w.database("cl-1")
		d.layout.Value = layout
		d.assigned = view.Assigned(b.cache, "cl-1", layout)
		got := map[string]string{}
		for _, r := range w.basis(d).Routes(layout) {
			got[r.ID] = r.Listen
		}
		return got
	}
	ips := []string{"127.9.0.1"}
	assign := func(generation int64) {
		b.put(state.Put(state.Assign("a", id), member.Assignment{ID: id, Generation: generation, Want: member.Running, ServerIPs: ips}))
	}
	assign(1)
	before := map[string]string{
		"cl-1-writer": "127.9.0.1:5432", "cl-1-reader": "127.9.0.2:5432", "db-w": "127.9.0.3:5432", "ep-1": "127.10.0.4:5432",
	}
	if diff := cmp.Diff(before, look()); diff != "" {
		t.Errorf("before (-want +got)\n%s", diff)
	}
	w := b.look()
	ips = w.database("cl-1").Want.ServerIPs
	if len(ips) != 8 {
		t.Errorf("addresses of the certificate: %q", ips)
	}
	assign(2)
	b.put(state.Put(state.Report("a", id), member.Report{ID: id, Host: "a", Generation: 2, Rendered: 2}))
	after := map[string]string{
		"cl-1-writer": "127.10.0.1:5432", "cl-1-reader": "127.10.0.2:5432", "db-w": "127.10.0.3:5432", "ep-1": "127.10.0.4:5432",
	}
	if diff := cmp.Diff(after, look()); diff != "" {
		t.Errorf("after (-want +got)\n%s", diff)
	}

	// The end of the cluster is that of the custom endpoints which it kept until its final snapshot.
	b.put(state.Put(state.Address("127.9.0.4"), "ep-1"), state.Put(state.Address("127.10.0.4"), "ep-1"))
	w = b.look()
	ops, err := b.r.farewell(w, w.database("cl-1"))
	if err != nil {
		t.Fatal(err)
	}
	b.put(ops...)
	if left := slices.Concat(b.cache.Keys(state.EndpointRoot), b.cache.Keys(state.AddressRoot)); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// An endpoint has moved when its route and all running edges are at the new address.
func TestMoved(t *testing.T) {
	b := newBench(t)
	const id, address = "db-7", "127.10.0.1"
	for _, step := range []struct {
		name string
		ops  []state.Op
		want bool
	}{
		{"without a route", nil, false},
		{"a route at the old address", []state.Op{state.Put(state.Route(id), route.Route{ID: id, Listen: "127.9.0.1:5432"})}, false},
		{"a route that is nonsense", []state.Op{state.Put(state.Route(id), route.Route{ID: id, Listen: "nonsense"})}, false},
		{"a route at the new one", []state.Op{state.Put(state.Route(id), route.Route{ID: id, Listen: address + ":5432"})}, true},
		{
			"a running edge at the old one",
			[]state.Op{state.Put(state.Runs("edge"), true), state.Put(state.Way(id, "edge"), route.Way{Route: id, Edge: "edge", Listen: "127.9.0.1:5432"})}, false,
		},
		{"it ended", []state.Op{state.Delete(state.Runs("edge"))}, true},
		{
			"it is there",
			[]state.Op{state.Put(state.Runs("edge"), true), state.Put(state.Way(id, "edge"), route.Way{Route: id, Edge: "edge", Listen: address + ":5432"})}, true,
		},
	} {
		if len(step.ops) > 0 {
			b.put(step.ops...)
		}
		if got := view.Moved(b.cache, id, address); got != step.want {
			t.Errorf("%s: %v", step.name, got)
		}
	}
}
