package instance

import (
	"context"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/group"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/option"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/event"
	"howdah/internal/model/param"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// createDBInstance makes an instance: a database of its own, or a member of a
// cluster. The answer says "creating"; reconcile does the rest.
func (s *service) createDBInstance(ctx context.Context, c front.Call, in *rds.CreateDBInstanceMessage) (*rds.CreateDBInstanceResult, error) {
	if err := notAvailable(in); err != nil {
		return nil, err
	}
	made, err := s.create(ctx, c, func(l *database.Sight) (spec.Instance, []state.Op, error) {
		if in.DBClusterIdentifier != nil {
			return newMember(l, c, in)
		}
		return newInstance(l, c, in)
	})
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBInstanceResult{DBInstance: made}, nil
}

// create adds the instance that begin answers, and answers it as the API shows it.
func (s *service) create(ctx context.Context, c front.Call, begin func(*database.Sight) (spec.Instance, []state.Op, error)) (*rds.DBInstance, error) {
	return s.Create(ctx, c, func(l *database.Sight) (spec.Instance, []state.Op, error) {
		i, ops, err := begin(l)
		if err != nil {
			return i, nil, err
		}
		return add(l, c, i, ops)
	})
}

// add takes a name for a new instance, and an address unless it has one, and holds what it uses.
func add(l *database.Sight, c front.Call, i spec.Instance, ops []state.Op) (spec.Instance, []state.Op, error) {
	if err := l.NameFree(i.Scope, i.Name); err != nil {
		return i, nil, err
	}
	if i.Address == "" {
		address, claim, err := l.Pools.Claim(i.ResourceID, i.Public)
		if err != nil {
			return i, nil, err
		}
		i.Address = address
		ops = append(ops, claim)
	}
	group.Take(l.Look, &i)
	if err := group.Fits(l.Look, i); err != nil {
		return i, nil, err
	}
	ops = append(ops, group.Use(l.Look, param.Instance, i.Common)...)
	ops = append(ops, l.HoldGroups(i.Scope, i.SubnetGroup, i.OptionGroup)...)
	ops = append(ops, l.HoldSecurityGroups(i.Common)...)
	warning, err := l.WarnPublic(c, event.Instance, i.Common, i.Public)
	return i, append(ops, warning...), err
}

// notAvailable refuses what would be silently missing otherwise.
func notAvailable(in *rds.CreateDBInstanceMessage) error {
	return look.First(look.RefuseAsked(map[string]bool{
		"MasterUserAuthenticationType": wire.Or(in.MasterUserAuthenticationType, "password") != "password",
		"Domain":                       in.Domain != nil, "DomainFqdn": in.DomainFqdn != nil,
		"TdeCredentialArn":         in.TdeCredentialArn != nil,
		"CustomIamInstanceProfile": in.CustomIamInstanceProfile != nil,
		"MultiTenant":              wire.Or(in.MultiTenant, false),
		"DBSystemId":               in.DBSystemId != nil,
		"Timezone":                 in.Timezone != nil,
		"CharacterSetName":         in.CharacterSetName != nil,
		"NcharCharacterSetName":    in.NcharCharacterSetName != nil,
		"AdditionalStorageVolumes": len(in.AdditionalStorageVolumes) > 0,
		"DedicatedLogVolume":       wire.Or(in.DedicatedLogVolume, false),
		"ProcessorFeatures":        len(in.ProcessorFeatures) > 0,
		"EnableCustomerOwnedIp":    wire.Or(in.EnableCustomerOwnedIp, false),
		"DomainIAMRoleName":        in.DomainIAMRoleName != nil, "DomainOu": in.DomainOu != nil, "DomainAuthSecretArn": in.DomainAuthSecretArn != nil, "DomainDnsIps": len(in.DomainDnsIps) > 0,
		"TdeCredentialPassword": in.TdeCredentialPassword != nil, "TagSpecifications": len(in.TagSpecifications) > 0, "BackupTarget": wire.Or(in.BackupTarget, "region") != "region",
		"DBCapacityReservationIdentifier": in.DBCapacityReservationIdentifier != nil,
	}), database.CheckClassicGroups(in.DBSecurityGroups), database.CheckKept(in.PerformanceInsightsRetentionPeriod, in.EngineLifecycleSupport))
}

// newInstance is the record that a request asks for, with all defaults.
func newInstance(l *database.Sight, c front.Call, in *rds.CreateDBInstanceMessage) (spec.Instance, []state.Op, error) {
	i, err := instanceRecord(l, c, in)
	if err == nil {
		err = database.CheckAskedMaxStorage(in.MaxAllocatedStorage, i.Disk())
	}
	if err != nil {
		return i, nil, err
	}
	if err := database.SetMaster(&i.Common, in.MasterUsername, in.MasterUserPassword, in.ManageMasterUserPassword); err != nil {
		return i, nil, err
	}
	if err := l.NameFree(c.Scope, i.Name); err != nil {
		return i, nil, err
	}
	ops, err := l.Encrypt(c, &i.Common, in.StorageEncrypted, in.KmsKeyId)
	if err != nil {
		return i, nil, err
	}
	if err := l.CanPlace(i.Common, plan.ForInstance(i, plan.Links{Groups: l.Groups})); err != nil {
		return i, nil, err
	}
	kept, err := l.FirstSecret(&i.Common, false, c.Now)
	if err != nil {
		return i, nil, err
	}
	events, err := l.WarnBackups(c, event.Instance, i.Common, in.BackupRetentionPeriod)
	return i, append(append(ops, kept...), events...), err
}

// instanceRecord is the record that a request asks for, but for its master user.
func instanceRecord(l *database.Sight, c front.Call, in *rds.CreateDBInstanceMessage) (spec.Instance, error) {
	switch engine := wire.Or(in.Engine, ""); engine {
	case spec.Postgres:
	case spec.Aurora:
		return spec.Instance{}, wire.NewError(api.ErrInvalidParameterCombination, "The engine %s requires the parameter DBClusterIdentifier.", engine)
	default:
		return spec.Instance{}, wire.NewError(api.ErrInvalidParameterValue, "Invalid DB engine: %s", engine)
	}
	i := spec.Instance{
		Class: wire.Or(in.DBInstanceClass, ""), MaxStorage: int(wire.Or(in.MaxAllocatedStorage, 0)), MultiAZ: wire.Or(in.MultiAZ, false),
		License: wire.Or(in.LicenseModel, look.License), AutoMinor: wire.Or(in.AutoMinorVersionUpgrade, true),
		Public: wire.Or(in.PubliclyAccessible, false), Tier: int(wire.Or(in.PromotionTier, 1)),
	}
	common, err := instanceCommon(l, c, in)
	if err != nil {
		return spec.Instance{}, err
	}
	i.Common = common
	i.OptionGroup = wire.Or(in.OptionGroupName, look.DefaultOptionGroup(i.Common))
	storage, err := spec.CheckStorage(spec.Storage{
		Type: wire.Or(in.StorageType, ""), GiB: int(wire.Or(in.AllocatedStorage, 0)), IOPS: int(wire.Or(in.Iops, 0)), MiBps: int(wire.Or(in.StorageThroughput, 0)),
	})
	if err != nil {
		return spec.Instance{}, err
	}
	i.SetDisk(storage)
	return i, checkInstance(l, &i, in.AvailabilityZone)
}

// checkInstance checks what is an instance's own, and resolves its zone.
func checkInstance(l *database.Sight, i *spec.Instance, zone *string) error {
	var err error
	if i.Zone, err = l.ZoneIn(i.Scope, zone); err != nil {
		return err
	}
	if i.MultiAZ && i.Zone != "" {
		return wire.NewError(api.ErrInvalidParameterCombination, "Requesting a specific availability zone is not valid for Multi-AZ instances.")
	}
	if err := l.CoversZone(i.Common, i.Zone); err != nil {
		return err
	}
	if i.MultiAZ {
		if err := l.Covers(i.Common, 2, rds.ErrDBSubnetGroupDoesNotCoverEnoughAZs); err != nil {
			return err
		}
	}
	_, err = spec.CheckClass(i.Class)
	return look.First(err, spec.CheckTier(i.Tier), database.CheckMaxStorage(i.MaxStorage, i.Storage),
		database.CheckLicense(i.License), option.Check(l.Look, &i.OptionGroup, i.Common))
}

// instanceCommon is the part of a new instance's record that clusters have too.
func instanceCommon(l *database.Sight, c front.Call, in *rds.CreateDBInstanceMessage) (spec.Common, error) {
	common := spec.Common{
		Scope: c.Scope, Name: wire.Lower(in.DBInstanceIdentifier), ResourceID: look.NewResourceID("db-"),
		Created: c.Now, Generation: 1, Engine: spec.Postgres,
		Port: int(wire.Or(in.Port, look.DefaultPort)), DBName: wire.Or(in.DBName, ""),
		ParameterGroup: wire.Or(in.DBParameterGroupName, ""), SubnetGroup: wire.Or(in.DBSubnetGroupName, look.DefaultSubnetGroup),
		SecurityGroups: in.VpcSecurityGroupIds, BackupRetention: int(wire.Or(in.BackupRetentionPeriod, int32(l.StandardRetention()))),
		BackupWindow: wire.Or(in.PreferredBackupWindow, ""), MaintenanceWindow: wire.Or(in.PreferredMaintenanceWindow, ""),
		DeletionProtection: wire.Or(in.DeletionProtection, false), CopyTagsToSnapshot: wire.Or(in.CopyTagsToSnapshot, false),
		IAMAuth:            wire.Or(in.EnableIAMDatabaseAuthentication, false),
		MonitoringInterval: int(wire.Or(in.MonitoringInterval, 0)),
		MonitoringRole:     wire.Or(in.MonitoringRoleArn, ""),
		CACertificate:      wire.Or(in.CACertificateIdentifier, l.Authorities.Default(c.Scope)), NetworkType: wire.Or(in.NetworkType, "IPV4"), Tags: look.TagsIn(in.Tags),
	}
	if err := look.First(spec.CheckName("DBInstanceIdentifier", common.Name), l.Nameable("DBInstanceIdentifier", look.InstanceNames, c.Scope, common.Name)); err != nil {
		return spec.Common{}, err
	}
	return common, l.Complete(&common, wire.Or(in.EngineVersion, ""), rds.ErrDBParameterGroupNotFound)
}
