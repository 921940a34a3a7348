package clitest

import (
	"cmp"
	"slices"
	"time"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/aws/wire"
)

// fakeCopies are the snapshots that the repository far has.
var fakeCopies = []admin.RepositoryCopy{
	{Snapshot: "before-sale-far", Database: "orders", Account: "123456789012", Region: "us-west-2", State: "available", Taken: Noon.Add(-33 * time.Hour), Stored: 3 << 30},
	{Snapshot: "last-of-billing-far", Database: "billing", Account: "123456789012", Region: "us-west-2", State: "copying"},
}

// copySnapshot answers the verb that copies snapshots. The repository far has none of the data, but of
// the database billing.
func (f *Fake) copySnapshot(body []byte) admin.SnapshotCopy {
	var in admin.SnapshotCopyRequest
	read(body, &in)
	out := admin.SnapshotCopy{From: in.Snapshot, FromRepository: "default", DryRun: in.DryRun, Snapshot: admin.Snapshot{
		Name: in.Name, Kind: admin.KindInstance, Database: "orders", ResourceID: "db-1", Account: "123456789012", Region: "us-west-2", State: "available",
		Taken: Noon.Add(-33 * time.Hour), Asked: Noon, Size: 8 << 30, Repository: cmp.Or(in.Repository, "default"), Label: "20261120-031000F",
	}}
	if in.Repository != "far" || in.Snapshot == "last-of-billing" {
		return out
	}
	out.Bytes = 3 << 30
	out.Snapshot.State, out.Snapshot.Operation, out.Snapshot.Label = "copying", "snap-"+in.Name+"-01", ""
	if !in.DryRun {
		steps := []admin.Operation{
			{Step: "site"},
			{Step: "copy", Unit: "bytes", Done: 1 << 30, Of: 3 << 30},
			{Step: "copy", Unit: "bytes", Done: 2 << 30, Of: 3 << 30},
			{Step: "show"},
		}
		f.begins(out.Snapshot, "copy-snapshot", steps)
	}
	return out
}

// begins has the operation of a snapshot take some steps. Then the snapshot is available, or it failed
// if its name is fails.
func (f *Fake) begins(s admin.Snapshot, kind string, steps []admin.Operation) {
	end := admin.Operation{State: "done", Ended: true}
	if s.Name == "fails" {
		steps, end = steps[:1], admin.Operation{State: "failed", Ended: true, Reason: "the repository far is full"}
	}
	f.working = nil
	for _, p := range append(steps, end) {
		p.ID, p.Kind, p.Database, p.Began, p.StepBegan, p.State = s.Operation, kind, s.Database, Noon, Noon, cmp.Or(p.State, "running")
		f.working = append(f.working, p)
	}
	s.State, s.Stored, s.Label = "available", 3<<30, "20261120-031000F"
	s.Taken = cmp.Or(s.Taken, Noon)
	f.made = append(f.made, s)
}

// snapshots are all that there are.
func (f *Fake) snapshots() []admin.Snapshot { return append(slices.Clone(fakeSnapshots), f.made...) }

// snapshotAction does what actions of the API do to snapshots.
func (f *Fake) snapshotAction(action string, get func(string) string) (any, *wire.Error) {
	name, kind := cmp.Or(get("DBSnapshotIdentifier"), get("DBClusterSnapshotIdentifier")), admin.KindInstance
	if get("DBClusterSnapshotIdentifier") != "" {
		kind = admin.KindCluster
	}
	one := slices.IndexFunc(f.snapshots(), func(s admin.Snapshot) bool { return s.Name == name && s.Kind == kind })
	switch action {
	case "CreateDBSnapshot", "CreateDBClusterSnapshot":
		of := cmp.Or(get("DBInstanceIdentifier"), get("DBClusterIdentifier"))
		s := admin.Snapshot{
			Name: name, Kind: kind, Database: of, ResourceID: map[string]string{"orders": "db-1", "shop": "cluster-1"}[of], Account: "123456789012", Region: "us-west-2",
			Asked: Noon, Size: 8 << 30, Repository: "default", Operation: "snap-" + name + "-03",
		}
		f.begins(s, "backup", []admin.Operation{{Step: "choose"}, {Step: "run"}, {Step: "record"}})
		if kind == admin.KindCluster {
			return &rds.CreateDBClusterSnapshotResult{DBClusterSnapshot: &rds.DBClusterSnapshot{DBClusterSnapshotIdentifier: &name}}, nil
		}
		return &rds.CreateDBSnapshotResult{DBSnapshot: &rds.DBSnapshot{DBSnapshotIdentifier: &name}}, nil
	case "DescribeDBSnapshots":
		if one < 0 {
			return nil, wire.NewError(rds.ErrDBSnapshotNotFound, "DBSnapshot not found: %s", name)
		}
		return &rds.DBSnapshotMessage{DBSnapshots: []rds.DBSnapshot{{DBSnapshotIdentifier: &name}}}, nil
	case "DescribeDBClusterSnapshots":
		if one < 0 {
			return nil, wire.NewError(rds.ErrDBClusterSnapshotNotFound, "DBClusterSnapshot not found: %s", name)
		}
		return &rds.DBClusterSnapshotMessage{DBClusterSnapshots: []rds.DBClusterSnapshot{{DBClusterSnapshotIdentifier: &name}}}, nil
	case "DeleteDBSnapshot":
		return &rds.DeleteDBSnapshotResult{DBSnapshot: &rds.DBSnapshot{DBSnapshotIdentifier: &name}}, nil
	case "DeleteDBClusterSnapshot":
		return &rds.DeleteDBClusterSnapshotResult{DBClusterSnapshot: &rds.DBClusterSnapshot{DBClusterSnapshotIdentifier: &name}}, nil
	}
	return nil, wire.NewError("InvalidAction", "The fake has no %s.", action)
}
