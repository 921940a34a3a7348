package member

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTopologySettings(t *testing.T) {
	a := Assignment{ID: "db-1.m2", Name: "m2"}
	if got := a.TopologySettings(); got != nil {
		t.Errorf("of no cluster: %v", got)
	}
	a.Topology = &Topology{Kind: MultiAZCluster, Members: []ClusterSeat{
		{Name: "m1", ID: "db-A", Instance: "it's-1", Endpoint: "127.9.2.1", Port: 5432, Address: "127.9.1.1", Listen: 15001, Application: "db-1.m1"},
	}}
	want := map[string]string{
		"howdah.cluster":  "multi-az",
		"howdah.topology": `{"self":"m2","members":[{"name":"m1","id":"db-A","instance":"it's-1","endpoint":"127.9.2.1","port":5432,"address":"127.9.1.1","listen":15001,"application":"db-1.m1"}]}`,
	}
	if diff := cmp.Diff(want, a.TopologySettings()); diff != "" {
		t.Error(diff)
	}
}
