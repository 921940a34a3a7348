package reconcile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/control/plan"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

func origin() *spec.Origin {
	return &spec.Origin{Database: "db-0", Repository: "main", Label: "20261101-000000F", From: "old"}
}

// messages are those of all events of one number.
func (b *bench) messages(number string) []string {
	b.Helper()
	var all []string
	for _, e := range state.LoadAll[event.Event](b.cache, state.EventRoot) {
		if strings.HasSuffix(e.Value.ID, number) {
			all = append(all, e.Value.Source+": "+e.Value.Message)
		}
	}
	return all
}

// TestEventsOfARestore: what an instance was made of is told when it is available.
func TestEventsOfARestore(t *testing.T) {
	for _, tt := range []struct {
		name, number, message string
		change                func(*spec.Origin)
	}{
		{"a snapshot", "0043", "old: Restored from snapshot old", func(o *spec.Origin) { o.Snapshot = true }},
		{"a moment", "0019", "orders: Restored from DB instance old to orders", func(o *spec.Origin) { o.Newest = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			i := b.instance(true)
			i.Origin = origin()
			tt.change(i.Origin)
			b.want(i)
			b.settle()
			if diff := cmp.Diff([]string{tt.message}, b.messages(tt.number)); diff != "" {
				t.Errorf("told (-want +got)\n%s", diff)
			}
			l := b.layout()
			if !l.Restored || !l.Created || len(l.Members) != 2 {
				t.Errorf("layout %+v", l)
			}
			for _, m := range l.Members {
				if a := b.assigned(m.Host, m.Name).Value; a.Restore != nil || !a.Inherits {
					t.Errorf("assignment %+v", a)
				}
			}
		})
	}
}

// TestARestoreThatFailsIsTold, once, and ends with a deletion.
func TestARestoreThatFailsIsTold(t *testing.T) {
	b := newBench(t)
	i := b.instance(true)
	i.Origin = origin()
	b.want(i)
	if err := b.step(); err != nil {
		t.Fatal(err)
	}
	m := b.layout().Members[0]
	if a := b.assigned(m.Host, m.Name).Value; a.Restore == nil || a.Restore.Label != i.Origin.Label || len(b.layout().Members) != 1 {
		t.Errorf("assignment %+v", a)
	}
	b.report(member.Report{ID: member.ID(dbID, m.Name), Host: m.Host, Generation: 1, Restoring: &member.Restoring{Phase: "files"}, At: b.now})
	b.expect("it goes on")
	b.problem(m.Host, m.Name, member.RestoreFails, func(r *member.Report) { r.Detail, r.Restoring = "the archive ends at noon", nil })
	b.expect("it fails", "0031")
	b.expect("it still does")
	i.Deleting = true
	b.want(i)
	b.settle()
	if _, err := state.Load[plan.Layout](b.cache, state.Layout(dbID)); err == nil {
		t.Errorf("it is not deleted: %+v", b.layout())
	}
}

// TestARestoreIsKnownByItsIdentifier: Patroni knows the data although nobody leads, and nobody
// restores them again.
func TestARestoreIsKnownByItsIdentifier(t *testing.T) {
	b := newBench(t)
	i := b.instance(false)
	i.Origin = origin()
	b.want(i)
	if err := b.step(); err != nil || b.layout().Restored {
		t.Fatalf("layout %+v, %v", b.layout(), err)
	}
	b.same(patroni.InitializeKey(dbID), "")
	if err := b.step(); err != nil || b.layout().Restored {
		t.Fatalf("somebody begins, layout %+v, %v", b.layout(), err)
	}
	b.same(patroni.InitializeKey(dbID), "7711776548945851228")
	if err := b.step(); err != nil || !b.layout().Restored {
		t.Fatalf("there are data, layout %+v, %v", b.layout(), err)
	}
}
