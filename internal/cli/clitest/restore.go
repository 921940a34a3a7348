package clitest

import (
	"time"

	"howdah/api/rds"
	"howdah/internal/admin"
)

// restore answers the verb on restores.
func (f *Fake) restore(body []byte) admin.RestorePlan {
	var in admin.RestoreRequest
	read(body, &in)
	p := admin.RestorePlan{
		Name: in.Name, Kind: admin.KindInstance, ResourceID: "db-7", Class: "db.t3.micro", StorageGiB: 20, MultiAZ: in.MultiAZ != nil && *in.MultiAZ,
		From: "orders", FromID: "db-1", Repository: "default", Label: "20261120-031000F_20261121-031000I", BackupKind: "incr", Taken: Noon.Add(-9 * time.Hour),
		Size: 8 << 30, Latest: in.Latest, LSN: in.LSN, Before: in.Before, Hosts: []string{"zone-b"}, DryRun: in.DryRun,
	}
	if in.Time != nil {
		p.Until = *in.Time
	}
	if in.Live {
		p = admin.RestorePlan{
			Name: in.Name, Kind: admin.KindInstance, ResourceID: "db-7", Class: "db.t3.micro", StorageGiB: 20, MultiAZ: in.MultiAZ != nil && *in.MultiAZ,
			From: "orders", FromID: "db-1", Live: true, Thin: in.Class == "", Size: 8 << 30, Hosts: []string{"zone-b"}, DryRun: in.DryRun,
		}
	}
	if in.From == "shop" { // an Aurora cluster
		p.Kind, p.From, p.Hosts, p.Thin, p.Size, p.StorageGiB, p.Class = admin.KindCluster, "shop", []string{}, false, 0, 0, ""
	}
	if in.Snapshot != "" {
		p.Until = p.Taken
	}
	if !in.DryRun {
		f.instances = append(f.instances, rds.DBInstance{DBInstanceIdentifier: &in.Name, DBInstanceStatus: ptr("creating"), DbiResourceId: &p.ResourceID})
	}
	return p
}

// rewind answers the verb on going back in place. What it begins ends after a few looks.
func (f *Fake) rewind(body []byte) admin.RewindPlan {
	var in admin.RewindRequest
	read(body, &in)
	p := admin.RewindPlan{
		Operation: in.ID, Began: Noon, Name: "orders", ResourceID: "db-1", FromID: "db-1", Repository: "default", Label: "20261120-031000F_20261121-031000I",
		Taken: Noon.Add(-9 * time.Hour), Size: 8 << 30, Snapshot: in.KeepAs, LSN: in.LSN, Before: in.Before, LostBytes: -1, Retention: 7, Hosts: []string{"zone-b", "zone-c"}, DryRun: in.DryRun,
	}
	if p.Snapshot == "" {
		p.Snapshot = "orders-before-rewind-20261121-120000"
	}
	switch {
	case in.Time != nil:
		p.Until, p.To = *in.Time, "2026-11-21 11:00:00.5Z"
		p.LostSeconds, p.LostBytes, p.LostAtMost = Noon.Sub(*in.Time).Seconds(), 120<<20, true
	case in.Snapshot != "":
		p.To, p.Retention = "the snapshot "+in.Snapshot, 0
	default:
		p.To = "the WAL position " + in.LSN
		p.LostBytes = 5 << 20
	}
	if in.DryRun {
		return p
	}
	p.NextResourceID = "db-9"
	f.working = append(f.working,
		admin.Operation{Step: "snapshot"},
		admin.Operation{Step: "restore", Trouble: "the data are being restored: waiting for m1 on zone-b to restore the data"},
		admin.Operation{Step: "close"}, admin.Operation{Step: "exchange"})
	end := admin.Operation{State: "done", Ended: true}
	if in.Before != "" {
		f.working, end = f.working[:2], admin.Operation{State: "failed", Ended: true, Reason: "the data cannot be restored: WAL file 7 is missing"}
	}
	f.working = append(f.working, end)
	for n := range f.working {
		w := &f.working[n]
		w.ID, w.Kind, w.Database, w.Began, w.StepBegan = in.ID, "rewind", "orders", Noon, Noon
		if w.State == "" {
			w.State = "running"
		}
	}
	f.later["orders"] = []string{"modifying", "available"}
	f.status.Databases[0].ResourceID, f.status.Databases[0].Replaced = "db-9", []string{"db-1"}
	return p
}
