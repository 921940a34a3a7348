package backup

import (
	"strings"
	"testing"
	"time"

	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// drill begins a drill as an operator does.
func (s *site) drill(i spec.Instance, id string) string {
	s.t.Helper()
	r, err := operation.New(id, backup.Drill, aboutOf(i), backup.DrillArgs{Repository: "main", Asked: true}, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	s.put(state.Swap(state.Operation(id), 0, r))
	return id
}

func (s *site) drilled(database string) backup.DrillRecord {
	r, err := state.Load[backup.DrillRecord](s.cache, state.Drill(database))
	if err != nil {
		return backup.DrillRecord{}
	}
	return r.Value
}

func TestADrill(t *testing.T) {
	s := newSite(t)
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	r := s.ends(s.drill(i, "too-early"), operation.Failed)
	if !strings.Contains(r.Reason, "no backup") {
		t.Errorf("%+v", r)
	}
	s.ends(s.snapshot(i, "first", backup.Take, nil), operation.Done)
	promised := time.Now().UTC().Add(time.Second)
	s.serve(i.ResourceID, "zone-a", member.Archived{Restorable: member.Mark{At: promised}})
	s.yard.set(func() {
		s.yard.drill = backup.Drilled{Newest: promised.Add(time.Millisecond), Files: 2 * time.Second, Replay: time.Second, Databases: 3}
	})
	s.ends(s.drill(i, "one"), operation.Done)
	d := s.drilled(i.ResourceID)
	if d.Failed != "" || d.RTO() != 3*time.Second || d.Label != "B001" || !d.Promised.Equal(promised) || d.Host != "zone-b" || d.Worked.IsZero() || d.Operation != "one" {
		t.Errorf("%+v", d)
	}
	if asked := s.yard.drills[0]; !asked.Newest || asked.Major != 15 || asked.Label != "B001" {
		t.Errorf("asked for %+v", asked)
	}
	if b := s.records(i.ResourceID)[0]; !b.Proved.Equal(d.Ended) || b.Damaged != "" {
		t.Errorf("%+v", b)
	}
	s.clean(i.ResourceID)

	// What it finds is told, and the backup is not taken for one any more.
	s.yard.set(func() {
		s.yard.drill = backup.Drilled{Newest: promised.Add(time.Second), Faults: 2, Damaged: []string{"postgres, public.orders_pkey: it lacks a row"}}
	})
	s.ends(s.drill(i, "two"), operation.Done)
	d = s.drilled(i.ResourceID)
	if !strings.Contains(d.Failed, "orders_pkey: it lacks a row") || d.Worked.IsZero() || !d.Worked.Before(d.Ended) {
		t.Errorf("%+v", d)
	}
	if b := s.records(i.ResourceID)[0]; !strings.Contains(b.Damaged, "lacks a row") {
		t.Errorf("%+v", b)
	}
	s.clean(i.ResourceID)

	// A later one replays more WAL, and may find all pages there. The backup alone has them not.
	s.yard.set(func() { s.yard.drill = backup.Drilled{Newest: promised.Add(time.Second)} })
	s.ends(s.drill(i, "three"), operation.Done)
	if b := s.records(i.ResourceID)[0]; !strings.Contains(b.Damaged, "lacks a row") || s.drilled(i.ResourceID).Failed != "" {
		t.Errorf("%+v", b)
	}
	s.clean(i.ResourceID)
	s.put(state.Delete(state.Drill(i.ResourceID)))
	s.ends(s.snapshot(i, "second", backup.Take, nil), operation.Done)
	s.yard.set(func() { s.yard.drill = backup.Drilled{Unrestorable: "WAL is missing"} })
	s.ends(s.drill(i, "four"), operation.Done)
	if b := s.records(i.ResourceID)[1]; !strings.Contains(b.Damaged, "WAL is missing") {
		t.Errorf("%+v", b)
	}
	s.clean(i.ResourceID)
	s.yard.set(func() { s.yard.drill = backup.Drilled{Newest: promised.Add(time.Second)} })
	s.ends(s.drill(i, "five"), operation.Done)
	if b := s.records(i.ResourceID)[1]; b.Damaged != "" || b.Proved.IsZero() {
		t.Errorf("%+v", b)
	}
	if told := s.events("orders"); !strings.Contains(told, "015") || !strings.Contains(told, "016") {
		t.Errorf("events %s", told)
	}
}

// TestADrillThatCannotBeMade: it says why it waits, and another host does what one could not.
func TestADrillThatCannotBeMade(t *testing.T) {
	s := newSite(t)
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	s.ends(s.snapshot(i, "first", backup.Take, nil), operation.Done)
	full := func(host string, free int64) {
		s.put(state.Put(state.Host(host), member.Host{Name: host, DiskFree: free, Majors: map[int]string{15: "15.1"}}))
	}
	full("zone-a", 10)
	full("zone-b", 10)
	id := s.drill(i, "one")
	s.waits(id, "which has most, has 0 MiB")
	s.yard.set(func() { s.yard.fails["zone-b"] = "it broke" })
	full("zone-b", 1<<30)
	s.waits(id, "it broke")
	s.put(state.Put(state.Live("zone-b"), member.Liveness{}))
	full("zone-a", 1<<30)
	if r := s.ends(id, operation.Done); r.Notes[noteHost] != "zone-a" {
		t.Errorf("%+v", r)
	}
	if d := s.drilled(i.ResourceID); d.Failed != "" {
		t.Errorf("%+v", d)
	}
	s.clean(i.ResourceID)
}

// TestADrillAvoidsAHostThatRefused: the host with the most room has less than it said.
func TestADrillAvoidsAHostThatRefused(t *testing.T) {
	s := newSite(t)
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	s.ends(s.snapshot(i, "first", backup.Take, nil), operation.Done)
	for host, free := range map[string]int64{"zone-a": 1 << 30, "zone-b": 3 << 30, "zone-c": 2 << 30} {
		s.put(state.Put(state.Host(host), member.Host{Name: host, DiskFree: free, Majors: map[int]string{15: "15.1"}}))
		s.put(state.Put(state.Live(host), member.Liveness{Alive: true, Since: time.Now()}))
	}
	s.yard.set(func() { s.yard.fails["zone-b"] = "no room" })
	if r := s.ends(s.drill(i, "one"), operation.Done); r.Notes[noteHost] != "zone-c" || !strings.Contains(r.Notes[noteWhy], "zone-b could not try the backup: no room") {
		t.Errorf("%+v", r.Notes)
	}
	asked := s.yard.drills[len(s.yard.drills)-1]
	if asked.Room != spareRoom*s.records(i.ResourceID)[0].Size {
		t.Errorf("asked for %+v", asked)
	}
}

// TestADrillOfAnEncryptedDatabase: what it restores is on no disk in the clear.
func TestADrillOfAnEncryptedDatabase(t *testing.T) {
	s := newSite(t)
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", func(i *spec.Instance) { i.StorageKey = "key-1" })
	s.ends(s.snapshot(i, "first", backup.Take, nil), operation.Done)
	host := func(name, why string) {
		s.put(state.Put(state.Host(name), member.Host{Name: name, DiskFree: 1 << 30, Majors: map[int]string{15: "15.1"}, WhyPlain: why}))
	}
	host("zone-a", "it has no fscrypt")
	host("zone-b", "it has no fscrypt")
	id := s.drill(i, "one")
	s.waits(id, "no host can encrypt")
	host("zone-a", "")
	if r := s.ends(id, operation.Done); r.Notes[noteHost] != "zone-a" {
		t.Errorf("%+v", r)
	}
	if asked := s.yard.drills[0]; !asked.Encrypted {
		t.Errorf("asked for %+v", asked)
	}
	s.clean(i.ResourceID)
}

// TestDrillsAreBegun: the backups of a database are tried a while after the first one, and every week
// from then on.
func TestDrillsAreBegun(t *testing.T) {
	s := newSite(t)
	leading := s.elect()
	i := s.instance("orders", "zone-a", nil)
	now := time.Now().UTC().Truncate(time.Second)
	b := backup.Backup{Database: i.ResourceID, Repository: "main", Label: "B1", Kind: backup.Full, Major: 15, Start: now, Stop: now, Automated: true}
	s.put(state.Put(state.Automated(i.ResourceID), backup.Automated{Scope: shop, Name: "orders", Database: i.ResourceID, Repository: "main", Retention: 1}),
		state.Put(state.Backup(i.ResourceID, "main", "B1"), b))
	begun := func(at time.Time) int {
		k := &keeper{Backups: s.backups, sight: s.backups.look(), leading: leading, now: at, ofAccount: map[string]int{}, onHost: map[string]int{}}
		if err := k.drill(t.Context(), k.targets[i.ResourceID]); err != nil {
			t.Fatal(err)
		}
		all := s.backups.active(i.ResourceID, backup.Drill)
		n := k.drills
		for _, o := range all {
			s.put(state.Delete(state.Operation(o.ID)))
		}
		s.put() // what was begun is seen
		for _, key := range s.cache.Keys(state.OperationRoot) {
			s.put(state.Delete(key))
		}
		return n
	}
	first := now.Add(firstDrill)
	record := func(began time.Time, failed string) {
		s.put(state.Put(state.Drill(i.ResourceID), backup.DrillRecord{
			Database: i.ResourceID, Began: began, Failed: failed, Drilled: backup.Drilled{Label: "B1"},
		}))
	}
	for n, c := range []struct {
		at   time.Time
		want int
	}{{now, 0}, {first.Add(-time.Second), 0}, {first, 1}, {first.Add(time.Hour), 0}} {
		if got := begun(c.at); got != c.want {
			t.Errorf("%d: %d drills", n, got)
		}
	}
	record(first, "")
	if begun(first.Add(backup.DrillEvery-time.Second)) != 0 || begun(first.Add(backup.DrillEvery)) != 1 {
		t.Error("it is not done every week")
	}
	// After one that failed the next backup is tried.
	late := first.Add(2 * backup.DrillEvery)
	record(late, "it is damaged")
	if begun(late.Add(2*backup.Day)) != 0 {
		t.Error("the damaged one is tried again")
	}
	b.Label, b.Stop = "B2", late.Add(backup.Day)
	s.put(state.Put(state.Backup(i.ResourceID, "main", "B2"), b))
	if begun(late.Add(2*backup.Day)) != 1 {
		t.Error("the next backup is not tried")
	}
}
