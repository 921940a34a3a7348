package instance

import (
	"context"
	"strconv"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/aws/rds/snapshot"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// restoreDBInstanceFromDBSnapshot makes a new instance with the data of a snapshot. The answer says
// "creating"; reconcile and the host do the rest.
func (s *service) restoreDBInstanceFromDBSnapshot(ctx context.Context, c front.Call, in *rds.RestoreDBInstanceFromDBSnapshotMessage) (*rds.RestoreDBInstanceFromDBSnapshotResult, error) {
	if err := notRestorable(in); err != nil {
		return nil, err
	}
	made, err := s.create(ctx, c, func(l *database.Sight) (spec.Instance, []state.Op, error) {
		choice, err := snapshotOf(l, c, in)
		if err != nil {
			return spec.Instance{}, nil, err
		}
		return newRestored(l, c, choice, in, nil)
	})
	if err != nil {
		return nil, err
	}
	return &rds.RestoreDBInstanceFromDBSnapshotResult{DBInstance: made}, nil
}

// snapshotOf is the snapshot to restore: one of an instance, or of a Multi-AZ DB cluster.
func snapshotOf(l *database.Sight, c front.Call, in *rds.RestoreDBInstanceFromDBSnapshotMessage) (restore.Choice, error) {
	kind, identifier := snapshot.Instance, in.DBSnapshotIdentifier
	switch {
	case (in.DBSnapshotIdentifier == nil) == (in.DBClusterSnapshotIdentifier == nil):
		return restore.Choice{}, wire.NewError(api.ErrInvalidParameterCombination, "Exactly one of DBSnapshotIdentifier and DBClusterSnapshotIdentifier must be given.")
	case in.DBClusterSnapshotIdentifier != nil:
		kind, identifier = snapshot.Cluster, in.DBClusterSnapshotIdentifier
	}
	r, err := kind.FindUsable(l.Looks, c.Scope, *identifier, false)
	if err != nil {
		return restore.Choice{}, err
	}
	if of := r.Value.Cluster; of != nil && !of.MultiAZ() {
		return restore.Choice{}, wire.NewError(rds.ErrInvalidRestore, "The snapshot %s is of an Aurora DB cluster: restore it by RestoreDBClusterFromSnapshot.", r.Value.Name)
	}
	return restore.Of(l.Looks, r)
}

// notRestorable refuses what would be silently missing otherwise.
func notRestorable(in *rds.RestoreDBInstanceFromDBSnapshotMessage) error {
	return look.First(look.RefuseAsked(map[string]bool{
		"Domain": in.Domain != nil, "DomainFqdn": in.DomainFqdn != nil, "DomainIAMRoleName": in.DomainIAMRoleName != nil, "DomainOu": in.DomainOu != nil,
		"DomainAuthSecretArn": in.DomainAuthSecretArn != nil, "DomainDnsIps": len(in.DomainDnsIps) > 0,
		"TdeCredentialArn": in.TdeCredentialArn != nil, "TdeCredentialPassword": in.TdeCredentialPassword != nil, "DBName": in.DBName != nil,
		"ProcessorFeatures": len(in.ProcessorFeatures) > 0, "EnableCustomerOwnedIp": wire.Or(in.EnableCustomerOwnedIp, false),
		"BackupTarget": wire.Or(in.BackupTarget, "region") != "region", "CustomIamInstanceProfile": in.CustomIamInstanceProfile != nil,
		"DBCapacityReservationIdentifier": in.DBCapacityReservationIdentifier != nil, "DedicatedLogVolume": wire.Or(in.DedicatedLogVolume, false),
		"AdditionalStorageVolumes": len(in.AdditionalStorageVolumes) > 0, "TagSpecifications": len(in.TagSpecifications) > 0,
	}), database.CheckKept(nil, in.EngineLifecycleSupport))
}

// newRestored is the record of a restored instance: with the classes, sizes and windows of the one
// that it is made of, and with the default groups, unless something else is asked for. limit is that
// of its growth, or nil.
func newRestored(l *database.Sight, c front.Call, from restore.Choice, in *rds.RestoreDBInstanceFromDBSnapshotMessage, limit *int32) (spec.Instance, []state.Op, error) {
	of := instanceOf(from)
	asked, err := createAs(of, in)
	if err != nil {
		return spec.Instance{}, nil, err
	}
	if limit != nil {
		asked.MaxAllocatedStorage = limit
	}
	i, err := instanceRecord(l, c, asked)
	if err == nil {
		err = database.CheckAskedMaxStorage(limit, i.Disk())
	}
	if err != nil {
		return i, nil, err
	}
	if err := l.NameFree(c.Scope, i.Name); err != nil {
		return i, nil, err
	}
	i.Origin = &from.Origin
	i.MasterUser, i.Verifier, i.PasswordSerial, i.DBName = of.MasterUser, of.Verifier, of.PasswordSerial, of.DBName
	ops, err := l.EncryptRestored(c, &i.Common, of.Scope, of.StorageKey, nil)
	if err != nil {
		return i, nil, err
	}
	if err := l.CanPlace(i.Common, plan.ForInstance(i, plan.Links{Groups: l.Groups})); err != nil {
		return i, nil, err
	}
	i.Managed = wire.Or(in.ManageMasterUserPassword, false)
	kept, err := l.FirstSecret(&i.Common, false, c.Now)
	return i, append(append(ops, kept...), from.Unchanged...), err
}

// instanceOf is what a restored instance is like. Of a Multi-AZ DB cluster it has what each of its
// instances had.
func instanceOf(from restore.Choice) spec.Instance {
	if from.Cluster == nil {
		return *from.Instance
	}
	i := spec.Instance{Common: from.Cluster.Common, Class: from.Cluster.Class, License: look.License, AutoMinor: from.Cluster.AutoMinor}
	i.SetDisk(from.Cluster.Disk())
	return i
}

// createAs is the request for a new instance like another one, but for what is asked for.
func createAs(of spec.Instance, in *rds.RestoreDBInstanceFromDBSnapshotMessage) (*rds.CreateDBInstanceMessage, error) {
	if engine := wire.Or(in.Engine, of.Engine); engine != of.Engine {
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "The engine %s is not compatible with the data, which are of %s.", engine, of.Engine)
	}
	disk := diskLike(of.Disk(), in.AllocatedStorage, in.Iops, in.StorageThroughput, in.StorageType)
	if disk.GiB < of.Storage {
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "Invalid AllocatedStorage %d: a restored DB instance has at least the storage of its source, %d GiB.", disk.GiB, of.Storage)
	}
	asked := &rds.CreateDBInstanceMessage{
		DBInstanceIdentifier: in.DBInstanceIdentifier, DBInstanceClass: wire.Some(wire.Or(in.DBInstanceClass, of.Class)), Engine: wire.Some(of.Engine),
		EngineVersion: wire.Some(strconv.Itoa(of.Major)), Port: wire.Number(int(wire.Or(in.Port, int32(of.Port)))), AvailabilityZone: in.AvailabilityZone,
		DBSubnetGroupName: in.DBSubnetGroupName, MultiAZ: in.MultiAZ, PubliclyAccessible: in.PubliclyAccessible,
		AutoMinorVersionUpgrade: wire.Some(wire.Or(in.AutoMinorVersionUpgrade, of.AutoMinor)), LicenseModel: in.LicenseModel, OptionGroupName: in.OptionGroupName,
		Tags: in.Tags, VpcSecurityGroupIds: in.VpcSecurityGroupIds, CopyTagsToSnapshot: in.CopyTagsToSnapshot,
		EnableIAMDatabaseAuthentication: wire.Some(wire.Or(in.EnableIAMDatabaseAuthentication, of.IAMAuth)), DBParameterGroupName: in.DBParameterGroupName,
		DeletionProtection: in.DeletionProtection, NetworkType: in.NetworkType, PreferredBackupWindow: in.PreferredBackupWindow,
		BackupRetentionPeriod: wire.Number(int(wire.Or(in.BackupRetentionPeriod, int32(of.BackupRetention)))), CACertificateIdentifier: in.CACertificateIdentifier,
		StorageType: wire.Text(disk.Type), AllocatedStorage: wire.Number(disk.GiB), Iops: wire.Amount(disk.IOPS), StorageThroughput: wire.Amount(disk.MiBps),
	}
	if of.MaxStorage >= disk.GiB {
		asked.MaxAllocatedStorage = wire.Amount(of.MaxStorage)
	}
	if in.PreferredBackupWindow == nil { // else they might overlap
		asked.PreferredBackupWindow, asked.PreferredMaintenanceWindow = wire.Some(of.BackupWindow), wire.Some(of.MaintenanceWindow)
	}
	if len(in.Tags) == 0 { // as on RDS: the tags that the database had
		asked.Tags = look.TagsOut(of.Tags)
	}
	return asked, nil
}
