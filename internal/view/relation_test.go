package view

import (
	"testing"

	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// A replica of a replica is rewound from where the data come from in the end; one that
// follows that itself, or whose source was promoted, from what it follows.
func TestOriginOfAChainOfReplicas(t *testing.T) {
	common := func(id string, port int) spec.Common {
		return spec.Common{ResourceID: id, Address: id + ".addr", Port: port}
	}
	replica := func(id, source string, port int) state.Record[*spec.Instance] {
		return state.Record[*spec.Instance]{Value: &spec.Instance{Common: common(id, port), Source: source}}
	}
	top := patroni.Address{Host: "db-1.addr", Port: 5431}
	cases := []struct {
		name    string
		source  string // of db-2
		change  func(*spec.Instance)
		origins map[string]patroni.Address // without those that follow it themselves
	}{
		{"of an instance", "db-1", nil, map[string]patroni.Address{"db-3": top, "db-4": top}},
		{"of a cluster", "cluster-1", nil, map[string]patroni.Address{"db-3": {Host: "cluster-1.addr", Port: 5439}, "db-4": {Host: "cluster-1.addr", Port: 5439}}},
		{"the first was promoted", "db-1", func(i *spec.Instance) { i.Promoted = true },
			map[string]patroni.Address{"db-4": {Host: "db-2.addr", Port: 5432}}},
		{"the first is being deleted", "db-1", func(i *spec.Instance) { i.Deleting = true },
			map[string]patroni.Address{"db-4": {Host: "db-2.addr", Port: 5432}}},
		{"its source is not known", "db-9", nil, map[string]patroni.Address{"db-4": {Host: "db-2.addr", Port: 5432}}},
		{"they follow each other, which nothing makes", "db-2", nil, map[string]patroni.Address{"db-4": {Host: "db-2.addr", Port: 5432}}},
	}
	for _, c := range cases {
		first := replica("db-2", c.source, 5432)
		if c.change != nil {
			c.change(first.Value)
		}
		instances := []state.Record[*spec.Instance]{
			replica("db-1", "", 5431), first, replica("db-3", "db-2", 5433), replica("db-4", "db-3", 5434),
		}
		clusters := []state.Record[spec.Cluster]{{Value: spec.Cluster{Common: common("cluster-1", 5439)}}}
		links := relations(instances, clusters)
		for _, id := range []string{"db-3", "db-4"} {
			var got patroni.Address
			if o := links[id].Upstream.Origin; o != nil {
				got = *o
			}
			if got != c.origins[id] {
				t.Errorf("%s: %s comes from %+v, want %+v", c.name, id, got, c.origins[id])
			}
		}
		if links["db-4"].Upstream.Host != "db-3.addr" {
			t.Errorf("%s: db-4 follows %+v", c.name, links["db-4"].Upstream)
		}
	}
}
