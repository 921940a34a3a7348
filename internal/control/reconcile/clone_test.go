package reconcile

import (
	"testing"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// TestAClone is begun beside its source's primary. If that is deleted before it is copied, this is told
// once, and the clone can be deleted.
func TestAClone(t *testing.T) {
	b := newBench(t)
	const source = "db-0"
	members := []plan.Placed{{Name: "m1", Host: "a"}, {Name: "m2", Host: "b"}}
	b.put(state.Put(state.Layout(source), plan.Layout{ID: source, Members: members, Created: true}))
	for _, m := range members {
		b.put(state.Put(state.Report(m.Host, member.ID(source, m.Name)), member.Report{ID: member.ID(source, m.Name), Host: m.Host, Ready: true, At: b.now}))
	}
	b.same(patroni.LeaderKey(source), patroni.OwnName(source, "m2"))
	i := b.instance(true)
	i.Origin = &spec.Origin{Live: true, Database: source, From: "old"}
	b.want(i)
	if err := b.step(); err != nil {
		t.Fatal(err)
	}
	l := b.layout()
	if len(l.Members) != 1 || l.Members[0].Host != "b" || l.Unrestorable != "" {
		t.Fatalf("layout %+v", l)
	}
	m := l.Members[0]
	if a := b.assigned(m.Host, m.Name).Value; a.Restore == nil || *a.Restore != (member.Restore{Live: true, Database: source}) || !a.Inherits {
		t.Errorf("told to restore %+v", a.Restore)
	}
	b.report(member.Report{ID: member.ID(dbID, m.Name), Host: m.Host, Generation: 1, Restoring: &member.Restoring{Phase: "files"}, At: b.now})
	b.put(state.Delete(state.Layout(source)))
	b.expect("it may have its data")
	if why := b.layout().Unrestorable; why != "" {
		t.Errorf("given up: %s", why)
	}
	b.problem(m.Host, m.Name, member.SourceAway, nil)
	b.expect("it has none", "0031")
	b.expect("it still has none")
	if b.layout().Unrestorable == "" {
		t.Error("not given up")
	}
	i.Deleting = true
	b.want(i)
	b.settle()
	if _, err := state.Load[plan.Layout](b.cache, state.Layout(dbID)); err == nil {
		t.Errorf("it is not deleted: %+v", b.layout())
	}
}
