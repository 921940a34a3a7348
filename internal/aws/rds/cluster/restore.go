package cluster

import (
	"context"
	"strconv"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/automated"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/aws/rds/snapshot"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// restoreDBClusterFromSnapshot makes a new cluster with the data of a snapshot of a cluster, or of an
// instance. As on RDS, users add instances to an Aurora cluster; the first one gets the data.
func (s *service) restoreDBClusterFromSnapshot(ctx context.Context, c front.Call, in *rds.RestoreDBClusterFromSnapshotMessage) (*rds.RestoreDBClusterFromSnapshotResult, error) {
	if err := notRestorable(in); err != nil {
		return nil, err
	}
	made, err := s.restore(ctx, c, in, func(l *database.Sight) (restore.Choice, error) {
		r, err := snapshotOf(l, c, wire.Or(in.SnapshotIdentifier, ""))
		if err != nil {
			return restore.Choice{}, err
		}
		return restore.Of(l.Looks, r)
	})
	if err != nil {
		return nil, err
	}
	return &rds.RestoreDBClusterFromSnapshotResult{DBCluster: made}, nil
}

// snapshotOf is a snapshot of a cluster, by name or ARN, or by its ARN one of an instance.
func snapshotOf(l *database.Sight, c front.Call, identifier string) (snapshot.Record, error) {
	r, err := snapshot.Cluster.FindUsable(l.Looks, c.Scope, identifier, false)
	if err == nil {
		return r, nil
	}
	if of, other := snapshot.Instance.FindUsable(l.Looks, c.Scope, identifier, false); other == nil && look.IsARN(identifier) {
		return of, nil
	}
	return r, look.OrBlank(identifier, "SnapshotIdentifier", err)
}

// restoreDBClusterToPointInTime makes a new cluster with the data that another one had at a moment,
// also one that was deleted and whose automated backups were kept.
func (s *service) restoreDBClusterToPointInTime(ctx context.Context, c front.Call, in *rds.RestoreDBClusterToPointInTimeMessage) (*rds.RestoreDBClusterToPointInTimeResult, error) {
	asked := likeFromSnapshot(in)
	thin, err := copiesOnWrite(in)
	if err := look.First(notRestorable(asked), err); err != nil {
		return nil, err
	}
	target, err := restore.TargetOf(in.RestoreToTime, in.UseLatestRestorableTime, "RestoreToTime")
	if err != nil {
		return nil, err
	}
	made, err := s.restore(ctx, c, asked, func(l *database.Sight) (restore.Choice, error) {
		if thin {
			return cloneOf(l, c, in)
		}
		from, err := automated.Cluster.Source(l.Look, c.Scope, in.SourceDBClusterIdentifier, in.SourceDbClusterResourceId, nil)
		if err != nil {
			return restore.Choice{}, err
		}
		return restore.To(l.Looks, from, target)
	})
	if err != nil {
		return nil, err
	}
	return &rds.RestoreDBClusterToPointInTimeResult{DBCluster: made}, nil
}

// copiesOnWrite reports whether a clone of a cluster that runs is asked for.
func copiesOnWrite(in *rds.RestoreDBClusterToPointInTimeMessage) (bool, error) {
	switch wire.Or(in.RestoreType, "full-copy") {
	case "full-copy":
		return false, nil
	case "copy-on-write":
		if in.RestoreToTime != nil {
			return true, wire.NewError(api.ErrInvalidParameterCombination, "You can't specify RestoreToTime with the RestoreType copy-on-write: a clone has the newest data. Use UseLatestRestorableTime, or full-copy.")
		}
		return true, nil
	}
	return false, wire.NewError(api.ErrInvalidParameterValue, "Invalid RestoreType %s: use full-copy or copy-on-write.", *in.RestoreType)
}

// cloneOf is the cluster that is to be cloned: one that lives.
func cloneOf(l *database.Sight, c front.Call, in *rds.RestoreDBClusterToPointInTimeMessage) (restore.Choice, error) {
	if (in.SourceDBClusterIdentifier == nil) == (in.SourceDbClusterResourceId == nil) {
		return restore.Choice{}, wire.NewError(api.ErrInvalidParameterCombination, "Exactly one of SourceDBClusterIdentifier and SourceDbClusterResourceId must be given.")
	}
	if in.SourceDBClusterIdentifier != nil {
		r, err := l.FindCluster(c.Scope, *in.SourceDBClusterIdentifier)
		if err != nil {
			return restore.Choice{}, look.OrBlank(strings.TrimSpace(*in.SourceDBClusterIdentifier), "SourceDBClusterIdentifier", err)
		}
		return restore.CloneOfCluster(l.Look, r.Value)
	}
	r, ok := l.ClusterRecord(*in.SourceDbClusterResourceId)
	if !ok || r.Value.Scope != c.Scope {
		return restore.Choice{}, wire.NewError(rds.ErrDBClusterNotFound, "DBCluster %s not found: only one that was not deleted can be cloned.", *in.SourceDbClusterResourceId)
	}
	return restore.CloneOfCluster(l.Look, r.Value)
}

// restore makes the cluster that a request asks for, of what is chosen.
func (s *service) restore(ctx context.Context, c front.Call, in *rds.RestoreDBClusterFromSnapshotMessage, choose func(*database.Sight) (restore.Choice, error)) (*rds.DBCluster, error) {
	made, err := s.Create(ctx, c, func(l *database.Sight) (spec.Cluster, []state.Op, error) {
		choice, err := choose(l)
		if err != nil {
			return spec.Cluster{}, nil, err
		}
		return newRestored(l, c, choice, in)
	})
	if err != nil {
		return nil, err
	}
	made.Status = wire.Some(plan.Creating) // as of a new one
	return made, nil
}

// notRestorable refuses what would be silently missing otherwise.
func notRestorable(in *rds.RestoreDBClusterFromSnapshotMessage) error {
	return look.First(look.RefuseAsked(map[string]bool{
		"EngineMode": wire.Or(in.EngineMode, "provisioned") != "provisioned", "ScalingConfiguration": in.ScalingConfiguration != nil,
		"ServerlessV2ScalingConfiguration": in.ServerlessV2ScalingConfiguration != nil, "RdsCustomClusterConfiguration": in.RdsCustomClusterConfiguration != nil,
		"BacktrackWindow": wire.Or(in.BacktrackWindow, 0) != 0, "Domain": in.Domain != nil, "DomainIAMRoleName": in.DomainIAMRoleName != nil,
		"TagSpecifications": len(in.TagSpecifications) > 0, "AssociatedRoles": len(in.AssociatedRoles) > 0, "DatabaseName": in.DatabaseName != nil,
		"EnableVPCNetworking": in.EnableVPCNetworking != nil, "EnableInternetAccessGateway": in.EnableInternetAccessGateway != nil,
	}), database.CheckKept(in.PerformanceInsightsRetentionPeriod, in.EngineLifecycleSupport))
}

// newRestored is the record of a restored cluster: with the sizes and windows of the one that it is
// made of, and with the default groups, unless something else is asked for.
func newRestored(l *database.Sight, c front.Call, from restore.Choice, in *rds.RestoreDBClusterFromSnapshotMessage) (spec.Cluster, []state.Op, error) {
	of := clusterOf(from)
	asked, err := createAs(of, in)
	if err != nil {
		return spec.Cluster{}, nil, err
	}
	cluster, err := recordOf(l, c, asked)
	if err != nil {
		return cluster, nil, err
	}
	if err := nameFree(l, cluster.Scope, cluster.Name); err != nil {
		return cluster, nil, err
	}
	cluster.Origin, cluster.CloneGroup = &from.Origin, from.CloneGroup
	cluster.MasterUser, cluster.Verifier, cluster.PasswordSerial, cluster.DBName = of.MasterUser, of.Verifier, of.PasswordSerial, of.DBName
	ops, err := l.EncryptRestored(c, &cluster.Common, of.Scope, of.StorageKey, in.KmsKeyId)
	if err != nil {
		return cluster, nil, err
	}
	return add(l, c, cluster, append(ops, from.Unchanged...), nil)
}

// clusterOf is what a restored cluster is like. Of an instance it has what fits.
func clusterOf(from restore.Choice) spec.Cluster {
	if from.Cluster != nil {
		return *from.Cluster
	}
	c := spec.Cluster{Common: from.Instance.Common, Class: from.Instance.Class, AutoMinor: from.Instance.AutoMinor}
	c.SetDisk(from.Instance.Disk())
	return c
}

// createAs is the request for a new cluster like another one, but for what is asked for.
func createAs(of spec.Cluster, in *rds.RestoreDBClusterFromSnapshotMessage) (*rds.CreateDBClusterMessage, error) {
	engine := wire.Or(in.Engine, of.Engine)
	if v := in.EngineVersion; v != nil && *v != of.Version && *v != strconv.Itoa(of.Major) {
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "Cannot restore data of PostgreSQL %s with the EngineVersion %s: leave it away, or give %d.", of.Version, *v, of.Major)
	}
	asked := &rds.CreateDBClusterMessage{
		DBClusterIdentifier: in.DBClusterIdentifier, Engine: wire.Some(engine), EngineVersion: wire.Some(strconv.Itoa(of.Major)),
		Port: wire.Number(int(wire.Or(in.Port, int32(of.Port)))), DBClusterParameterGroupName: in.DBClusterParameterGroupName, DBSubnetGroupName: in.DBSubnetGroupName,
		VpcSecurityGroupIds: in.VpcSecurityGroupIds, BackupRetentionPeriod: wire.Number(int(wire.Or(in.BackupRetentionPeriod, int32(max(of.BackupRetention, 1))))),
		PreferredBackupWindow: in.PreferredBackupWindow, DeletionProtection: in.DeletionProtection, CopyTagsToSnapshot: in.CopyTagsToSnapshot,
		EnableIAMDatabaseAuthentication: wire.Some(wire.Or(in.EnableIAMDatabaseAuthentication, of.IAMAuth)), MonitoringInterval: in.MonitoringInterval,
		MonitoringRoleArn: in.MonitoringRoleArn, NetworkType: in.NetworkType, Tags: in.Tags, OptionGroupName: in.OptionGroupName,
		PubliclyAccessible: in.PubliclyAccessible, AutoMinorVersionUpgrade: wire.Some(of.AutoMinor), AvailabilityZones: in.AvailabilityZones,
		StorageType: in.StorageType, DBClusterInstanceClass: in.DBClusterInstanceClass, Iops: in.Iops,
	}
	if in.PreferredBackupWindow == nil { // else they might overlap
		asked.PreferredBackupWindow, asked.PreferredMaintenanceWindow = wire.Some(of.BackupWindow), wire.Some(of.MaintenanceWindow)
	}
	if len(in.Tags) == 0 { // as on RDS: the tags that the database had
		asked.Tags = look.TagsOut(of.Tags)
	}
	if engine == spec.Postgres {
		sized(asked, of)
	} else if in.StorageType == nil && of.Engine == engine {
		asked.StorageType = wire.Text(of.StorageType)
	}
	return asked, nil
}

