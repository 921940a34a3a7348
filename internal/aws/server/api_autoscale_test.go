package server

import (
	"slices"
	"testing"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// TestStorageGrowsByItself: after five minutes with little left, by RDS's rules, as far as it may.
func TestStorageGrowsByItself(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	now := at(t, "2026-11-24T12:00:00Z")
	w.at(now)
	u.do(with(newDB, "AllocatedStorage=100", "MaxAllocatedStorage=115", "PreferredMaintenanceWindow=mon:05:00-mon:06:00", "PreferredBackupWindow=01:00-02:00"))
	u.do(with(newDB, "DBInstanceIdentifier=fixed", "AllocatedStorage=100"))
	u.settle()
	house := w.server.rds.Upkeep.House()
	uses := func(gib int64) {
		for _, name := range []string{"db", "fixed"} {
			u.see(name, func(s *scene) { s.each(func(r *member.Report) { r.StorageBytes = gib << 30 }) })
		}
	}
	room := func(free int64) {
		for _, zone := range []string{"a", "b", "c"} {
			h, err := state.Load[member.Host](w.server.Cache, state.Host("host-"+zone))
			if err != nil {
				t.Fatal(err)
			}
			h.Value.DiskFree = free
			w.put(state.Put(h.Key, h.Value))
		}
		if err := w.server.client.Fresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	passes := func(d time.Duration) {
		now = now.Add(d)
		w.at(now)
		house.Keep(t.Context())
	}
	size := func(want int) {
		t.Helper()
		if got := u.instanceRecord("db").Storage; got != want {
			t.Errorf("it has %d GiB, want %d", got, want)
		}
	}
	room(9 << 30)
	uses(95)
	// A larger size and other values wait for the window.
	u.do(with(modifyDB, "AllocatedStorage=110", "DBInstanceClass=db.t3.small"))
	passes(0)
	passes(4 * time.Minute)
	size(100)

	// The host has no room, which is told once.
	passes(time.Minute)
	passes(time.Second)
	size(100)
	u.told("Storage autoscaling is unable to scale the storage for the reason: the disk of host host-")

	room(100 << 30)
	passes(time.Second)
	size(110)
	if i := u.instanceRecord("db"); !slices.Equal(i.ChangeEvents, []string{"0218"}) || !i.StorageChanged.Equal(now) {
		t.Errorf("%+v", i)
	}
	u.do(showDB).has("DBInstances/DBInstance/DBInstanceStatus="+plan.Modifying, "DBInstances/DBInstance/PendingModifiedValues/AllocatedStorage=110")
	u.settle()
	u.do(showDB).has("DBInstances/DBInstance/AllocatedStorage=110", "DBInstances/DBInstance/MaxAllocatedStorage=115", "DBInstances/DBInstance/DBInstanceStatus="+plan.Available)
	u.told("Applying autoscaling-initiated modification to allocated storage")
	u.told("Allocated storage size 110 GB is approaching the maximum storage threshold 115 GB")

	// Not again within six hours, and not above the most.
	uses(109)
	passes(time.Second)
	passes(5 * time.Hour)
	size(110)
	passes(time.Hour)
	size(115)
	u.told("will reach or exceed the maximum storage threshold")
	u.settle()
	uses(114)
	passes(24 * time.Hour)
	passes(time.Hour)
	size(115)
	if i := u.instanceRecord("fixed"); i.Storage != 100 {
		t.Errorf("an instance that nobody lets grow has %d GiB", i.Storage)
	}

	// What waited does not make it smaller.
	if p := u.instanceRecord("db").Pending; p == nil || p.Disk == nil || p.Disk.GiB != 115 || p.Class != "db.t3.small" {
		t.Errorf("waiting: %+v", p)
	}
}
