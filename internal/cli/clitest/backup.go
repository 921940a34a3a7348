package clitest

import (
	"strconv"
	"strings"
	"time"

	"howdah/internal/admin"
)

// fakeBackups are those of the databases orders, shop, and one that was deleted.
func fakeBackups() []admin.Backup {
	b := func(b admin.Backup) admin.Backup {
		b.Account, b.Region, b.Repository = "123456789012", "us-west-2", "default"
		if b.Snapshots == nil {
			b.Snapshots = []string{}
		}
		return b
	}
	return []admin.Backup{
		b(admin.Backup{
			Database: "billing", ResourceID: "db-9", Deleted: true, Label: "20261101-031000F", Kind: "full", Taken: Noon.Add(-20 * 24 * time.Hour), Size: 1 << 30, Stored: 400 << 20,
			Snapshots: []string{"last-of-billing"}, Only: true, Operation: "snap-last-of-billing-01",
		}),
		b(admin.Backup{
			Database: "orders", ResourceID: "db-1", Label: "20261120-031000F_20261121-031000I", Kind: "incr", Taken: Noon.Add(-9 * time.Hour), Size: 8 << 30, Stored: 90 << 20,
			Automated: true, Proved: Noon.Add(-time.Hour), Operation: backupID("orders"), Member: "m2", Standby: true,
		}),
		b(admin.Backup{
			Database: "orders", ResourceID: "db-1", Label: "20261120-031000F", Kind: "full", Taken: Noon.Add(-33 * time.Hour), Size: 8 << 30, Stored: 3 << 30,
			Automated: true, Snapshots: []string{"before-sale"}, Doubt: true, Operation: "auto-db-1-1", Member: "m1",
		}),
		b(admin.Backup{
			Database: "shop", ResourceID: "cluster-1", Label: "20261121-032000F", Kind: "full", Taken: Noon.Add(-8 * time.Hour), Size: 5 << 30, Stored: 2 << 30,
			Automated: true, Damaged: "it is damaged: shop, public.carts_pkey: it lacks a row", Operation: "auto-cluster-1-1",
		}),
	}
}

// backupID is the id that a command chooses at noon.
func backupID(name string) string {
	return "backup-" + name + "-" + strconv.FormatInt(Noon.UnixNano(), 36)
}

var fakeSnapshots = []admin.Snapshot{
	{Name: "last-of-billing", Kind: "instance", Database: "billing", ResourceID: "db-9", Account: "123456789012", Region: "us-west-2", State: "available", Taken: Noon.Add(-20 * 24 * time.Hour), Asked: Noon.Add(-20 * 24 * time.Hour), Size: 1 << 30, Stored: 400 << 20, Repository: "default", Label: "20261101-031000F"},
	{Name: "now", Kind: "instance", Database: "orders", ResourceID: "db-1", Account: "123456789012", Region: "us-west-2", State: "creating", Asked: Noon, Repository: "default", Operation: "snap-now-02"},
	{Name: "rds:orders-2026-11-21-03-00", Kind: "instance", Database: "orders", ResourceID: "db-1", Account: "123456789012", Region: "us-west-2", Automated: true, State: "available", Taken: Noon.Add(-9 * time.Hour), Asked: Noon.Add(-9 * time.Hour), Size: 8 << 30, Stored: 90 << 20, Repository: "default", Proved: Noon.Add(-time.Hour)},
	{Name: "first", Kind: "cluster", Database: "shop", ResourceID: "cluster-1", Account: "000000000001", Region: "eu-west-1", State: "failed", Asked: Noon.Add(-time.Hour), Repository: "default", Reason: "the repository is full"},
}

// fakeDrills are one that worked, one that found damage, and one that could not restore anything.
func fakeDrills() []admin.Drill {
	rpo := 12.0
	return []admin.Drill{
		{
			Database: "orders", ResourceID: "db-1", Repository: "default", Operation: "drill" + strings.TrimPrefix(backupID("orders"), "backup"), Host: "zone-b", Label: "20261120-031000F_20261121-031000I",
			Began: Noon, Ended: Noon.Add(time.Minute), Restored: true, RTO: 41.5, Files: 30.25, Replay: 11.25, Check: 18, RPO: &rpo, Newest: Noon.Add(-12 * time.Second),
			Promised: Noon.Add(-15 * time.Second), Bytes: 8 << 30, Databases: 3, Tables: 120, Indexes: 241, Worked: Noon.Add(time.Minute),
		},
		{
			Database: "shop", ResourceID: "cluster-1", Repository: "default", Operation: "drill" + strings.TrimPrefix(backupID("shop"), "backup"), Host: "zone-c", Label: "20261121-032000F",
			Began: Noon, Ended: Noon.Add(time.Minute), Restored: true, Failed: "it is damaged: shop, public.carts_pkey: it lacks a row", RTO: 3, Files: 2, Replay: 1, Check: 4,
			Bytes: 5 << 30, Databases: 2, Tables: 1, Indexes: 1, Damaged: []string{"shop, public.carts_pkey: it lacks a row", "shop, public.carts: page 7 of the heap"}, Faults: 5,
			Worked: Noon.Add(-7 * 24 * time.Hour),
		},
		{
			Database: "stock", ResourceID: "db-3", Repository: "default", Operation: "drill" + strings.TrimPrefix(backupID("stock"), "backup"), Host: "zone-a", Label: "20261121-033000F",
			Began: Noon, Ended: Noon.Add(time.Minute), Failed: "it cannot be restored: WAL file 000000010000000000000007 is missing",
		},
	}
}

