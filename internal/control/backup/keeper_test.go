package backup

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// clock is the time of the keeper and of hosts, which a test moves.
type clock struct {
	*site
	leading state.Op
	now     time.Time
}

// midnight returns a clock that is at the beginning of the day that follows. Operations are carried
// out as they are begun.
func midnight(t *testing.T) *clock {
	t.Helper()
	s := newSite(t)
	c := &clock{site: s, leading: s.elect()}
	s.lead(s.runner, c.leading)
	c.set(time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour))
	return c
}

func (c *clock) set(now time.Time) {
	c.now = now
	c.yard.set(func() { c.yard.ahead = time.Until(now) })
}

func (c *clock) pass(d time.Duration) { c.set(c.now.Add(d)) }

// round has the keeper look at everything, and waits until nothing is under way.
func (c *clock) round() {
	c.t.Helper()
	c.begin()
	c.rest()
}

// begin has the keeper look at everything.
func (c *clock) begin() {
	c.t.Helper()
	c.backups.round(c.t.Context(), c.leading, c.now, true)
	if err := c.backups.fresh(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	for what, why := range c.backups.told {
		c.t.Errorf("%s: %s", what, why)
	}
}

func (c *clock) rest() {
	c.t.Helper()
	testkit.Eventually(c.t, 20*time.Second, func() error {
		if all := c.backups.active("", backup.Take, backup.Final, backup.Tidy); len(all) > 0 {
			return fmt.Errorf("%s is under way: %+v", all[0].ID, all[0])
		}
		return nil
	})
	if err := c.backups.fresh(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
}

// automatic returns the names of the automated snapshots, the oldest first.
func (c *clock) automatic() []string {
	var all []string
	for _, r := range state.ViewAll[backup.Snapshot](c.cache, state.SnapshotRoot) {
		if r.Value.Automated {
			all = append(all, r.Value.Name)
		}
	}
	return all
}

func (c *clock) automatedOf(id string) (backup.Automated, bool) {
	r, err := state.Load[backup.Automated](c.cache, state.Automated(id))
	return r.Value, err == nil
}

// change changes the record of an instance as the API does.
func (c *clock) change(name string, change func(*spec.Instance)) {
	c.t.Helper()
	_, err := state.Update(c.t.Context(), c.store, state.Instance(shop.Account, shop.Region, name), func(i *spec.Instance) error {
		change(i)
		i.Generation++
		return nil
	})
	if err == nil {
		err = c.backups.fresh(c.t.Context())
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// remove does what reconcile does when a database is gone.
func (c *clock) remove(i spec.Instance) {
	c.put(state.Delete(state.Instance(shop.Account, shop.Region, i.Name)), state.Delete(state.Layout(i.ResourceID)))
}

func week(i *spec.Instance) { i.BackupRetention = 7 }

// TestEachDay: the first backup is made at once, the next ones once in each window.
func TestEachDay(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", week)
	day := c.now.Format("2006-01-02")
	c.round()
	first := "rds:orders-" + day + "-00-00"
	if got := c.automatic(); !slices.Equal(got, []string{first}) {
		t.Fatalf("snapshots %q", got)
	}
	a, _ := c.automatedOf(i.ResourceID)
	if a.Repository != "main" || a.Retention != 7 || a.Name != "orders" || a.Instance == nil || !a.Made.Equal(a.Window) || a.Attempt != 1 {
		t.Errorf("%+v", a)
	}
	if all := c.records(i.ResourceID); len(all) != 1 || !all[0].Automated || all[0].Operation != "auto-db-orders-"+c.now.Format("200601021504") {
		t.Errorf("backups %+v", all)
	}
	if c.events("orders") != "0001 0002" || c.events(first) != "0090 0091" {
		t.Errorf("events %q, %q", c.events("orders"), c.events(first))
	}
	c.pass(2*time.Hour + 59*time.Minute)
	c.round()
	if got := c.automatic(); len(got) != 1 {
		t.Errorf("before the window: %q", got)
	}
	for range 3 {
		c.pass(5 * time.Minute)
		c.round()
	}
	if got := c.automatic(); !slices.Equal(got, []string{first, "rds:orders-" + day + "-03-04"}) {
		t.Errorf("in the window: %q", got)
	}
	c.pass(23 * time.Hour)
	c.round()
	c.pass(-10 * time.Hour) // somebody sets the clock
	c.round()
	c.pass(10*time.Hour + 55*time.Minute)
	c.round()
	if got := c.automatic(); len(got) != 3 {
		t.Errorf("the day after: %q", got)
	}
	if all := c.records(i.ResourceID); all[2].Kind != backup.Incremental || len(all[2].Needs) != 2 {
		t.Errorf("%+v", all[2])
	}
}

// TestAMissedWindow is made up for as soon as the database serves again.
func TestAMissedWindow(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", week)
	c.pass(3 * time.Hour)
	c.round()
	c.serve(i.ResourceID, "", member.Archived{})
	c.pass(24 * time.Hour)
	c.round()
	c.pass(2 * time.Hour)
	c.serve(i.ResourceID, "zone-b", member.Archived{})
	c.round()
	c.round()
	if got := c.automatic(); len(got) != 2 || !strings.HasSuffix(got[1], "-05-00") {
		t.Errorf("%q", got)
	}
	c.pass(22 * time.Hour)
	c.round()
	if got := c.automatic(); len(got) != 3 || !strings.HasSuffix(got[2], "-03-00") {
		t.Errorf("%q", got)
	}
}

// TestOneOfTwo: of two control planes only one begins the backup of a day, also if the one that
// led before does not know yet that it does not lead any more.
func TestOneOfTwo(t *testing.T) {
	s := newSite(t)
	i := s.instance("orders", "zone-a", week)
	old := s.elect()
	look := func(leading state.Op) *keeper {
		return &keeper{
			Backups: s.backups, sight: s.backups.look(), leading: leading, now: time.Now().UTC(),
			ofAccount: map[string]int{}, onHost: map[string]int{},
		}
	}
	one, two := look(old), look(old)
	leads := s.elect()
	if err := one.automate(t.Context(), one.targets[i.ResourceID]); !errors.Is(err, state.ErrConflict) {
		t.Errorf("one that leads no more begins a backup: %v", err)
	}
	one.leading, two.leading = leads, leads
	if err := one.automate(t.Context(), one.targets[i.ResourceID]); err != nil {
		t.Fatal(err)
	}
	two.now = two.now.Add(time.Minute) // it would have another name
	if err := two.automate(t.Context(), two.targets[i.ResourceID]); !errors.Is(err, state.ErrConflict) {
		t.Errorf("the second one begins it, too: %v", err)
	}
	if err := s.backups.fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(s.cache.Keys(state.OperationRoot)); n != 1 {
		t.Errorf("%d operations", n)
	}
}

// TestAFailedDay: another backup is tried after a pause, until one is made.
func TestAFailedDay(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", week)
	c.yard.fails["zone-a"] = "!no room"
	c.round()
	if got := c.automatic(); len(got) != 0 || !strings.Contains(c.events("orders"), "014") {
		t.Errorf("snapshots %q, events %q", got, c.events("orders"))
	}
	ids := func() []string {
		var all []string
		for _, id := range c.cache.Names(state.OperationRoot) {
			if strings.HasPrefix(id, "auto-") {
				all = append(all, id)
			}
		}
		return all
	}
	first := ids()
	c.set(time.Now().UTC().Add(firstRetry - time.Minute)) // operations end by the real clock
	c.round()
	if got := ids(); len(got) != 1 {
		t.Errorf("tried again at once: %q", got)
	}
	c.yard.set(func() { delete(c.yard.fails, "zone-a") })
	c.set(time.Now().UTC().Add(firstRetry + time.Minute))
	c.round()
	if got := ids(); len(got) != 2 || got[1] != first[0]+"-2" {
		t.Errorf("tried again as %q", got)
	}
	if a, _ := c.automatedOf(i.ResourceID); !a.Made.Equal(a.Window) || a.Attempt != 2 || len(c.automatic()) != 1 {
		t.Errorf("%+v, snapshots %q", a, c.automatic())
	}
}

// TestABrokenArchive is healed by a full backup, once WAL can be archived again.
func TestABrokenArchive(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", week)
	c.round()
	broken := member.Archived{Broken: "000000010000000000000007", Failing: "no room", Restorable: member.Mark{At: c.now}}
	c.serve(i.ResourceID, "zone-a", broken)
	c.pass(time.Hour)
	c.round()
	if all := c.records(i.ResourceID); len(all) != 1 {
		t.Errorf("while nothing is archived: %+v", all)
	}
	broken.Failing = ""
	c.serve(i.ResourceID, "zone-a", broken)
	c.round()
	all := c.records(i.ResourceID)
	if len(all) != 2 || all[1].Kind != backup.Full || !all[1].Heals || !all[1].Automated || !strings.HasPrefix(all[1].Operation, "heal-") {
		t.Fatalf("%+v", all)
	}
	c.pass(time.Minute)
	c.round() // the agent has not said yet that it is healed
	if all := c.records(i.ResourceID); len(all) != 2 || len(c.automatic()) != 1 {
		t.Errorf("%+v, %q", all, c.automatic())
	}
	if _, ok := backup.Base(all, c.now.Add(-time.Minute*30)); ok {
		t.Error("a moment in the gap can be restored")
	}
}

// TestWithoutAutomatedBackups: when the retention period becomes 0 they go.
func TestWithoutAutomatedBackups(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", week)
	c.round()
	c.ends(c.snapshot(i, "mine", backup.Take, nil), operation.Done)
	c.pass(3 * time.Hour)
	c.round()
	c.ends(c.snapshot(i, "mine-too", backup.Take, nil), operation.Done)
	c.change("orders", func(i *spec.Instance) { i.BackupRetention = 0 })
	c.round()
	c.round()
	if _, there := c.automatedOf(i.ResourceID); there || len(c.automatic()) > 0 {
		t.Errorf("snapshots %q", c.automatic())
	}
	// All of them are needed by the newest one.
	if n := len(c.yard.stored[i.ResourceID]); n != 4 || len(c.records(i.ResourceID)) != 4 {
		t.Errorf("%d backups, %d records", n, len(c.records(i.ResourceID)))
	}
	c.pass(24 * time.Hour)
	c.round()
	if got := c.automatic(); len(got) > 0 {
		t.Errorf("snapshots %q", got)
	}
	last := c.yard.tidied[len(c.yard.tidied)-1]
	if last.Archive != 1 || last.Gone {
		t.Errorf("%+v", last)
	}
}

// TestADeletedDatabase: what is retained stays as long as it was promised, and then all goes.
func TestADeletedDatabase(t *testing.T) {
	for _, retained := range []bool{false, true} {
		c := midnight(t)
		i := c.instance("orders", "zone-a", week)
		c.round()
		until := c.now.Add(time.Hour)
		c.serve(i.ResourceID, "zone-a", member.Archived{Restorable: member.Mark{At: until}})
		c.pass(time.Hour)
		c.change("orders", func(i *spec.Instance) { i.Deleting = true })
		if retained {
			_, err := state.Update(t.Context(), c.store, state.Automated(i.ResourceID), func(a *backup.Automated) error {
				a.Retained, a.Deleted = true, c.now
				return nil
			})
			if err == nil {
				err = c.backups.fresh(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		c.round()
		c.remove(i)
		c.round()
		a, there := c.automatedOf(i.ResourceID)
		if there != retained || there && !a.Until.Equal(until) {
			t.Errorf("retained %t: %+v", retained, a)
		}
		if retained {
			if n := len(c.yard.stored[i.ResourceID]); n != 1 || len(c.automatic()) != 1 {
				t.Errorf("%d backups, snapshots %q", n, c.automatic())
			}
			c.pass(7*24*time.Hour + time.Minute)
			c.round()
			c.round()
		}
		c.gone(i)
	}
}

// gone fails if anything is left of a database.
func (c *clock) gone(i spec.Instance) {
	c.t.Helper()
	c.round()
	c.round()
	for _, root := range []string{state.BackupRoot, state.SnapshotRoot, state.AutomatedRoot, state.BackupPartRoot, state.JobRoot} {
		if keys := c.cache.Keys(root); len(keys) > 0 {
			c.t.Errorf("left: %q", keys)
		}
	}
	if left := c.yard.stored[i.ResourceID]; len(left) > 0 || !c.yard.tidied[len(c.yard.tidied)-1].Gone {
		c.t.Errorf("in the repository: %+v, last tidied by %+v", left, c.yard.tidied[len(c.yard.tidied)-1])
	}
}

// TestASnapshotOfADeletedDatabase stays until it is deleted.
func TestASnapshotOfADeletedDatabase(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", nil)
	c.ends(c.snapshot(i, "mine", backup.Take, nil), operation.Done)
	c.remove(i)
	c.pass(100 * 24 * time.Hour)
	c.round()
	if len(c.yard.stored[i.ResourceID]) != 1 || c.shot("mine").State != backup.Available {
		t.Errorf("%+v", c.yard.stored)
	}
	c.put(state.Delete(state.Snapshot(shop.Account, shop.Region, "mine")))
	c.gone(i)
}

// TestARestoreUnderWay keeps what it restores, although the snapshot is deleted meanwhile.
func TestARestoreUnderWay(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", nil)
	c.ends(c.snapshot(i, "mine", backup.Take, nil), operation.Done)
	c.remove(i)
	restored := c.instance("copy", "zone-a", func(n *spec.Instance) {
		n.Origin = &spec.Origin{Database: i.ResourceID, Repository: "main", Label: "B001"}
	})
	c.put(state.Put(state.Layout(restored.ResourceID), plan.Layout{ID: restored.ResourceID}))
	c.put(state.Delete(state.Snapshot(shop.Account, shop.Region, "mine")))
	c.round()
	if len(c.yard.stored[i.ResourceID]) != 1 {
		t.Fatalf("%+v", c.yard.tidied)
	}
	c.serve(restored.ResourceID, "zone-a", member.Archived{})
	c.round()
	if len(c.yard.stored[i.ResourceID]) != 0 {
		t.Errorf("%+v", c.yard.stored)
	}
}

// TestWhatIsLeftOfACancelledBackup goes with the next Tidy, and the archive is tidied each day.
func TestWhatIsLeftOfACancelledBackup(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", nil)
	c.ends(c.snapshot(i, "mine", backup.Take, nil), operation.Done)
	c.yard.set(func() {
		c.yard.backUp(backup.BackupJob{Database: i.ResourceID, Repository: "main", Operation: "cancelled"})
	})
	c.round()
	c.pass(24*time.Hour + time.Minute)
	c.round()
	if left := c.yard.stored[i.ResourceID]; len(left) != 1 || left[0].Label != "B001" {
		t.Errorf("%+v", left)
	}
	n := len(c.yard.tidied)
	c.round()
	if len(c.yard.tidied) != n {
		t.Errorf("tidied again: %+v", c.yard.tidied)
	}
}

// TestChanges: the record of automated backups shows the database as it is.
func TestChanges(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", week)
	c.round()
	c.change("orders", func(i *spec.Instance) { i.Class, i.BackupRetention = "db.m5.large", 3 })
	c.begin()
	if a, _ := c.automatedOf(i.ResourceID); a.Instance.Class != "db.m5.large" || a.Retention != 3 {
		t.Errorf("%+v", a)
	}
}

// TestARepositoryThatWasRemoved: the usual one takes its place.
func TestARepositoryThatWasRemoved(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", week)
	c.put(state.Put(state.Automated(i.ResourceID), backup.Automated{Scope: shop, Database: i.ResourceID, Repository: "removed", Window: c.now, Made: c.now}))
	c.begin()
	if a, _ := c.automatedOf(i.ResourceID); a.Repository != "main" || len(c.automatic()) > 0 {
		t.Errorf("%+v", a)
	}
}

// TestWithoutARepository nothing is begun.
func TestWithoutARepository(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", week)
	c.put(state.Delete(state.Repository("main")))
	c.begin()
	if _, there := c.automatedOf(i.ResourceID); there || len(c.automatic()) > 0 {
		t.Errorf("snapshots %q", c.automatic())
	}
}

// TestTidyWaits: for a backup that is being made, for a host that can, and until a database is taken
// over after the home was restored.
func TestTidyWaits(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", nil)
	c.ends(c.snapshot(i, "mine", backup.Take, nil), operation.Done)
	c.yard.set(func() { c.yard.slow = true })
	id := c.snapshot(i, "second", backup.Take, nil)
	testkit.Eventually(t, 20*time.Second, func() error {
		if r := c.operation(id); r.Step != stepRun {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	r, err := operation.New("tidy", backup.Tidy, aboutOf(i), backup.TidyArgs{Repository: "main"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c.put(state.Put(state.Operation("tidy"), r))
	c.waits("tidy", "operation "+id+" (backup) comes first")
	c.yard.set(func() { c.yard.slow = false })
	c.ends("tidy", operation.Done)
	c.ends(id, operation.Done)
	c.yard.set(func() { c.yard.fails["zone-a"], c.yard.fails["zone-b"] = "no room", "no room" })
	r.ID = "again"
	c.put(state.Put(state.Operation("again"), r))
	c.waits("again", "host zone-a could not tidy: no room")
	c.yard.set(func() { clear(c.yard.fails) })
	c.ends("again", operation.Done)
	c.clean(i.ResourceID)
	c.remove(i)
	c.put(state.Put(state.Hold(i.ResourceID), 1), state.Delete(state.Snapshot(shop.Account, shop.Region, "mine")), state.Delete(state.Snapshot(shop.Account, shop.Region, "second")))
	n := len(c.yard.tidied)
	c.round()
	if len(c.yard.tidied) != n {
		t.Errorf("tidied before it is taken over: %+v", c.yard.tidied[n:])
	}
	c.put(state.Delete(state.Hold(i.ResourceID)))
	c.gone(i)
}

// TestManyAtOnce: no host is asked for more than a few at a time, and all get their backup.
func TestManyAtOnce(t *testing.T) {
	c := midnight(t)
	c.yard.slow = true
	for n := range 3 * mostOnHost {
		c.instance(fmt.Sprintf("d%02d", n), "zone-a", week)
	}
	c.begin()
	c.begin()
	if n := len(c.backups.active("", backup.Take)); n != mostOnHost {
		t.Errorf("%d are under way", n)
	}
	c.yard.set(func() { c.yard.slow = false })
	for range 4 {
		c.round()
	}
	if n := len(c.automatic()); n != 3*mostOnHost {
		t.Errorf("%d snapshots", n)
	}
}

// TestWhoIsNotBackedUp: those that are stopped, follow others, or are just made.
func TestWhoIsNotBackedUp(t *testing.T) {
	c := midnight(t)
	c.instance("stopped", "zone-a", func(i *spec.Instance) { i.BackupRetention, i.Stopped = 1, true })
	c.instance("follows", "zone-a", func(i *spec.Instance) { i.BackupRetention, i.Source = 1, "db-OTHER" })
	c.instance("leaves", "zone-a", func(i *spec.Instance) { i.BackupRetention, i.Final = 1, "last" })
	c.instance("member", "zone-a", func(i *spec.Instance) { i.BackupRetention, i.Cluster = 1, "cluster-A" })
	young := c.instance("young", "zone-a", week)
	c.put(state.Put(state.Layout(young.ResourceID), plan.Layout{ID: young.ResourceID}))
	c.round()
	if n := len(c.backups.databases()); n != 4 {
		t.Errorf("databases %q", slices.Sorted(maps.Keys(c.backups.databases())))
	}
	if got := c.automatic(); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// TestACluster is backed up as an instance is, with events of its own.
func TestACluster(t *testing.T) {
	c := midnight(t)
	c.put(state.Put(state.Cluster(shop.Account, shop.Region, "aura"), spec.Cluster{Common: spec.Common{
		Scope: shop, Name: "aura", ResourceID: "cluster-A", BackupRetention: 1, BackupWindow: "03:00-03:30", Major: 15, CopyTagsToSnapshot: true,
		Tags: []spec.Tag{{Key: "team", Value: "blue"}},
	}}))
	c.serve("cluster-A", "zone-a", member.Archived{})
	c.round()
	all := state.LoadAll[backup.Snapshot](c.cache, state.ClusterSnapshotRoot)
	if len(all) != 1 || all[0].Value.State != backup.Available || all[0].Value.Cluster == nil || len(all[0].Value.Tags) != 1 {
		t.Fatalf("%+v", all)
	}
	if got := c.events(all[0].Value.Name); got != "0168 0169" || c.events("aura") != "" {
		t.Errorf("events %q, %q", got, c.events("aura"))
	}
}

// What room is left in a repository is for WAL: no automated backup begins there until there is more.
func TestNoAutomatedBackupWhereLittleIsFree(t *testing.T) {
	c := midnight(t)
	scarce := "4 of 100 MiB are free"
	c.backups.Low = func(name string) string {
		if name != "main" {
			t.Errorf("asked for %s", name)
		}
		return scarce
	}
	i := c.instance("orders", "zone-a", func(i *spec.Instance) { i.BackupRetention = 7 })
	c.round()
	if made := c.automatic(); len(made) > 0 {
		t.Errorf("made %v", made)
	}
	// What is asked for is made.
	c.ends(c.snapshot(i, "asked", backup.Take, nil), operation.Done)
	scarce = ""
	c.round()
	if made := c.automatic(); len(made) != 1 {
		t.Errorf("made %v", made)
	}
}

// A database that an operation makes for its own ends has no automated backups. Its first one is made
// when it is a user's.
func TestAHiddenDatabaseHasNoAutomatedBackups(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", func(i *spec.Instance) { week(i); i.MadeBy = "rewind-1" })
	c.round()
	if _, _, there := c.cache.Raw(state.Automated(i.ResourceID)); there || len(c.records(i.ResourceID)) > 0 {
		t.Error("it is backed up")
	}
	c.change("orders", func(i *spec.Instance) { i.MadeBy = "" })
	c.round()
	if len(c.records(i.ResourceID)) != 1 {
		t.Errorf("it has %+v", c.records(i.ResourceID))
	}
}
