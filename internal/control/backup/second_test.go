package backup

import (
	"testing"
	"time"

	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// TestASecondRepository gets a backup of each window, too, and the first one does not wait for it.
func TestASecondRepository(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", week)
	c.put(state.Put(state.Repository("far"), backup.Repository{Name: "far", Copies: true}))
	c.round()
	c.round()
	far := func() []backup.Backup { return c.backups.backups(i.ResourceID, "far") }
	_, err := state.Update(t.Context(), c.store, state.Automated(i.ResourceID), func(a *backup.Automated) error {
		a.Second = "far"
		return nil
	})
	if err == nil {
		err = c.backups.fresh(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	c.round()
	if len(far()) > 0 {
		t.Error("a backup without its WAL")
	}
	for _, at := range []string{"zone-a", "zone-b"} {
		for _, m := range []string{"m1", "m2"} {
			full := member.ID(i.ResourceID, m)
			c.put(state.Put(state.Assign(at, full), member.Assignment{ID: full, Generation: 1, Archive: &member.Archive{Repositories: []string{"main", "far"}}}))
		}
	}
	for range 3 {
		c.round()
	}
	if all := far(); len(all) != 1 || !all[0].Automated || len(c.automatic()) != 1 {
		t.Fatalf("%+v, snapshots %q", all, c.automatic())
	}
	c.pass(27 * time.Hour)
	for range 4 {
		c.round()
	}
	if all := far(); len(all) != 2 || len(c.automatic()) != 2 || len(c.records(i.ResourceID)) != 2 {
		t.Errorf("%+v, snapshots %q", all, c.automatic())
	}
	if k := (&keeper{Backups: c.backups, sight: c.backups.look()}); k.worksFirst(i.ResourceID) {
		t.Error("something is under way")
	}
}
