package view

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
)

// Both who decides and who shows get all that the state says of a database.
func TestInput(t *testing.T) {
	const id = "db-A"
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	raw := map[string]string{
		patroni.LeaderKey(id): "db-A.m1", patroni.SyncKey(id): `{"leader":"db-A.m1","sync_standby":"db-A.m2","quorum":0}`, patroni.InitializeKey(id): "",
		patroni.MemberKey(id, "db-A.m1"): `{"role":"primary","state":"running","pending_restart":true,"xlog_location":77,"tags":{"generation":3,"shared":1}}`,
		patroni.MemberKey(id, "db-A.m2"): `{"role":"replica","state":"creating replica","pending_restart":true,"tags":{"generation":2}}`,
		patroni.ConfigKey(id):            "{}",
	}
	for key, value := range raw {
		if _, err := store.Client.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	etcdtest.Put(t, store, cache,
		state.Put(state.Report("h1", id+".m1"), member.Report{ID: id + ".m1", Host: "h1", Ready: true}),
		state.Put(state.Assign("h1", id+".m1"), member.Assignment{Generation: 4}),
		state.Put(state.Result(id+"/restart/1"), member.Result{ID: id + "/restart/1", Done: true}),
		state.Put(state.Result("db-AB/restart/1"), member.Result{ID: "db-AB/restart/1"}))
	in := input(cache, id, plan.Layout{Members: []plan.Placed{{Name: "m1", Host: "h1"}, {Name: "m2", Host: "h2"}}})
	m1, m2 := id+".m1", id+".m2"
	for what, ok := range map[string]bool{
		"leader":                 in.Leader == "m1",
		"standbys in sync":       in.Sync.Leader == "m1" && len(in.Sync.Standbys) == 1 && in.Sync.Standbys[0] == "m2",
		"nobody is born":         in.Unborn,
		"reports":                in.Reports[m1].Ready && len(in.Reports) == 1,
		"assigned":               in.Assigned[m1] == 4 && len(in.Assigned) == 1,
		"applied":                in.Applied[m1] == 3 && in.Applied[m2] == 2,
		"positions":              in.Positions[m1] == 77,
		"making":                 !in.Making[m1] && in.Making[m2],
		"behind":                 in.Behind[m1] && !in.Behind[m2],
		"waiting for a restart":  in.PendingRestart[m1] && in.PendingRestart[m2],
		"growing":                !in.Growing[m1],
		"results of its own":     len(in.Results) == 1 && in.Results[id+"/restart/1"].Done,
		"what is wanted, and is": in.Want.ID == id && len(in.Layout.Members) == 2,
	} {
		if !ok {
			t.Errorf("%s: %+v", what, in)
		}
	}
	// A primary of which Patroni says that it waits, and that leads no more, may be a standby by now.
	if _, err := store.Client.Txn(t.Context()).Then(clientv3.OpPut(patroni.LeaderKey(id), "db-A.m2")).Commit(); err != nil {
		t.Fatal(err)
	}
	etcdtest.Put(t, store, cache)
	if in := input(cache, id, in.Layout); in.PendingRestart[m1] || !in.PendingRestart[m2] || in.Leader != "m2" {
		t.Errorf("%+v", in.PendingRestart)
	}
	if in := input(cache, "db-Z", plan.Layout{}); in.Leader != "" || in.Unborn || len(in.Results) > 0 {
		t.Errorf("of nothing: %+v", in)
	}
}

// input is that of an instance of which nothing is known but its id.
func input(cache *state.Cache, id string, layout plan.Layout) plan.Input {
	d := &Database{Want: plan.Database{ID: id}, Specs: []state.Record[*spec.Instance]{{Value: &spec.Instance{}}}}
	return Nothing(cache).Basis(d, layout, nil).Input(time.Time{}, plan.Policy{})
}
