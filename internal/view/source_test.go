package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
)

// TestTheSourceOfAClone: it has the members that stay, and is gone once it has no layout.
func TestTheSourceOfAClone(t *testing.T) {
	t.Parallel()
	const id = "db-A"
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	want := plan.Database{ID: "db-B", State: member.Running, Restore: &member.Restore{Live: true, Database: id}}
	see := func(expect *plan.Source, clone plan.Layout) {
		t.Helper()
		if diff := cmp.Diff(expect, Source(cache, want, clone)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	see(&plan.Source{Gone: true}, plan.Layout{})
	if _, err := store.Client.Put(t.Context(), patroni.LeaderKey(id), "db-A.m2"); err != nil {
		t.Fatal(err)
	}
	ops := []state.Op{state.Put(state.Layout(id), plan.Layout{ID: id, Members: []plan.Placed{
		{Name: "m1", Host: "h1"}, {Name: "m2", Host: "h2"}, {Name: "m3", Host: "h3"}, {Name: "m4", Host: "h4", Leaving: true}, {Name: "m5", Host: "h5"},
	}})}
	for name, host := range map[string]string{"m1": "h1", "m2": "h2", "m3": "h3", "m4": "h4"} {
		ops = append(ops, state.Put(state.Report(host, id+"."+name), member.Report{ID: id + "." + name, Host: host, Ready: name != "m1"}),
			state.Put(state.Live(host), member.Liveness{Alive: host != "h3"}))
	}
	etcdtest.Put(t, store, cache, ops...)
	see(&plan.Source{Copies: []plan.Copy{{Host: "h1"}, {Host: "h2", Primary: true, Ready: true}, {Host: "h3"}, {Host: "h5"}}}, plan.Layout{})
	see(nil, plan.Layout{Restored: true})
	see(nil, plan.Layout{Created: true})
	want.Restore.Live = false
	see(nil, plan.Layout{})
	want.Restore = nil
	see(nil, plan.Layout{})
}
