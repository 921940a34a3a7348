package server

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// TestLooksFollow: a look that takes over what did not change is the one that is taken
// anew, whatever users do; one that a call has goes on as it was.
func TestLooksFollow(t *testing.T) {
	w := newWorld(t)
	accounts := []string{"111111111111", "222222222222"}
	random := rand.New(rand.NewPCG(8, 9))
	kept := 0
	for round := range 150 {
		before := w.server.look(accounts[0])
		count, instances := len(before.instance), len(before.instances)
		what, ops := disturb(random, int64(round), accounts[random.IntN(2)])
		revision, err := w.server.Store.Commit(t.Context(), ops...)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.server.Cache.WaitRevision(t.Context(), revision); err != nil {
			t.Fatal(err)
		}
		for _, account := range accounts {
			got, want := w.server.look(account), w.server.newLook(account)
			for name, pair := range map[string][2]any{
				"instances": {got.instances, want.instances}, "instance": {got.instance, want.instance}, "members": {got.members, want.members},
				"followers": {got.followers, want.followers}, "clusters": {got.clusters, want.clusters}, "cluster": {got.cluster, want.cluster},
				"groups": {got.groups, want.groups},
			} {
				if !reflect.DeepEqual(pair[0], pair[1]) {
					t.Fatalf("round %d, after %s: %s of %s are\n%+v, want\n%+v", round, what, name, account, pair[0], pair[1])
				}
			}
		}
		if len(before.instance) != count || len(before.instances) != instances {
			t.Fatalf("round %d, after %s: a look that a call has changed under it", round, what)
		}
		if reflect.ValueOf(before.members).UnsafePointer() == reflect.ValueOf(w.server.look(accounts[0]).members).UnsafePointer() {
			kept++
		}
	}
	if kept < 50 {
		t.Errorf("of 150 changes, %d left the looks as they were", kept)
	}
}

// disturb makes a change, most often of an instance that has to do with no other.
func disturb(random *rand.Rand, n int64, account string) (what string, ops []state.Op) {
	scope := spec.Scope{Account: account, Region: "us-east-1"}
	key := func(name string) string { return state.Instance(scope.Account, scope.Region, name) }
	put := func(name, id, source, cluster string) state.Op {
		i := spec.Instance{Common: spec.Common{Scope: scope, Name: name, ResourceID: id, PasswordSerial: n}, Source: source, Cluster: cluster}
		return state.Put(key(name), i)
	}
	name := fmt.Sprintf("db-%d", random.IntN(4))
	switch random.IntN(10) {
	case 0:
		return "a deletion", []state.Op{state.Delete(key(name)), state.Delete(key("new-" + name))}
	case 1:
		return "a name", []state.Op{state.Delete(key(name)), put("new-"+name, name, "", "")}
	case 2:
		return "a replica", []state.Op{put("replica", "db-9", name, "")}
	case 3:
		return "a replica that is none any more", []state.Op{put("replica", "db-9", "", "")}
	case 4:
		c := spec.Cluster{Common: spec.Common{Scope: scope, Name: "aura", ResourceID: "cluster-1", PasswordSerial: n}}
		return "a cluster", []state.Op{state.Put(state.Cluster(scope.Account, scope.Region, "aura"), c), put("member", "db-8", "", "cluster-1")}
	case 5:
		return "a cluster's end", []state.Op{state.Delete(state.Cluster(scope.Account, scope.Region, "aura")), state.Delete(key("member"))}
	case 6:
		return "another instance of the name", []state.Op{state.Delete(key("new-" + name)), put(name, fmt.Sprintf("%s-%d", name, n), "", "")}
	}
	return "an instance", []state.Op{state.Delete(key("new-" + name)), put(name, name, "", "")}
}
