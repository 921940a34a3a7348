package backup

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// TestADamagedBackupIsFollowedByAFullOne: a drill finds files that are damaged. The backups that have
// them are marked, and no others. A full backup begins at once, and is tried at once.
func TestADamagedBackupIsFollowedByAFullOne(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", week)
	c.round() // B001, full
	c.pass(24 * time.Hour)
	c.round() // B002, upon it
	all := c.records(i.ResourceID)
	if len(all) != 2 || all[1].Kind != backup.Incremental {
		t.Fatalf("%+v", all)
	}
	c.yard.set(func() {
		c.yard.drill = backup.Drilled{Unrestorable: "the backup B002 is damaged in the repository: B001/bundle/1 is not what was written", Backups: []string{"B001"}}
	})
	c.ends(c.drill(i, "one"), operation.Done)
	for _, b := range c.records(i.ResourceID) {
		if !strings.Contains(b.Damaged, "B001/bundle/1") || !b.Located {
			t.Errorf("%+v", b)
		}
	}
	c.yard.set(func() { c.yard.drill = backup.Drilled{} })
	c.pass(time.Minute)
	c.begin()
	c.rest()
	all = c.records(i.ResourceID)
	if len(all) != 3 || all[2].Kind != backup.Full || all[2].Damaged != "" || all[2].Heals || !heals(all[2]) || !all[2].Automated {
		t.Fatalf("%+v", all)
	}
	c.pass(time.Minute)
	c.proves(i.ResourceID, all[2].Label)
	c.pass(time.Minute)
	c.round()
	if n := len(c.records(i.ResourceID)); n != 3 {
		t.Errorf("%d backups", n)
	}
}

// proves has the keeper look, and waits until a drill has proved a backup.
func (c *clock) proves(database, label string) {
	c.t.Helper()
	c.round()
	testkit.Eventually(c.t, 20*time.Second, func() error {
		if d := c.drilled(database); d.Label != label || d.Failed != "" {
			return fmt.Errorf("the newest drill is %+v", d)
		}
		return nil
	})
}

// TestARepositoryThatDamagesAll: if what heals is damaged as well, it is tried once a day.
func TestARepositoryThatDamagesAll(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", week)
	c.round()
	c.yard.set(func() { c.yard.drill = backup.Drilled{Unrestorable: "damaged"} })
	c.ends(c.drill(i, "one"), operation.Done)
	for range 8 {
		c.round()
		c.pass(20 * time.Minute)
	}
	if n := len(c.records(i.ResourceID)); n != 2 {
		t.Errorf("%d backups", n)
	}
}

// TestADamagedDatabaseIsNotBackedUpAtOnce: the next backup would have the same damage.
func TestADamagedDatabaseIsNotBackedUpAtOnce(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", week)
	c.round()
	c.yard.set(func() { c.yard.drill = backup.Drilled{Faults: 1, Damaged: []string{"an index lacks a row"}} })
	c.ends(c.drill(i, "one"), operation.Done)
	c.round()
	if n := len(c.records(i.ResourceID)); n != 1 {
		t.Errorf("%d backups", n)
	}
}

// TestLostWALIsHealed: behind WAL that a drill missed nothing is promised, until a full backup was made,
// and the backup that was tried is as good as before.
func TestLostWALIsHealed(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", week)
	c.round()
	was := c.now
	c.pass(3 * time.Hour)
	c.serve(i.ResourceID, "zone-a", member.Archived{Restorable: member.Mark{At: c.now, Timeline: 1, LSN: 190}})
	reaches := was.Add(time.Hour)
	c.yard.set(func() {
		c.yard.drill = backup.Drilled{
			Unrestorable: "WAL file 000000010000000000000005 is missing", LostWAL: "000000010000000000000005", EndLSN: 160, Reaches: reaches,
		}
	})
	c.ends(c.drill(i, "one"), operation.Done)
	if !c.yard.drills[0].Newest {
		t.Errorf("asked for %+v", c.yard.drills[0])
	}
	if b := c.records(i.ResourceID)[0]; b.Damaged != "" {
		t.Errorf("%+v", b)
	}
	if at := c.backups.restorable(i.ResourceID).At; !at.Equal(reaches) {
		t.Errorf("restorable until %s, want %s", at, reaches)
	}
	// Another drill looks at the same WAL.
	c.ends(c.drill(i, "again"), operation.Done)
	if !c.yard.drills[1].Newest {
		t.Errorf("asked for %+v", c.yard.drills[1])
	}
	c.yard.set(func() { c.yard.drill = backup.Drilled{Newest: c.now.Add(24 * time.Hour)} })
	c.round()
	all := c.records(i.ResourceID)
	if len(all) != 2 || !all[1].Heals || !all[1].Gap.Equal(reaches) || all[1].Kind != backup.Full {
		t.Fatalf("%+v", all)
	}
	if at := c.backups.restorable(i.ResourceID).At; !at.Equal(was.Add(3 * time.Hour)) {
		t.Errorf("restorable until %s", at)
	}
	c.pass(time.Minute)
	c.proves(i.ResourceID, all[1].Label)
	if n := len(c.records(i.ResourceID)); n != 2 {
		t.Errorf("%d backups", n)
	}
}

