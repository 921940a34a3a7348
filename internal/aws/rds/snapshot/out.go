package snapshot

import (
	"howdah/api/rds"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/kms"
	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/state"
)

// vpc is the one network that a home has.
const vpc = "vpc-howdah"

// instanceOut is a DB snapshot as the API shows it.
func instanceOut(l *look.Source, s *backup.Snapshot) *rds.DBSnapshot {
	i := s.Instance
	out := &rds.DBSnapshot{
		DBSnapshotIdentifier: wire.Some(s.Name), DBInstanceIdentifier: wire.Some(i.Name), DbiResourceId: wire.Some(s.Database),
		DBSnapshotArn: wire.Some(s.ARN("snapshot", s.Name)), Status: wire.Some(string(s.State)), PercentProgress: wire.Some(percent(l, s)),
		SnapshotCreateTime: wire.Moment(s.Taken), OriginalSnapshotCreateTime: wire.Moment(s.Original()), SnapshotDatabaseTime: wire.Moment(s.Original()),
		Engine: wire.Some(i.Engine), EngineVersion: wire.Some(i.Version), LicenseModel: wire.Some(i.License), OptionGroupName: wire.Some(i.OptionGroup),
		AllocatedStorage: wire.Number(i.Storage), StorageType: wire.Some(i.StorageType), Iops: wire.Amount(i.IOPS), StorageThroughput: wire.Amount(i.Throughput),
		Port: wire.Number(i.Port), AvailabilityZone: wire.Text(i.ZoneName(i.Zone)), VpcId: wire.Some(vpc), InstanceCreateTime: wire.Moment(i.Created),
		MasterUsername: wire.Some(i.MasterUser), IAMDatabaseAuthenticationEnabled: wire.Some(i.IAMAuth), SnapshotType: wire.Some(typeOf(s)),
		BackupRetentionPeriod: wire.Number(i.BackupRetention), PreferredBackupWindow: wire.Some(i.BackupWindow),
		Encrypted: wire.Some(s.KMSKey != ""), ProcessorFeatures: []rds.ProcessorFeature{}, TagList: look.TagsOut(s.Tags), SnapshotTarget: wire.Some("region"),
		DedicatedLogVolume: wire.Some(false), SourceDBSnapshotIdentifier: wire.Text(s.CopyOf), SourceRegion: wire.Text(sourceRegion(s)),
	}
	if s.KMSKey != "" {
		out.KmsKeyId = wire.Some(kms.ARN(s.Scope, s.KMSKey))
	}
	if s.Size > 0 {
		out.FullSnapshotSizeInBytes = wire.Some(s.Size)
	}
	return out
}

// clusterOut is a DB cluster snapshot as the API shows it.
func clusterOut(l *look.Source, s *backup.Snapshot) *rds.DBClusterSnapshot {
	c := s.Cluster
	at := s.Taken
	if at.IsZero() {
		at = s.Asked // RDS always shows one
	}
	out := &rds.DBClusterSnapshot{
		DBClusterSnapshotIdentifier: wire.Some(s.Name), DBClusterIdentifier: wire.Some(c.Name), DbClusterResourceId: wire.Some(s.Database),
		DBClusterSnapshotArn: wire.Some(s.ARN("cluster-snapshot", s.Name)), Status: wire.Some(string(s.State)), PercentProgress: wire.Some(percent(l, s)),
		SnapshotCreateTime: wire.Moment(at), Engine: wire.Some(c.Engine), EngineVersion: wire.Some(c.Version), EngineMode: wire.Some("provisioned"),
		LicenseModel: wire.Some(look.License), AllocatedStorage: wire.Number(max(c.Storage, 1)), AvailabilityZones: l.ZonesOf(*c), Port: wire.Number(c.Port),
		VpcId: wire.Some(vpc), ClusterCreateTime: wire.Moment(c.Created), MasterUsername: wire.Some(c.MasterUser), SnapshotType: wire.Some(typeOf(s)),
		BackupRetentionPeriod: wire.Number(c.BackupRetention), PreferredBackupWindow: wire.Some(c.BackupWindow), StorageType: wire.Text(c.StorageType),
		StorageEncrypted: wire.Some(s.KMSKey != ""), IAMDatabaseAuthenticationEnabled: wire.Some(c.IAMAuth), TagList: look.TagsOut(s.Tags),
		SourceDBClusterSnapshotArn: wire.Text(s.CopyOf),
	}
	if s.KMSKey != "" {
		out.KmsKeyId = wire.Some(kms.ARN(s.Scope, s.KMSKey))
	}
	return out
}

// typeOf is the type of a snapshot for its owner.
func typeOf(s *backup.Snapshot) string {
	if s.Automated {
		return automated
	}
	return manual
}

// sourceRegion is the region that a snapshot was copied from; "": it is no copy.
func sourceRegion(s *backup.Snapshot) string {
	if s.CopyOf == "" {
		return ""
	}
	in, _ := look.Locate(s.Scope, s.CopyOf, "snapshot")
	return in.Region
}

// percent is how far the making of a snapshot is.
func percent(l *look.Source, s *backup.Snapshot) int32 {
	if s.State == backup.Available {
		return 100
	}
	r, err := state.Load[operation.Record](l.Cache, state.Operation(s.Operation))
	if err != nil {
		return 0
	}
	return percentOf(r.Value.Progress, s.State)
}

// percentOf never says that everything is done while the snapshot is not available.
func percentOf(p operation.Progress, of backup.SnapshotState) int32 {
	if p.Of <= 0 || of == backup.Failed {
		return 0
	}
	return int32(min(99, max(0, float64(p.Done)/float64(p.Of)*100)))
}
