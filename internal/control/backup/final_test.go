package backup

import (
	"testing"

	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// TestReplicasLeaveWithTheDeletion that follows a final snapshot: with the password that their data
// have, and nobody else's.
func TestReplicasLeaveWithTheDeletion(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", func(i *spec.Instance) { i.MasterUser, i.PasswordSerial = "ada", 7 })
	c.instance("copy", "zone-b", func(r *spec.Instance) { r.Source = i.ResourceID })
	c.instance("free", "zone-b", func(r *spec.Instance) { r.Source, r.Promoted = i.ResourceID, true })
	c.instance("other", "zone-b", func(r *spec.Instance) { r.Source = "db-OTHER" })
	ops := c.backups.followersGo(i.Common)
	if len(ops) != 1 {
		t.Fatalf("%d changes", len(ops))
	}
	c.put(ops...)
	r, err := state.Load[spec.Instance](c.cache, state.Instance(shop.Account, shop.Region, "copy"))
	if v := r.Value; err != nil || v.Follows() || v.MasterUser != "ada" || v.PasswordSerial != 7 || v.Change != 1 || v.ChangeStatus != plan.Modifying {
		t.Errorf("%+v, %v", r.Value, err)
	}
}