// TestWhatIsFoundAfterHealingIsHealedAtOnce, and does not wait as another try would.
func TestWhatIsFoundAfterHealingIsHealedAtOnce(t *testing.T) {
	s := newSite(t)
	i := s.instance("orders", "zone-a", week)
	now := time.Now().UTC()
	k := &keeper{Backups: s.backups, now: now}
	heal := backup.Backup{Database: i.ResourceID, Repository: "main", Label: "B2", Kind: backup.Full, Operation: healing + "x", Stop: now, StartLSN: 100, StopLSN: 150}
	for name, tt := range map[string]struct {
		found   backup.Drilled
		healing time.Duration // before now
		want    bool
	}{
		"lost WAL":               {backup.Drilled{LostWAL: "000000010000000000000005", EndLSN: 200}, time.Minute, true},
		"lost WAL, being healed": {backup.Drilled{LostWAL: "000000010000000000000005", EndLSN: 200}, time.Second, false},
		"lost WAL, not healed":   {backup.Drilled{LostWAL: "000000010000000000000005", EndLSN: 200}, -firstRetry, true},
		"damaged, too":           {backup.Drilled{Backups: []string{"B2"}}, time.Minute, false},
		"damaged, too, next day": {backup.Drilled{Backups: []string{"B2"}}, backup.Day, true},
	} {
		b := heal
		if len(tt.found.Backups) > 0 {
			b.Damaged, b.Located = "x", true
		}
		tt.found.Label, tt.found.Unrestorable = "B2", "x"
		s.put(state.Put(state.Backup(i.ResourceID, "main", "B2"), b), state.Put(state.Drill(i.ResourceID), backup.DrillRecord{
			Database: i.ResourceID, Repository: "main", Ended: now.Add(-30 * time.Second), Drilled: tt.found,
		}))
		a := &backup.Automated{Database: i.ResourceID, Repository: "main", Healing: now.Add(-tt.healing)}
		if tt.healing < 0 { // the other way round: begun after it was found, and long ago
			k.now, a.Healing = now.Add(firstRetry), now
		} else {
			k.now = now
		}
		if got := k.drilledBadly(a); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestLostWALOfABackupItself: without it the backup is of no use.
func TestLostWALOfABackupItself(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", week)
	c.round()
	c.yard.set(func() {
		c.yard.drill = backup.Drilled{Unrestorable: "it is missing", LostWAL: "000000010000000000000005", EndLSN: 120}
	})
	c.ends(c.drill(i, "one"), operation.Done)
	if b := c.records(i.ResourceID)[0]; b.Damaged == "" || !b.Located {
		t.Errorf("%+v", b)
	}
}

// TestWhatNoHostFinds: whoever owns a database's part may have written anything there.
func TestWhatNoHostFinds(t *testing.T) {
	for name, found := range map[string]backup.Drilled{
		"a path": {Unrestorable: "x", Backups: []string{"../../other"}},
		"no WAL": {Unrestorable: "x", LostWAL: "x/y"},
	} {
		s := newSite(t)
		s.lead(s.runner, s.elect())
		i := s.instance("orders", "zone-a", nil)
		s.ends(s.snapshot(i, "first", backup.Take, nil), operation.Done)
		s.yard.set(func() { s.yard.drill = found })
		s.ends(s.drill(i, "one"), operation.Failed)
		if _, err := state.Load[backup.DrillRecord](s.cache, state.Drill(i.ResourceID)); err == nil {
			t.Errorf("%s: there is a record", name)
		}
	}
}
