package reconcile

import (
	"testing"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// A failover of a cluster is an event of the cluster, and of the instance that is its writer now.
// If that instance is gone, it is an event of the cluster alone.
func TestAFailoverTellsTheNewWriter(t *testing.T) {
	writer := spec.Instance{Common: spec.Common{Scope: spec.Scope{Account: "1", Region: "r"}, Name: "two", ResourceID: "seat-2"}, Cluster: "c"}
	d := &database{Database: &view.Database{
		Want: plan.Database{ID: "c"}, Cluster: &state.Record[spec.Cluster]{}, Specs: []state.Record[*spec.Instance]{{Value: &writer}},
		Owner: spec.Common{Scope: writer.Scope, Name: "aura"},
	}}
	for seat, want := range map[string]int{"seat-2": 3, "seat-9": 2} {
		ops, err := failoverEvents(d, member.Lead{Member: "m1"}, plan.Placed{Name: "m2", Seat: seat, Zone: "b"}, time.Unix(1, 0))
		if err != nil {
			t.Fatal(err)
		}
		if len(ops) != want {
			t.Errorf("to %s: %d events, want %d", seat, len(ops), want)
		}
	}
	src, _ := d.seatSource("seat-2")
	if src.Type != event.Instance || src.Name != "two" {
		t.Errorf("the source is %+v", src)
	}
}
