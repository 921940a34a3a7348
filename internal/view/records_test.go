package view

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
)

// TestRecordsFollow: what is taken over from before is what somebody finds who looks at
// everything, whatever users do; and so are the databases that are wanted. What somebody has goes
// on as it was.
func TestRecordsFollow(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	records, wanted := &Records{Cache: cache}, Nothing(cache)
	accounts := []string{"111111111111", "222222222222"}
	random := rand.New(rand.NewPCG(8, 9))
	kept, few := 0, 0
	for round := range 150 {
		made := records.Made()
		before := made.Of(accounts[0])
		count, instances, databases, old := len(before.Instance), slices.Clone(before.Instances), slices.Clone(wanted.databases), wanted
		what, ops := disturb(random, int64(round), accounts[random.IntN(2)])
		etcdtest.Put(t, store, cache, ops...)
		now, whole := records.Made(), lookAtAll(cache)
		if !reflect.DeepEqual(now, whole) {
			t.Fatalf("round %d, after %s:\n%+v, want\n%+v", round, what, now, whole)
		}
		next, news := wanted.After(now)
		fresh, _ := Nothing(cache).After(whole)
		if diff := different(next, fresh); diff != "" {
			t.Fatalf("round %d, after %s: %s", round, what, diff)
		}
		if diff := told(wanted, next, news); diff != "" {
			t.Fatalf("round %d, after %s: %s", round, what, diff)
		}
		if len(before.Instance) != count || !reflect.DeepEqual(before.Instances, instances) || !slices.Equal(old.databases, databases) {
			t.Fatalf("round %d, after %s: what a call has changed under it", round, what)
		}
		if before.Related == now.Of(accounts[0]).Related {
			kept++
		}
		if !news.All {
			few++
		}
		wanted = next
	}
	if kept < 50 || few < 50 {
		t.Errorf("of 150 changes, %d left what is related as it was, and %d concerned few databases", kept, few)
	}
}

// different says in what the databases that are wanted differ from those found anew.
func different(got, want *Wanted) string {
	if len(got.databases) != len(want.databases) || len(got.byID) != len(want.byID) {
		return fmt.Sprintf("%d and %d databases, want %d", len(got.databases), len(got.byID), len(want.databases))
	}
	for id, w := range want.byID {
		switch d := got.byID[id]; {
		case d == nil || !slices.Contains(got.databases, d):
			return id + " is not there"
		case !reflect.DeepEqual(d.Want, w.Want), !reflect.DeepEqual(d.Specs, w.Specs), !reflect.DeepEqual(d.Custom, w.Custom), !reflect.DeepEqual(d.Cluster, w.Cluster), !reflect.DeepEqual(d.Owner, w.Owner):
			return fmt.Sprintf("%s is wanted as\n%+v, want\n%+v", id, d.Want, w.Want)
		case len(got.followers[id]) != len(want.followers[id]):
			return fmt.Sprintf("%s has %d followers, want %d", id, len(got.followers[id]), len(want.followers[id]))
		}
	}
	return ""
}

// told says which database is another one than before without news of it.
func told(before, now *Wanted, news News) string {
	if news.All {
		return ""
	}
	for _, d := range now.databases {
		if !slices.Contains(before.databases, d) && !slices.Contains(news.Come, d) {
			return d.Want.ID + " came unseen"
		}
	}
	for _, d := range before.databases {
		if !slices.Contains(now.databases, d) && !slices.Contains(news.Gone, d) {
			return d.Want.ID + " went unseen"
		}
	}
	return ""
}

// disturb makes a change, most often of an instance that has to do with no other.
func disturb(random *rand.Rand, n int64, account string) (what string, ops []state.Op) {
	scope := spec.Scope{Account: account, Region: "us-east-1"}
	key := func(name string) string { return state.Instance(scope.Account, scope.Region, name) }
	own := func(id string) string { // no other account has one
		if id == "" {
			return ""
		}
		return id + "-" + account
	}
	put := func(name, id, source, cluster string) state.Op {
		i := spec.Instance{Common: spec.Common{Scope: scope, Name: name, ResourceID: own(id), PasswordSerial: n}, Source: own(source), Cluster: own(cluster)}
		return state.Put(key(name), i)
	}
	name := fmt.Sprintf("db-%d", random.IntN(4))
	switch random.IntN(12) {
	case 10, 11: // as at the end of a rewind
		ids := []string{"db-6", "db-7"}
		random.Shuffle(2, func(a, b int) { ids[a], ids[b] = ids[b], ids[a] })
		hidden := spec.Instance{Common: spec.Common{Scope: scope, Name: "hidden", ResourceID: own(ids[1]), PasswordSerial: n, MadeBy: "op"}}
		return "two that may have changed places", []state.Op{put("here", ids[0], "", ""), state.Put(key("hidden"), hidden)}
	case 0:
		return "a deletion", []state.Op{state.Delete(key(name)), state.Delete(key("new-" + name))}
	case 1:
		return "a name", []state.Op{state.Delete(key(name)), put("new-"+name, name, "", "")}
	case 2:
		return "a replica", []state.Op{put("replica", "db-9", name, "")}
	case 3:
		return "a replica that is none any more", []state.Op{put("replica", "db-9", "", "")}
	case 4:
		c := spec.Cluster{Common: spec.Common{Scope: scope, Name: "aura", ResourceID: own("cluster-1"), PasswordSerial: n}}
		return "a cluster", []state.Op{state.Put(state.Cluster(scope.Account, scope.Region, "aura"), c), put("member", "db-8", "", "cluster-1")}
	case 5:
		return "a cluster's end", []state.Op{state.Delete(state.Cluster(scope.Account, scope.Region, "aura")), state.Delete(key("member"))}
	case 6:
		return "another instance of the name", []state.Op{state.Delete(key("new-" + name)), put(name, fmt.Sprintf("%s-%d", name, n), "", "")}
	}
	return "an instance", []state.Op{state.Delete(key("new-" + name)), put(name, name, "", "")}
}