// sized gives a request for a Multi-AZ DB cluster the class and the storage of another one.
func sized(asked *rds.CreateDBClusterMessage, of spec.Cluster) {
	if asked.DBClusterInstanceClass == nil {
		asked.DBClusterInstanceClass = wire.Text(of.Class)
	}
	if of.Storage > 0 {
		asked.AllocatedStorage = wire.Number(of.Storage)
	}
	if asked.StorageType == nil && of.Engine == spec.Postgres {
		asked.StorageType = wire.Text(of.StorageType)
		if asked.Iops == nil {
			asked.Iops = wire.Amount(of.IOPS)
		}
	}
}

// likeFromSnapshot is the request for a new cluster as the other action has it.
func likeFromSnapshot(in *rds.RestoreDBClusterToPointInTimeMessage) *rds.RestoreDBClusterFromSnapshotMessage {
	return &rds.RestoreDBClusterFromSnapshotMessage{
		DBClusterIdentifier: in.DBClusterIdentifier, Port: in.Port, DBSubnetGroupName: in.DBSubnetGroupName, OptionGroupName: in.OptionGroupName,
		VpcSecurityGroupIds: in.VpcSecurityGroupIds, Tags: in.Tags, KmsKeyId: in.KmsKeyId, EnableIAMDatabaseAuthentication: in.EnableIAMDatabaseAuthentication,
		BacktrackWindow: in.BacktrackWindow, DBClusterParameterGroupName: in.DBClusterParameterGroupName, DeletionProtection: in.DeletionProtection,
		CopyTagsToSnapshot: in.CopyTagsToSnapshot, Domain: in.Domain, DomainIAMRoleName: in.DomainIAMRoleName, DBClusterInstanceClass: in.DBClusterInstanceClass,
		StorageType: in.StorageType, PubliclyAccessible: in.PubliclyAccessible, Iops: in.Iops, NetworkType: in.NetworkType,
		ServerlessV2ScalingConfiguration: in.ServerlessV2ScalingConfiguration, ScalingConfiguration: in.ScalingConfiguration, EngineMode: in.EngineMode,
		RdsCustomClusterConfiguration: in.RdsCustomClusterConfiguration, MonitoringInterval: in.MonitoringInterval, MonitoringRoleArn: in.MonitoringRoleArn,
		PerformanceInsightsRetentionPeriod: in.PerformanceInsightsRetentionPeriod, BackupRetentionPeriod: in.BackupRetentionPeriod,
		PreferredBackupWindow: in.PreferredBackupWindow, EngineLifecycleSupport: in.EngineLifecycleSupport, TagSpecifications: in.TagSpecifications,
		EnableVPCNetworking: in.EnableVPCNetworking, EnableInternetAccessGateway: in.EnableInternetAccessGateway, AssociatedRoles: in.AssociatedRoles,
	}
}
