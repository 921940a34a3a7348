package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/model/member"
	"howdah/internal/model/spec"
)

// The members of a cluster are told of each other: of both that an instance has for a while, and of
// none that leaves or has no instance any more.
func TestAssignTellsWhoBelongsToACluster(t *testing.T) {
	instance := func(id, name, address string) spec.Instance {
		return spec.Instance{Common: spec.Common{ResourceID: id, Name: name, Address: address, Port: 6432}, Cluster: "cluster-1"}
	}
	moved := instance("db-B", "shop-2", "127.9.2.9")
	moved.Former = []string{"127.9.2.2"}
	gone := instance("db-C", "shop-3", "127.9.2.3")
	gone.Deleting = true
	c := spec.Cluster{Common: spec.Common{ResourceID: "cluster-1", Engine: spec.Aurora, Port: 6432}}
	layout := Layout{Members: []Placed{
		{Name: "m1", Seat: "db-A", Address: "127.9.1.1", Port: 15001, OwnName: true},
		{Name: "m2", Seat: "db-B", Address: "127.9.1.2", Port: 15002, Going: Replaced},
		{Name: "m3", Seat: "db-C", Address: "127.9.1.3", Port: 15003},
		{Name: "m4", Seat: "db-B", Address: "127.9.1.4", Port: 15004, OwnName: true},
		{Name: "m5", Seat: "db-A", Address: "127.9.1.5", Port: 15005, Leaving: true},
	}}
	want := ForCluster(c, []spec.Instance{instance("db-A", "shop-1", "127.9.2.1"), moved, gone}, Links{})
	got := Assign(want, layout, layout.Members[0], 0).Topology
	expected := &member.Topology{Kind: member.AuroraCluster, Members: []member.ClusterSeat{
		{Name: "m1", ID: "db-A", Instance: "shop-1", Endpoint: "127.9.2.1", Port: 6432, Address: "127.9.1.1", Listen: 15001, Application: "cluster-1.m1"},
		{Name: "m2", ID: "db-B", Instance: "shop-2", Endpoint: "127.9.2.2", Port: 6432, Address: "127.9.1.2", Listen: 15002, Application: "m2"},
		{Name: "m4", ID: "db-B", Instance: "shop-2", Endpoint: "127.9.2.2", Port: 6432, Address: "127.9.1.4", Listen: 15004, Application: "cluster-1.m4"},
	}}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Error(diff)
	}

	c.Engine = spec.Postgres
	if got := Assign(ForCluster(c, nil, Links{}), layout, layout.Members[0], 0).Topology; got == nil || got.Kind != member.MultiAZCluster {
		t.Errorf("a Multi-AZ DB cluster: %+v", got)
	}
	for _, multiAZ := range []bool{false, true} {
		i := instance("db-A", "orders", "127.9.2.1")
		i.Cluster, i.MultiAZ = "", multiAZ
		if got := Assign(ForInstance(i, Links{}), layout, layout.Members[0], 0); got.Topology != nil || got.TopologySettings() != nil {
			t.Errorf("an instance: %+v", got.Topology)
		}
	}
}
