package reconcile

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"howdah/internal/control/plan"
	"howdah/internal/model/param"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// TestTheWorldFollows makes random changes by users and hosts. After each one, a world that takes
// over what did not change must equal one that looked at everything, and must know which databases
// changed.
func TestTheWorldFollows(t *testing.T) {
	for seed := range uint64(6) {
		b := newBench(t)
		s := &shuffle{Rand: rand.New(rand.NewPCG(7, seed))}
		followed := look(b.cache, b.now)
		whole := look(b.cache, b.now)
		fast := 0
		for round := range 60 {
			b.put(s.ops()...)
			before := followed.byID
			followed = lookAgain(followed, b.cache, b.now)
			if reflect.ValueOf(before).UnsafePointer() == reflect.ValueOf(followed.byID).UnsafePointer() {
				fast++
			}
			now := look(b.cache, b.now)
			if diff := different(followed, now, whole); diff != "" {
				t.Fatalf("seed %d, round %d, after %s: %s", seed, round, s.what, diff)
			}
			whole = now
		}
		if fast < 10 {
			t.Errorf("seed %d: in 60 rounds it took over what did not change in %d", seed, fast)
		}
	}
}

// different says how a world differs from one that is found anew. last is the previous world.
func different(got, want, last *world) string {
	if len(got.databases) != len(want.databases) || len(got.byID) != len(want.byID) {
		return fmt.Sprintf("%d and %d databases, want %d", len(got.databases), len(got.byID), len(want.databases))
	}
	for _, d := range got.databases {
		w, before := want.byID[d.Want.ID], last.byID[d.Want.ID]
		switch {
		case w == nil || got.byID[d.Want.ID] != d:
			return d.Want.ID + " is not there, or twice"
		case !reflect.DeepEqual(d.Want, w.Want), !reflect.DeepEqual(d.Specs, w.Specs), !reflect.DeepEqual(d.Custom, w.Custom), !reflect.DeepEqual(d.Owner, w.Owner):
			return fmt.Sprintf("%s is wanted as\n%+v, want\n%+v", d.Want.ID, d.Want, w.Want)
		case !reflect.DeepEqual(d.layout, w.layout):
			return fmt.Sprintf("%s is at\n%+v, want\n%+v", d.Want.ID, d.layout, w.layout)
		}
		same := before != nil && reflect.DeepEqual(before.Want, w.Want) && reflect.DeepEqual(before.Specs, w.Specs)
		if d.changed == same {
			return fmt.Sprintf("%s: changed %v, and it is the same: %v", d.Want.ID, d.changed, same)
		}
		if d.changed != slices.Contains(got.changed, d) {
			return d.Want.ID + " is not listed as it is"
		}
	}
	for n, h := range byPort(want.hosts) {
		if g := byPort(got.hosts)[n]; !reflect.DeepEqual(g, h) {
			return fmt.Sprintf("host %+v, want %+v", g, h)
		}
	}
	return ""
}

// shuffle makes changes, most of them of plain instances.
type shuffle struct {
	*rand.Rand
	what string
	n    int64
}

func (s *shuffle) ops() []state.Op {
	s.n++
	name := fmt.Sprintf("db-%d", s.IntN(5))
	switch s.IntN(12) {
	case 0:
		s.what = "a deletion"
		return []state.Op{state.Delete(state.Instance(account, region, name))}
	case 1:
		s.what = "another name"
		return []state.Op{state.Delete(state.Instance(account, region, name)), s.instance("new-"+name, name, "", "")}
	case 2:
		s.what = "the old name"
		return []state.Op{state.Delete(state.Instance(account, region, "new-"+name)), s.instance(name, name, "", "")}
	case 3:
		s.what = "a replica"
		return []state.Op{s.instance("replica", "db-9", name, "")}
	case 4:
		s.what = "no replica"
		return []state.Op{state.Delete(state.Instance(account, region, "replica"))}
	case 5:
		s.what = "a cluster"
		c := spec.Cluster{Common: spec.Common{Name: "aura", ResourceID: "cluster-1", PasswordSerial: s.n, Port: 5432, Major: 15}}
		return []state.Op{state.Put(state.Cluster(account, region, "aura"), c), s.instance("member", "db-8", "", "cluster-1")}
	case 6:
		s.what = "no cluster"
		return []state.Op{state.Delete(state.Cluster(account, region, "aura")), state.Delete(state.Instance(account, region, "member"))}
	case 7:
		s.what = "a parameter group"
		g := spec.ParameterGroup{Kind: param.Instance, Name: "own", Serial: s.n}
		g.Scope = spec.Scope{Account: account, Region: region}
		return []state.Op{state.Put(state.ParameterGroup(string(param.Instance), account, region, "own"), g)}
	case 9:
		s.what = "an instance with the name of a cluster's"
		return []state.Op{s.instance("member", "db-7", "", "")}
	case 8:
		s.what = "a layout"
		l := plan.Layout{ID: name, Next: int(s.n), Members: []plan.Placed{{Name: "m1", Host: "a", Port: 15432, RESTPort: 25432}}}
		return []state.Op{state.Put(state.Layout(name), l)}
	}
	s.what = "instances"
	return []state.Op{state.Delete(state.Instance(account, region, "new-"+name)), s.instance(name, name, "", ""), s.instance("db-5", "db-5", "", "")}
}

func (s *shuffle) instance(name, id, source, cluster string) state.Op {
	i := spec.Instance{Common: spec.Common{Name: name, ResourceID: id, PasswordSerial: s.n, Port: 5432, Major: 15}, Class: "db.t3.small", Source: source, Cluster: cluster}
	i.Scope = spec.Scope{Account: account, Region: region}
	return state.Put(state.Instance(account, region, name), i)
}
