package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// TestWhatIsShownIsWhatIsDecidedBy checks that the planner's input for display is the same as
// reconcile's, at every step of a home with followers and clusters.
func TestWhatIsShownIsWhatIsDecidedBy(t *testing.T) {
	b := newBench(t)
	b.upgrade()
	i := b.instance(true)
	i.SecurityGroups = []string{"sg-1"}
	b.group("sg-1", 5432, "10.1.0.0/16")
	b.want(i)
	replica := b.instance(false)
	replica.Name, replica.ResourceID, replica.Address, replica.Source = "replica", "db-2", "127.9.0.2", dbID
	b.want(replica)
	c := spec.Cluster{Common: replica.Common, Class: "db.t3.small", ReaderAddress: "127.9.0.4"}
	c.Name, c.ResourceID, c.Address = "aura", "cluster-1", "127.9.0.3"
	own := b.instance(false)
	own.Name, own.ResourceID, own.Address, own.Cluster = "one", "db-3", "127.9.0.5", "cluster-1"
	b.put(state.Put(state.Cluster(account, region, "aura"), c))
	b.want(own)
	shown, follows := view.Wants{Records: &view.Records{Cache: b.cache}}, false
	for step := range 12 {
		if step == 6 {
			i.Reboot, i.Address, i.Former = 1, "127.10.0.1", []string{i.Address}
			b.want(i)
		}
		w := b.look()
		for _, d := range w.databases {
			want := w.input(d, b.r.Policy)
			layout, err := state.Load[plan.Layout](b.cache, state.Layout(d.Want.ID))
			if err != nil {
				layout.Value = plan.Layout{}
			}
			now := shown.Now()
			got := now.Basis(now.Database(d.Want.ID), layout.Value, (&view.Places{Cache: b.cache}).Hosts()).Input(b.now, b.r.Policy)
			if got.HostAt = want.HostAt; len(want.Hosts) != 3 {
				t.Fatalf("%d hosts", len(want.Hosts))
			}
			byPort(got.Hosts)
			byPort(want.Hosts)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("step %d, %s (-decided +shown):\n%s", step, d.Want.ID, diff)
			}
			follows = follows || len(got.Ways) > 0 && got.OwnNames && got.Keys.Authority != "" && d.Want.Upstream != nil
		}
		if err := b.step(); err != nil {
			t.Fatal(err)
		}
		b.obeyAll(func(string) bool { return true })
	}
	if !follows {
		t.Error("ways, names and keys were never there")
	}
}