// backup answers the verbs on backups. Operations that are begun end after a few looks. Those of
// billing fail, and those of endless go on.
func (f *Fake) backup(verb string, body []byte) any {
	var in admin.BackupBeginRequest
	read(body, &in)
	is := func(name, id string) bool { return !f.empty && (in.Name == "" || in.Name == name || in.Name == id) }
	switch verb {
	case admin.VerbBackups:
		out := admin.BackupsAnswer{Backups: []admin.Backup{}}
		for _, b := range fakeBackups() {
			if is(b.Database, b.ResourceID) {
				out.Backups = append(out.Backups, b)
			}
		}
		return out
	case admin.VerbSnapshots:
		out := admin.SnapshotsAnswer{Snapshots: []admin.Snapshot{}}
		for _, s := range f.snapshots() {
			if is(s.Database, s.ResourceID) {
				out.Snapshots = append(out.Snapshots, s)
			}
		}
		return out
	case admin.VerbDrills:
		out := admin.DrillsAnswer{Drills: []admin.Drill{}}
		for _, d := range fakeDrills() {
			if is(d.Database, d.ResourceID) {
				out.Drills = append(out.Drills, d)
			}
		}
		return out
	case admin.VerbBackupShow:
		return fakeBackupStatus(in.Name)
	}
	f.working = worksOf(verb, in)
	return admin.BackupBegun{
		Operation: in.ID, Kind: f.working[0].Kind, Database: in.Name, ResourceID: map[string]string{"orders": "db-1", "shop": "cluster-1", "stock": "db-3"}[in.Name], Began: Noon,
	}
}

// worksOf returns what an operation looks like from one look to the next.
func worksOf(verb string, in admin.BackupBeginRequest) (all []admin.Operation) {
	kind, steps := "restore-drill", []admin.Operation{{Step: "pick", Trouble: "no host has 16384 MiB free, twice the size of the database"}, {Step: "try"}, {Step: "try", Unit: "bytes of files"}, {Step: "try", Unit: "bytes of wal"}, {Step: "try", Unit: "bytes checked of shop"}, {Step: "conclude"}}
	if verb == admin.VerbBackupNow {
		kind, steps = "backup", []admin.Operation{{Step: "choose"}, {Step: "run"}, {Step: "record"}}
	}
	end := admin.Operation{State: "done", Ended: true}
	if strings.HasPrefix(in.Name, "billing") {
		steps, end = steps[:1], admin.Operation{State: "failed", Ended: true, Reason: "the repository default is gone"}
	}
	if in.Name != "endless" {
		steps = append(steps, end)
	}
	for _, p := range steps {
		p.ID, p.Kind, p.Database, p.Began, p.StepBegan = in.ID, kind, in.Name, Noon, Noon
		if p.State == "" {
			p.State = "running"
		}
		all = append(all, p)
	}
	return all
}

func fakeBackupStatus(name string) admin.BackupStatus {
	all, drills := fakeBackups(), fakeDrills()
	s := admin.BackupStatus{
		Database: name, ResourceID: "db-1", Account: "123456789012", Region: "us-west-2", Time: Noon, Repository: "default", Stored: 3<<30 + 90<<20,
		Short:   admin.DatabaseBackups{Retention: 7, Count: 2, Earliest: Noon.Add(-33 * time.Hour), Restorable: Noon.Add(-10 * time.Second), Proved: drills[0].Worked},
		Archive: admin.ArchiveWorks, Newest: &all[1], Window: Noon.Add(15 * time.Hour), Drill: &drills[0], Problems: []admin.Problem{},
	}
	switch name {
	case "shop":
		s.ResourceID, s.Newest, s.Drill = "cluster-1", &all[3], &drills[1]
		s.Short = admin.DatabaseBackups{Retention: 1, Count: 1, Proved: drills[1].Worked, Failed: drills[1].Failed}
		s.Archive, s.Failing, s.Since, s.Waiting = admin.ArchiveFails, "the bucket is full", Noon.Add(-time.Hour), 96<<20
		s.Making, s.Drilling = "backup-shop-1", "drill-shop-2"
		s.Problems = []admin.Problem{{
			Code: "drill-failed", Subject: "db shop", ResourceID: "cluster-1", Command: "howdah backup show shop",
			Text: "the newest drill of its backups, at 2026-11-21 12:01:00Z, failed: " + drills[1].Failed,
		}}
	case "billing":
		s.Short, s.Newest, s.Drill, s.Window = admin.DatabaseBackups{}, nil, nil, time.Time{}
		s.Archive, s.Broken, s.Stored, s.Repository = admin.ArchiveUnknown, "", 0, ""
	}
	return s
}
