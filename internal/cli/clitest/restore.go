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
