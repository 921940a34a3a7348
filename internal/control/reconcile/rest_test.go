package reconcile

import (
	"fmt"
	"slices"
	"testing"

	"howdah/internal/control/plan"
	"howdah/internal/edge/seen"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/view"
)

// TestADatabaseAtRestIsLeftAlone checks that a database at rest is left alone until something
// changes that concerns it.
func TestADatabaseAtRestIsLeftAlone(t *testing.T) {
	b := newBench(t)
	b.want(b.instance(false))
	b.settle()
	b.r.pass(t.Context(), atStart)
	b.r.pass(t.Context(), onChange)
	if b.r.awake[dbID] {
		t.Fatal("it does not rest")
	}
	w := b.r.look()
	d := w.database(dbID)
	host := d.layout.Value.Members[0].Host
	for name, c := range map[string]struct {
		why   occasion
		dirty dirt
		want  bool
	}{
		"the start":              {atStart, newDirt(), true},
		"a change elsewhere":     {onChange, dirt{databases: map[string]bool{"other": true}}, false},
		"a change of its own":    {onChange, dirt{databases: map[string]bool{dbID: true}}, true},
		"its host":               {onChange, dirt{hosts: map[string]bool{host: true}}, true},
		"another host":           {onChange, dirt{hosts: map[string]bool{"elsewhere": true}}, false},
		"a tick that is not its": {onTick, newDirt(), false},
	} {
		b.r.ticks = 1 // it is the 0th database
		if got := b.r.due(w, c.why, c.dirty); slices.Contains(got, d) != c.want {
			t.Errorf("%s: due %v", name, got)
		}
	}
	b.r.ticks = restful
	if !slices.Contains(b.r.due(w, onTick, newDirt()), d) {
		t.Error("it is never looked at again")
	}
	b.problem(host, "m1", member.None, func(r *member.Report) { r.Ready = false })
	b.r.pass(t.Context(), onChange)
	if !b.r.awake[dbID] {
		t.Error("it rests although it does not serve")
	}
}

// TestTheWorldIsKeptWhileNothingChanges also checks that what changed is found.
func TestTheWorldIsKeptWhileNothingChanges(t *testing.T) {
	b := newBench(t)
	b.want(b.instance(false))
	other := b.instance(false)
	other.Name, other.ResourceID, other.Address = "other", "db-2", "127.9.0.2"
	b.want(other)
	first := lookAgain(nil, b.cache, b.now)
	kept := first.database("db-2")
	if again := lookAgain(first, b.cache, b.now); again.database("db-2") != kept || kept.changed {
		t.Error("a database that did not change is another one")
	}
	i := b.instance(false)
	i.PasswordSerial = 2
	b.want(i)
	w := lookAgain(first, b.cache, b.now)
	if w.database("db-2") != kept || kept.changed || !w.database(dbID).changed || w.database(dbID).Want.Owner.Serial != 2 {
		t.Errorf("changed: %v and %v", w.database(dbID).changed, kept.changed)
	}
	b.put(state.Put(state.Layout("db-2"), plan.Layout{ID: "db-2", Members: []plan.Placed{{Name: "m1", Host: "a", Port: 15432, RESTPort: 25432}}}))
	w = lookAgain(w, b.cache, b.now)
	if len(w.database("db-2").layout.Value.Members) != 1 || len(w.host("a").UsedPorts) != 2 || w.host("a").Committed == 0 {
		t.Errorf("host %+v", w.host("a"))
	}
	b.put(state.Delete(state.Instance(account, region, "other")))
	if w = lookAgain(w, b.cache, b.now); w.database("db-2") != nil || len(w.databases) != 1 {
		t.Error("a database that is wanted no more is still there")
	}
}

// TestNetworksThatChangeAreSeen checks changes of networks while the instances stay the same.
func TestNetworksThatChangeAreSeen(t *testing.T) {
	b := newBench(t)
	i := b.instance(false)
	i.SecurityGroups = []string{"sg-1"}
	b.want(i)
	b.group("sg-1", 5432, "10.1.0.0/16")
	w := lookAgain(nil, b.cache, b.now)
	b.group("sg-1", 5432, "10.2.0.0/16")
	w = lookAgain(w, b.cache, b.now)
	if d := w.database(dbID); !d.changed || len(d.Want.Allow) != 1 || d.Want.Allow[0] != "10.2.0.0/16" {
		t.Errorf("changed %v, lets in %v", d.changed, d.Want.Allow)
	}
	b.put(state.Put(state.Between("proxy"), seen.Between{Addresses: []string{"10.7.0.1"}}))
	w = lookAgain(w, b.cache, b.now)
	if d := w.database(dbID); !d.changed || len(d.Want.Between) == 0 {
		t.Errorf("changed %v, edges %v", d.changed, d.Want.Between)
	}
	if w = lookAgain(w, b.cache, b.now); w.database(dbID).changed {
		t.Error("nothing changed")
	}
}

// TestASourceIsLookedAtWithItsFollowers: where followers are decides who passes to their source.
func TestASourceIsLookedAtWithItsFollowers(t *testing.T) {
	b := newBench(t)
	b.want(b.instance(false))
	replica := b.instance(false)
	replica.Name, replica.ResourceID, replica.Address, replica.Source = "replica", "db-2", "127.9.0.2", dbID
	b.want(replica)
	w := b.look()
	for changed, want := range map[string]int{"db-2": 2, dbID: 1, "db-3": 1} {
		ids := map[string]bool{changed: true}
		if w.wakeSources(ids); len(ids) != want {
			t.Errorf("%s changed: to be looked at %v", changed, ids)
		}
	}
}

// TestAllAreLookedAtAgain checks that all databases are looked at again in time, each once, also if
// they are too many for restful ticks. Databases that do not rest are looked at with every tick.
func TestAllAreLookedAtAgain(t *testing.T) {
	for _, n := range []int{1, restful, restful*atOnce + 7} {
		r, w := &Reconciler{awake: map[string]bool{"db-0": true}}, &world{}
		for i := range n {
			w.databases = append(w.databases, &database{Database: &view.Database{Want: plan.Database{ID: fmt.Sprintf("db-%d", i)}}})
		}
		looked := map[string]int{}
		ticks := max(restful, n/atOnce)
		for r.ticks = range ticks {
			due := r.due(w, onTick, newDirt())
			if len(due) > atOnce+2 {
				t.Errorf("of %d, %d are looked at in one tick", n, len(due))
			}
			for _, d := range due {
				looked[d.Want.ID]++
			}
		}
		for _, d := range w.databases[1:] {
			if looked[d.Want.ID] != 1 {
				t.Fatalf("of %d, %s is looked at %d times", n, d.Want.ID, looked[d.Want.ID])
			}
		}
		if looked["db-0"] != ticks {
			t.Errorf("of %d, the one that does not rest is looked at %d times in %d ticks", n, looked["db-0"], ticks)
		}
	}
}
