package backup

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

func TestASnapshot(t *testing.T) {
	s := newSite(t)
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	s.ends(s.snapshot(i, "first", backup.Take, nil), operation.Done)
	got := s.shot("first")
	if got.State != backup.Available || got.Label != "B001" || got.Size != 100 || got.Stored != 10 || got.Taken.IsZero() || got.Done.IsZero() {
		t.Errorf("snapshot %+v", got)
	}
	all := s.records(i.ResourceID)
	if len(all) != 1 || all[0].Operation != "snap-first" || all[0].Automated || all[0].Kind != backup.Full {
		t.Errorf("backups %+v", all)
	}
	if s.events("first") != "0042" || s.events("orders") != "0002" {
		t.Errorf("events %q, %q", s.events("first"), s.events("orders"))
	}
	s.clean(i.ResourceID)
	// The second one costs what has changed.
	s.ends(s.snapshot(i, "second", backup.Take, nil), operation.Done)
	if all := s.records(i.ResourceID); len(all) != 2 || all[1].Kind != backup.Incremental || s.yard.asked[0].Member != "m1" {
		t.Errorf("backups %+v, asked %+v", all, s.yard.asked)
	}
}

// TestTheHostChanges: what a host could not do another one does, if it has the primary then.
func TestTheHostChanges(t *testing.T) {
	s := newSite(t)
	s.yard.fails["zone-a"] = "it broke"
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	id := s.snapshot(i, "first", backup.Take, nil)
	s.waits(id, "it broke")
	s.serve(i.ResourceID, "zone-b", member.Archived{})
	r := s.ends(id, operation.Done)
	if r.Notes[noteHost] != "zone-b" || s.shot("first").State != backup.Available {
		t.Errorf("%+v", r)
	}
	s.clean(i.ResourceID)
}

