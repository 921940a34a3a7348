package reconcile

import (
	"strings"
	"testing"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// A new instance tells once what it was made of.
func TestEventsOfARestoredInstance(t *testing.T) {
	for _, c := range []struct {
		name   string
		origin *spec.Origin
		want   string // in what is written, of what was restored
	}{
		{"not restored", nil, ""},
		{"a snapshot", &spec.Origin{From: "snap", Snapshot: true}, "Restored from snapshot snap"},
		{"a moment", &spec.Origin{From: "shop"}, "Restored from DB instance shop to again"},
		{"a moment, for an operation", &spec.Origin{From: "shop"}, "hidden"},
	} {
		scope := spec.Scope{Account: "123456789012", Region: "us-east-1"}
		d := &database{Database: &view.Database{Owner: spec.Common{Scope: scope, Name: "again", ResourceID: "db-1", Origin: c.origin}}}
		if c.want == "hidden" { // nobody is told of it
			d.Owner.MadeBy, c.want = "rewind-1", ""
		}
		for _, before := range []bool{false, true} {
			ops, err := eventsBetween(d, plan.Layout{Created: before}, plan.Output{Layout: plan.Layout{Created: true}}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			_, changes, err := state.Split(ops)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			for _, change := range changes {
				text.Write(change.ValueBytes())
			}
			tells := strings.Contains(text.String(), "Restored from")
			if tells != (c.want != "" && !before) || tells && !strings.Contains(text.String(), c.want) {
				t.Errorf("%s, created before: %t: %s", c.name, before, &text)
			}
		}
	}
}
