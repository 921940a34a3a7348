package instance

import (
	"context"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/automated"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// restoreDBInstanceToPointInTime makes a new instance with the data that another one had at a
// moment, also one that was deleted and whose automated backups were kept.
func (s *service) restoreDBInstanceToPointInTime(ctx context.Context, c front.Call, in *rds.RestoreDBInstanceToPointInTimeMessage) (*rds.RestoreDBInstanceToPointInTimeResult, error) {
	asked := likeFromSnapshot(in)
	if err := look.First(notRestorable(asked), spec.CheckName("TargetDBInstanceIdentifier", wire.Lower(in.TargetDBInstanceIdentifier))); err != nil {
		return nil, err
	}
	target, err := restore.TargetOf(in.RestoreTime, in.UseLatestRestorableTime, "RestoreTime")
	if err != nil {
		return nil, err
	}
	made, err := s.create(ctx, c, func(l *database.Sight) (spec.Instance, []state.Op, error) {
		from, err := automated.Instance.Source(l.Look, c.Scope, in.SourceDBInstanceIdentifier, in.SourceDbiResourceId, in.SourceDBInstanceAutomatedBackupsArn)
		if err != nil {
			return spec.Instance{}, nil, err
		}
		choice, err := restore.To(l.Looks, from, target)
		if err != nil {
			return spec.Instance{}, nil, err
		}
		return newRestored(l, c, choice, asked, in.MaxAllocatedStorage)
	})
	if err != nil {
		return nil, err
	}
	return &rds.RestoreDBInstanceToPointInTimeResult{DBInstance: made}, nil
}

// likeFromSnapshot is the request for a new instance as the other action has it.
func likeFromSnapshot(in *rds.RestoreDBInstanceToPointInTimeMessage) *rds.RestoreDBInstanceFromDBSnapshotMessage {
	return &rds.RestoreDBInstanceFromDBSnapshotMessage{
		DBInstanceIdentifier: in.TargetDBInstanceIdentifier, DBInstanceClass: in.DBInstanceClass, Port: in.Port, AvailabilityZone: in.AvailabilityZone,
		DBSubnetGroupName: in.DBSubnetGroupName, MultiAZ: in.MultiAZ, PubliclyAccessible: in.PubliclyAccessible, AutoMinorVersionUpgrade: in.AutoMinorVersionUpgrade,
		LicenseModel: in.LicenseModel, DBName: in.DBName, Engine: in.Engine, Iops: in.Iops, StorageThroughput: in.StorageThroughput, OptionGroupName: in.OptionGroupName,
		Tags: in.Tags, StorageType: in.StorageType, TdeCredentialArn: in.TdeCredentialArn, TdeCredentialPassword: in.TdeCredentialPassword,
		VpcSecurityGroupIds: in.VpcSecurityGroupIds, Domain: in.Domain, DomainFqdn: in.DomainFqdn, DomainOu: in.DomainOu, DomainAuthSecretArn: in.DomainAuthSecretArn,
		DomainDnsIps: in.DomainDnsIps, CopyTagsToSnapshot: in.CopyTagsToSnapshot, DomainIAMRoleName: in.DomainIAMRoleName,
		EnableIAMDatabaseAuthentication: in.EnableIAMDatabaseAuthentication, ProcessorFeatures: in.ProcessorFeatures, DBParameterGroupName: in.DBParameterGroupName,
		DeletionProtection: in.DeletionProtection, EnableCustomerOwnedIp: in.EnableCustomerOwnedIp, NetworkType: in.NetworkType, BackupTarget: in.BackupTarget,
		CustomIamInstanceProfile: in.CustomIamInstanceProfile, AllocatedStorage: in.AllocatedStorage, BackupRetentionPeriod: in.BackupRetentionPeriod,
		PreferredBackupWindow: in.PreferredBackupWindow, DBCapacityReservationIdentifier: in.DBCapacityReservationIdentifier,
		DedicatedLogVolume: in.DedicatedLogVolume, CACertificateIdentifier: in.CACertificateIdentifier, EngineLifecycleSupport: in.EngineLifecycleSupport,
		AdditionalStorageVolumes: in.AdditionalStorageVolumes, TagSpecifications: in.TagSpecifications, ManageMasterUserPassword: in.ManageMasterUserPassword,
	}
}
