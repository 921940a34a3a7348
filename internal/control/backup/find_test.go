package backup

import (
	"slices"
	"testing"
	"time"

	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/model/regain"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// made has a backup in the repository that nobody has a record of.
func (c *clock) made(database string, operations ...string) {
	c.yard.set(func() {
		for _, o := range operations {
			c.yard.backUp(backup.BackupJob{Database: database, Repository: "main", Operation: o})
		}
	})
}

// restore says that the home was restored.
func (c *clock) restore(id string) {
	c.put(state.Put(state.Restored(), regain.Home{ID: id, Taken: c.now.Add(-time.Hour), At: c.now}))
}

// TestAHomeThatWasRestored: backups that were made after the home's own are not removed. What users
// had made are snapshots again.
func TestAHomeThatWasRestored(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", week)
	c.round()
	c.ends(c.snapshot(i, "known", backup.Take, nil), operation.Done)
	c.made(i.ResourceID, "auto-db-orders-202611240300", "snap-mine-0123456789ab", "snap-mine-ba9876543210", "heal-db-orders-x", "snap-known-000000000000", "other")
	c.restore("r1")
	c.round()
	c.pass(25 * time.Hour)
	c.round()
	stored := c.yard.stored[i.ResourceID]
	for _, o := range []string{
		"snap-known", "auto-db-orders-202611240300", "snap-mine-0123456789ab", "snap-mine-ba9876543210", "heal-db-orders-x", "snap-known-000000000000", "other",
	} {
		if !slices.ContainsFunc(stored, func(b backup.Backup) bool { return b.Operation == o }) {
			t.Errorf("the backup of %s was removed", o)
		}
		if !slices.ContainsFunc(c.records(i.ResourceID), func(b backup.Backup) bool {
			return b.Operation == o && (b.Automated == automatic(o))
		}) {
			t.Errorf("the backup of %s has no record", o)
		}
	}
	mine, twice := c.shot("mine"), c.shot("mine-ba9876543210")
	again := c.shot("known-000000000000")
	for _, s := range []backup.Snapshot{mine, twice, again} {
		if s.State != backup.Available || s.Label == "" || s.Instance == nil || s.Taken.IsZero() || s.Size != 100 || s.Tags == nil {
			t.Errorf("%+v", s)
		}
	}
	if mine.Label == twice.Label {
		t.Errorf("both are %s", mine.Label)
	}
	// From now on all is as ever.
	c.made(i.ResourceID, "snap-cancelled-000000000000")
	c.pass(25 * time.Hour)
	c.round()
	if c.shot("cancelled").Name != "" {
		t.Errorf("%+v", c.shot("cancelled"))
	}
}

// TestADeletedDatabaseOfARestoredHome: what nobody knows of it stays, though nothing that is known of
// it has to.
func TestADeletedDatabaseOfARestoredHome(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", week)
	c.round()
	c.made(i.ResourceID, "snap-mine-0123456789ab", "auto-db-orders-x")
	c.remove(i)
	c.restore("r1")
	c.round()
	c.pass(24 * time.Hour)
	c.round()
	if left := c.yard.stored[i.ResourceID]; len(left) != 3 || c.shot("mine").State != "" && c.shot("mine").Label != "B002" {
		t.Errorf("%+v, %+v", left, c.shot("mine"))
	}
}

// TestARepositoryThatIsAwayAfterARestore: nothing is removed before it can be listed.
func TestARepositoryThatIsAwayAfterARestore(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", nil)
	c.ends(c.snapshot(i, "known", backup.Take, nil), operation.Done)
	c.made(i.ResourceID, "snap-mine-0123456789ab")
	c.restore("r1")
	c.yard.set(func() { c.yard.fails["zone-a"] = "away" })
	c.begin()
	id := c.backups.active("", backup.Tidy)[0].ID
	c.waits(id, "host zone-a could not list the backups: away")
	if len(c.yard.tidied) > 0 {
		t.Errorf("%+v", c.yard.tidied)
	}
	c.yard.set(func() { clear(c.yard.fails) })
	c.ends(id, operation.Done)
	if c.shot("mine").State != backup.Available || len(c.yard.stored[i.ResourceID]) != 2 {
		t.Errorf("%+v", c.shot("mine"))
	}
	c.clean(i.ResourceID)
}

// TestWhatWasUnderWay when the home was backed up is not under way for ever.
func TestWhatWasUnderWay(t *testing.T) {
	c := midnight(t)
	leaves := c.instance("leaves", "zone-a", func(i *spec.Instance) { i.Final = "last" })
	i := c.instance("orders", "zone-a", nil)
	shot := func(name string) backup.Snapshot {
		return backup.Snapshot{Scope: shop, Name: name, State: backup.Creating, Instance: &i, Database: i.ResourceID, Repository: "main", Operation: "snap-" + name, Tags: []spec.Tag{}}
	}
	c.put(state.Put(state.Snapshot(shop.Account, shop.Region, "lost"), shot("lost")), state.Put(state.Snapshot(shop.Account, shop.Region, "made"), shot("made")))
	c.made(i.ResourceID, "snap-made")
	c.restore("r1")
	for range 4 {
		c.round()
	}
	if s := c.shot("lost"); s.State != backup.Failed || s.Reason == "" {
		t.Errorf("%+v", s)
	}
	if s := c.shot("made"); s.State != backup.Available || s.Label != "B001" {
		t.Errorf("%+v", s)
	}
	now, err := state.Load[spec.Instance](c.cache, state.Instance(shop.Account, shop.Region, "leaves"))
	if err != nil || now.Value.Final != "" || now.Value.Deleting || now.Value.ResourceID != leaves.ResourceID {
		t.Errorf("%+v, %v", now.Value, err)
	}
}