// TestWhatABackupWaitsFor: it goes on as soon as it can, and says meanwhile what is missing.
func TestWhatABackupWaitsFor(t *testing.T) {
	s := newSite(t)
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	serves := func() { s.serve(i.ResourceID, "zone-a", member.Archived{}) }
	put := func(change func(*spec.Instance)) {
		next := i
		change(&next)
		s.put(state.Put(state.Instance(shop.Account, shop.Region, "orders"), next))
	}
	for n, c := range []struct {
		why          string
		hinder, mend func()
	}{
		{"no primary", func() { s.serve(i.ResourceID, "", member.Archived{}) }, serves},
		{"no primary", func() { s.put(state.Put(state.Live("zone-a"), member.Liveness{})) }, func() { s.put(state.Put(state.Live("zone-a"), member.Liveness{Alive: true})) }},
		{"cannot archive its WAL: no room", func() { s.serve(i.ResourceID, "zone-a", member.Archived{Failing: "no room"}) }, serves},
		{"says nothing of the archive", func() {
			s.put(state.Put(state.Report("zone-a", member.ID(i.ResourceID, "m1")), member.Report{Ready: true}))
		}, serves},
		{"is stopped", func() { put(func(i *spec.Instance) { i.Stopped = true }) }, func() { put(func(*spec.Instance) {}) }},
		{"not been available", func() { s.put(state.Delete(state.Layout(i.ResourceID))) }, serves},
		{"not taken over", func() { s.put(state.Put(state.Hold(i.ResourceID), 1)) }, func() { s.put(state.Delete(state.Hold(i.ResourceID))) }},
		{"does not archive its WAL in repository main", func() {
			key := state.Assign("zone-a", member.ID(i.ResourceID, "m1"))
			s.put(state.Put(key, member.Assignment{ID: member.ID(i.ResourceID, "m1"), Generation: 2}))
		}, serves},
		{"operation other (backup) comes first", func() {
			r, err := operation.New("other", operation.Kind{Name: "backup", Within: time.Hour}, aboutOf(i), backup.TakeArgs{Repository: "main"}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			r.Next = time.Now().Add(time.Hour)
			s.put(state.Put(state.Operation("other"), r), state.Put(state.BackupPart(i.ResourceID, "main"), backup.Part{Operation: "other"}))
		}, func() { s.put(state.Put(state.OperationCancel("other"), operation.Wish{By: "KEY"})) }},
	} {
		c.hinder()
		id := s.snapshot(i, fmt.Sprintf("s%d", n), backup.Take, nil)
		s.waits(id, c.why)
		c.mend()
		s.ends(id, operation.Done)
	}
	s.clean(i.ResourceID)
}

func TestABackupThatCannotBe(t *testing.T) {
	s := newSite(t)
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	told := ""
	refused := func(name, why string, change func(*backup.TakeArgs)) {
		t.Helper()
		r := s.ends(s.snapshot(i, name, backup.Take, change), operation.Failed)
		if got := s.shot(name); got.State != backup.Failed || got.Reason != r.Reason || !strings.Contains(r.Reason, why) {
			t.Errorf("%+v, snapshot %+v", r, got)
		}
		if got := s.events("orders"); got != told {
			t.Errorf("%s: events %q, want %q", name, got, told)
		}
		s.clean(i.ResourceID)
	}
	told = "014"
	refused("nowhere", "no such repository", func(a *backup.TakeArgs) { a.Repository = "other" })
	s.yard.set(func() { s.yard.fails["zone-a"] = "!the disk is broken" })
	told = "014 014"
	refused("broken", "the disk is broken", nil)
	s.put(state.Delete(state.Instance(shop.Account, shop.Region, "orders")))
	refused("gone", "the database is gone", nil)
}

// TestCancelled: nothing is left of a snapshot that was cancelled, and Tidy removes its backup.
func TestCancelled(t *testing.T) {
	s := newSite(t)
	s.yard.slow = true
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	id := s.snapshot(i, "first", backup.Take, nil)
	testkit.Eventually(t, 20*time.Second, func() error {
		if r := s.operation(id); r.Progress.Of != 2 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	s.put(state.Put(state.OperationCancel(id), operation.Wish{By: "KEY"}))
	s.ends(id, operation.Cancelled)
	if got := s.shot("first"); got.Name != "" || s.events("orders") != "" {
		t.Errorf("snapshot %+v, events %q", got, s.events("orders"))
	}
	s.clean(i.ResourceID)
}

// TestADeletedDatabaseIsNotBackedUp: a deletion need not wait for an automated backup.
func TestADeletedDatabaseIsNotBackedUp(t *testing.T) {
	c := midnight(t)
	c.yard.slow = true
	i := c.instance("orders", "zone-a", week)
	c.begin()
	testkit.Eventually(t, 20*time.Second, func() error {
		all := c.backups.active(i.ResourceID, backup.Take)
		if len(all) != 1 || all[0].Progress.Of != 2 || len(all[0].Excludes) > 0 {
			return fmt.Errorf("%+v", all)
		}
		return nil
	})
	c.change("orders", func(i *spec.Instance) { i.Deleting = true })
	c.rest()
	if got := c.automatic(); len(got) > 0 || c.events("orders") != "0001" {
		t.Errorf("snapshots %q, events %q", got, c.events("orders"))
	}
	c.clean(i.ResourceID)
}

// TestFewAtATime: a host makes no more than a few backups at the same time.
func TestFewAtATime(t *testing.T) {
	s := newSite(t)
	s.yard.slow = true
	s.lead(s.runner, s.elect())
	var ids []string
	for n := range perHost + 2 {
		i := s.instance(fmt.Sprintf("d%d", n), "zone-a", nil)
		ids = append(ids, s.snapshot(i, fmt.Sprintf("s%d", n), backup.Take, nil))
	}
	count := func() (running, waiting int) {
		for _, id := range ids {
			switch r := s.operation(id); {
			case r.Step == stepRun:
				running++
			case strings.Contains(r.Trouble, "other backups are being made on host zone-a"):
				waiting++
			}
		}
		return running, waiting
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		if running, waiting := count(); running != perHost || waiting != 2 {
			return fmt.Errorf("%d run, %d wait", running, waiting)
		}
		return nil
	})
	s.yard.set(func() { s.yard.slow = false })
	for _, id := range ids {
		s.ends(id, operation.Done)
	}
}

// TestAFinalSnapshot: the database is deleted when its snapshot is there, and its automated backups
// stay if they shall.
func TestAFinalSnapshot(t *testing.T) {
	for _, drop := range []bool{false, true} {
		s := newSite(t)
		s.lead(s.runner, s.elect())
		i := s.instance("orders", "zone-a", func(i *spec.Instance) { i.Final, i.BackupRetention = "last", 7 })
		until := time.Now().UTC().Add(time.Minute).Truncate(time.Second)
		s.serve(i.ResourceID, "zone-a", member.Archived{Restorable: member.Mark{At: until}})
		s.put(state.Put(state.Automated(i.ResourceID), backup.Automated{Scope: shop, Name: "orders", Database: i.ResourceID, Repository: "main", Retention: 7}))
		s.ends(s.snapshot(i, "last", backup.Final, func(a *backup.TakeArgs) { a.DropAutomated = drop }), operation.Done)
		now, err := state.Load[spec.Instance](s.cache, state.Instance(shop.Account, shop.Region, "orders"))
		if err != nil || !now.Value.Deleting || now.Value.Generation != 2 || s.shot("last").State != backup.Available {
			t.Errorf("%+v, %v", now.Value, err)
		}
		a, err := state.Load[backup.Automated](s.cache, state.Automated(i.ResourceID))
		if err != nil || a.Value.Retained == drop || !drop && !a.Value.Until.Equal(until) {
			t.Errorf("drop %t: %+v, %v", drop, a.Value, err)
		}
	}
}

// TestWhatIsPromisedOfWhatIsGone: nobody knows whether all is there that was committed after the newest
// mark.
func TestWhatIsPromisedOfWhatIsGone(t *testing.T) {
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	made := func(after time.Duration) backup.Backup {
		return backup.Backup{Label: after.String(), Stop: noon.Add(after)}
	}
	for name, c := range map[string]struct {
		all  []backup.Backup
		mark time.Duration
		want time.Duration
	}{
		"a mark after all backups":      {[]backup.Backup{made(-time.Hour)}, time.Minute, time.Minute},
		"one before the final snapshot": {[]backup.Backup{made(-time.Hour)}, -time.Minute, -time.Minute},
		"one before the first backup":   {nil, -time.Minute, 0},
	} {
		if got := until(c.all, made(0), noon.Add(c.mark)); !got.Equal(noon.Add(c.want)) {
			t.Errorf("%s: %s, want %s", name, got, noon.Add(c.want))
		}
	}
	if got := until(nil, made(0), time.Time{}); !got.Equal(noon) {
		t.Errorf("nobody has a mark: %s", got)
	}
}

// TestAFinalSnapshotFails: then the database lives on.
func TestAFinalSnapshotFails(t *testing.T) {
	s := newSite(t)
	s.yard.fails["zone-a"] = "!no"
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", func(i *spec.Instance) { i.Final = "last" })
	s.ends(s.snapshot(i, "last", backup.Final, nil), operation.Failed)
	now, err := state.Load[spec.Instance](s.cache, state.Instance(shop.Account, shop.Region, "orders"))
	if err != nil || now.Value.Going() || s.shot("last").State != backup.Failed {
		t.Errorf("%+v, %v", now.Value, err)
	}
}

// TestLostWAL: the backup after it is a full one, and says what cannot be restored.
func TestLostWAL(t *testing.T) {
	s := newSite(t)
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", func(i *spec.Instance) { i.BackupRetention = 1 })
	s.ends(s.snapshot(i, "before", backup.Take, nil), operation.Done)
	gap := time.Now().UTC().Truncate(time.Second)
	s.serve(i.ResourceID, "zone-a", member.Archived{Broken: "000000010000000000000007", Restorable: member.Mark{At: gap}})
	s.ends(s.snapshot(i, "after", backup.Take, nil), operation.Done)
	all := s.records(i.ResourceID)
	if len(all) != 2 || all[0].Heals || !all[1].Heals || !all[1].Gap.Equal(gap) || all[1].Kind != backup.Full || !all[1].Automated {
		t.Errorf("%+v", all)
	}
}

// TestLostWALIsNotForgotten: a host that has made the backup which mends it knows of nothing any more.
func TestLostWALIsNotForgotten(t *testing.T) {
	s := newSite(t)
	forget := make(chan struct{})
	s.yard.forget = forget
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	gap := time.Now().UTC().Truncate(time.Second)
	s.serve(i.ResourceID, "zone-a", member.Archived{Broken: "000000010000000000000007", Restorable: member.Mark{At: gap}})
	id := s.snapshot(i, "after", backup.Take, nil)
	testkit.Eventually(t, 20*time.Second, func() error {
		if r := s.operation(id); r.Step != stepRecord {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	s.serve(i.ResourceID, "zone-a", member.Archived{Restorable: member.Mark{At: gap.Add(time.Minute)}})
	close(forget)
	r := s.ends(id, operation.Done)
	if all := s.records(i.ResourceID); len(all) != 1 || !all[0].Heals || !all[0].Gap.Equal(gap) || r.Notes[noteFailures] != "1" {
		t.Errorf("%+v, %+v", all, r)
	}
}

// TestAPrimaryThatWasReplaced cannot tell whether the backup that it ended is of any use. Its successor
// can.
func TestAPrimaryThatWasReplaced(t *testing.T) {
	s := newSite(t)
	s.yard.slow = true
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	id := s.snapshot(i, "first", backup.Take, nil)
	testkit.Eventually(t, 20*time.Second, func() error {
		if r := s.operation(id); r.Progress.Of != 2 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	s.serve(i.ResourceID, "zone-b", member.Archived{})
	s.yard.set(func() { s.yard.slow = false })
	s.ends(id, operation.Done)
	if asked := s.yard.asked; len(asked) != 2 || asked[1].Member != "m2" {
		t.Errorf("asked for %+v", asked)
	}
	if all := s.records(i.ResourceID); len(all) != 1 || all[0].Member != "m2" {
		t.Errorf("%+v", all)
	}
	s.clean(i.ResourceID)
}

// TestNoBackupInTheClear: what is shown as encrypted is encrypted.
func TestNoBackupInTheClear(t *testing.T) {
	s := newSite(t)
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", func(i *spec.Instance) { i.StorageKey = "key-1" })
	s.put(state.Put(state.Repository("main"), backup.Repository{Name: "main", Default: true}))
	if r := s.ends(s.snapshot(i, "first", backup.Take, nil), operation.Failed); !strings.Contains(r.Reason, "it encrypts nothing") {
		t.Errorf("%+v", r)
	}
	s.put(state.Put(state.Repository("main"), backup.Repository{Name: "main", Key: []byte("sealed"), Default: true}))
	s.ends(s.snapshot(i, "second", backup.Take, nil), operation.Done)
}
