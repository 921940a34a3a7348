package instance

import (
	"context"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/group"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
)

// modifyDBInstance changes an instance: some parameters at once, others, unless
// ApplyImmediately says so, in the maintenance window (RDS user guide, "Settings
// for DB instances").
func (s *service) modifyDBInstance(ctx context.Context, c front.Call, in *rds.ModifyDBInstanceMessage) (*rds.ModifyDBInstanceResult, error) {
	if !wire.Given(in, "DBInstanceIdentifier", "ApplyImmediately", "AllowMajorVersionUpgrade") {
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "No modifications were requested")
	}
	if err := modifyNotAvailable(in); err != nil {
		return nil, err
	}
	i, err := s.Modify(ctx, c, in.DBInstanceIdentifier, func(m *database.Modification, i *spec.Instance) error {
		return modify(m, i, in)
	})
	if err != nil {
		return nil, err
	}
	return &rds.ModifyDBInstanceResult{DBInstance: i}, nil
}

func modifyNotAvailable(in *rds.ModifyDBInstanceMessage) error {
	return look.First(look.RefuseAsked(map[string]bool{
		"MasterUserAuthenticationType": wire.Or(in.MasterUserAuthenticationType, "password") != "password",
		"Domain":                       wire.Or(in.Domain, "none") != "none", "DomainFqdn": in.DomainFqdn != nil,
		"TdeCredentialArn": in.TdeCredentialArn != nil, "MultiTenant": wire.Or(in.MultiTenant, false),
		"ProcessorFeatures": len(in.ProcessorFeatures) > 0, "ReplicaMode": in.ReplicaMode != nil,
		"AutomationMode": in.AutomationMode != nil, "Engine": in.Engine != nil,
		"EnableCustomerOwnedIp":    wire.Or(in.EnableCustomerOwnedIp, false),
		"DedicatedLogVolume":       wire.Or(in.DedicatedLogVolume, false),
		"AdditionalStorageVolumes": len(in.AdditionalStorageVolumes) > 0,
		"DomainIAMRoleName":        in.DomainIAMRoleName != nil, "DomainOu": in.DomainOu != nil, "DomainAuthSecretArn": in.DomainAuthSecretArn != nil, "DomainDnsIps": len(in.DomainDnsIps) > 0,
		"TdeCredentialPassword": in.TdeCredentialPassword != nil, "TagSpecifications": len(in.TagSpecifications) > 0,
		"ResumeFullAutomationModeMinutes": in.ResumeFullAutomationModeMinutes != nil,
		"DBCapacityReservationIdentifier": in.DBCapacityReservationIdentifier != nil,
		"AwsBackupRecoveryPointArn":       in.AwsBackupRecoveryPointArn != nil,
	}), database.CheckClassicGroups(in.DBSecurityGroups), database.CheckKept(in.PerformanceInsightsRetentionPeriod, in.EngineLifecycleSupport))
}

// modify makes the modification of an instance that a request asks for.
func modify(m *database.Modification, i *spec.Instance, in *rds.ModifyDBInstanceMessage) error {
	notAvailable := wire.NewError(rds.ErrInvalidDBInstanceState, "Database instance is not in available state.")
	if err := m.Sight.May(operation.Change, *i, notAvailable); err != nil {
		return err
	}
	if err := allowed(*i, in); err != nil {
		return err
	}
	if err := settings(in).Apply(m, &i.Common); err != nil {
		return err
	}
	if in.DBParameterGroupName != nil {
		if err := group.Fits(m.Look, *i); err != nil {
			return err
		}
	}
	if i.MultiAZ && in.DBSubnetGroupName != nil {
		if err := m.Covers(i.Common, 2, rds.ErrInvalidVPCNetworkState); err != nil {
			return err
		}
	}
	wire.Set(&i.OptionGroup, in.OptionGroupName)
	wire.Set(&i.AutoMinor, in.AutoMinorVersionUpgrade)
	wire.Set(&i.Tier, database.Ints(in.PromotionTier))
	wire.Set(&i.MaxStorage, database.Ints(in.MaxAllocatedStorage))
	wire.Set(&i.License, in.LicenseModel)
	wanted, err := wantedOf(m, *i, in)
	err = look.First(err, spec.CheckTier(i.Tier), database.CheckLicense(i.License), m.Master(&i.Common, database.Master{
		Password: in.MasterUserPassword, Manage: in.ManageMasterUserPassword, Rotate: in.RotateMasterUserPassword, Now: in.ApplyImmediately, Facts: m.FactsOf(*i),
	}), m.Port(&i.Common, in.DBPortNumber), m.Publish(i, in.PubliclyAccessible))
	if err != nil {
		return err
	}
	if days := wanted.BackupRetention; days != nil && *days > 0 && i.BackupRetention > 0 {
		m.Retention(&i.Common, days)
	}
	return Kind.Take(m, i, wanted, wire.Or(in.ApplyImmediately, false))
}

func settings(in *rds.ModifyDBInstanceMessage) database.Settings {
	return database.Settings{
		ParameterGroup: in.DBParameterGroupName, BackupWindow: in.PreferredBackupWindow, MaintenanceWindow: in.PreferredMaintenanceWindow,
		MonitoringRole: in.MonitoringRoleArn, Network: in.NetworkType, Version: in.EngineVersion,
		SubnetGroup: in.DBSubnetGroupName, OptionGroup: in.OptionGroupName, Monitoring: in.MonitoringInterval,
		DeletionProtection: in.DeletionProtection, CopyTags: in.CopyTagsToSnapshot, Insights: in.EnablePerformanceInsights,
		SecurityGroups: in.VpcSecurityGroupIds, Logs: in.CloudwatchLogsExportConfiguration, NoGroup: rds.ErrDBParameterGroupNotFound,
	}
}

// allowed refuses what an instance of its kind cannot have changed.
func allowed(i spec.Instance, in *rds.ModifyDBInstanceMessage) error {
	if i.Follows() && (in.MasterUserPassword != nil || wire.Or(in.ManageMasterUserPassword, false) || wire.Or(in.RotateMasterUserPassword, false)) {
		return wire.NewError(api.ErrInvalidParameterCombination, "The master user of a read replica is that of its source: change the password there.")
	}
	if i.Cluster == "" {
		return nil
	}
	if wire.Or(in.MultiAZ, false) {
		return wire.NewError(api.ErrInvalidParameterCombination, "VPC Multi-AZ DB Instances are not available for engine: %s", i.Engine)
	}
	if i.Auto && (in.DBInstanceClass != nil || in.NewDBInstanceIdentifier != nil || in.CACertificateIdentifier != nil) {
		return wire.NewError(api.ErrInvalidParameterCombination, "The DB instance %s belongs to a Multi-AZ DB cluster: modify the cluster.", i.Name)
	}
	return clusterModifies(in)
}

// clusterModifies refuses what can only be changed on a cluster.
func clusterModifies(in *rds.ModifyDBInstanceMessage) error {
	asked := map[string]bool{
		"master user password": in.MasterUserPassword != nil || in.ManageMasterUserPassword != nil || in.RotateMasterUserPassword != nil, "backup retention": in.BackupRetentionPeriod != nil,
		"backup window": in.PreferredBackupWindow != nil, "vpc security group": len(in.VpcSecurityGroupIds) > 0,
		"port": in.DBPortNumber != nil, "engine version": in.EngineVersion != nil, "storage": in.AllocatedStorage != nil,
		"storage type": in.StorageType != nil, "iops": in.Iops != nil, "iam authentication": in.EnableIAMDatabaseAuthentication != nil,
		"deletion protection": in.DeletionProtection != nil, "log exports": in.CloudwatchLogsExportConfiguration != nil,
	}
	return look.Refuse(asked, "The specified DB Instance is a member of a cluster and its %[1]s should not be modified directly. "+
		"Instead, modify the %[1]s of the cluster using the ModifyDbCluster API")
}

// wantedOf are the values that a request asks for and that may wait, checked one by
// one. Days of backups wait only when backups begin or end.
func wantedOf(m *database.Modification, i spec.Instance, in *rds.ModifyDBInstanceMessage) (spec.Values, error) {
	v := spec.Values{MultiAZ: in.MultiAZ, IAMAuth: in.EnableIAMDatabaseAuthentication, Class: wire.Or(in.DBInstanceClass, ""), BackupRetention: database.Ints(in.BackupRetentionPeriod)}
	if in.CACertificateIdentifier != nil {
		v.CACertificate, v.RotationRestart = *in.CACertificateIdentifier, wire.Or(in.CertificateRotationRestart, false)
		if err := m.Authorities.Check(v.CACertificate); err != nil {
			return v, err
		}
	}
	if v.Class != "" {
		if _, err := spec.CheckClass(v.Class); err != nil {
			return v, err
		}
	}
	if v.BackupRetention != nil {
		if err := spec.CheckRetention(*v.BackupRetention, 0); err != nil {
			return v, err
		}
	}
	if in.NewDBInstanceIdentifier != nil {
		v.Name = wire.Lower(in.NewDBInstanceIdentifier)
		if err := look.First(spec.CheckName("NewDBInstanceIdentifier", v.Name), m.Nameable("NewDBInstanceIdentifier", look.InstanceNames, i.Scope, v.Name)); err != nil {
			return v, err
		}
	}
	var err error
	v.Disk, err = database.WantedDisk(i.Disk(), in.AllocatedStorage, in.Iops, in.StorageThroughput, in.StorageType)
	if err != nil {
		return v, err
	}
	disk := i.Disk()
	if v.Disk != nil {
		disk = *v.Disk
	}
	return v, look.First(database.CheckMaxStorage(i.MaxStorage, disk.GiB), database.CheckAskedMaxStorage(in.MaxAllocatedStorage, disk))
}

func valuesOf(i spec.Instance) spec.Values {
	return spec.Values{
		Class: i.Class, Disk: wire.Some(i.Disk()), MultiAZ: wire.Some(i.MultiAZ), BackupRetention: wire.Some(i.BackupRetention),
		IAMAuth: wire.Some(i.IAMAuth), Name: i.Name, CACertificate: i.CACertificate,
	}
}

// possible: there is room, and the new name is free.
func possible(m *database.Modification, i spec.Instance, v spec.Values) error {
	if v.Name != "" {
		if err := m.NameFree(i.Scope, v.Name); err != nil {
			return err
		}
	}
	if v.Class != "" {
		seat := ""
		if i.Cluster != "" {
			seat = i.ResourceID
		}
		if err := m.CanGrow(m.FactsOf(i), seat, i.Class, v.Class); err != nil {
			return err
		}
		smaller := i
		smaller.Class = v.Class
		if err := group.Fits(m.Look, smaller); err != nil {
			return err
		}
	}
	if !wire.Or(v.MultiAZ, false) {
		return nil
	}
	i.MultiAZ = true
	if err := m.Covers(i.Common, 2, rds.ErrInvalidVPCNetworkState); err != nil {
		return err
	}
	return m.CanPlace(i.Common, plan.ForInstance(i, m.Links(i)))
}

// changeDisk gives the instance other storage.
func changeDisk(m *database.Modification, i *spec.Instance, to spec.Storage) {
	m.Before.Disk = wire.Some(i.Disk())
	if m.Autoscales {
		m.Work(plan.Modifying, "0217", "0218")
	} else {
		m.Work(plan.Modifying, "0018", "0017")
	}
	if to.GiB != i.Storage {
		i.StorageChanged = m.Now.UTC()
	}
	i.SetDisk(to)
}

// carryOut changes the record to new values, all of which differ from its own.
func carryOut(m *database.Modification, i *spec.Instance, v spec.Values) error {
	if v.Class != "" {
		m.Before.Class = i.Class
		m.Work(plan.Modifying, "0012", "0014")
		changeClass(m, i, v.Class)
	}
	if v.Disk != nil {
		changeDisk(m, i, *v.Disk)
	}
	if v.MultiAZ != nil {
		m.Before.MultiAZ = wire.Some(i.MultiAZ)
		if i.MultiAZ = *v.MultiAZ; i.MultiAZ {
			m.Work(plan.Modifying, "0024", "0025")
		} else {
			m.Work(plan.Modifying, "0030", "0029")
		}
	}
	m.Retention(&i.Common, v.BackupRetention)
	wire.Set(&i.IAMAuth, v.IAMAuth)
	rotate(m, i, v)
	if v.Name != "" {
		m.Work(database.Renaming, "", "")
		m.Began = append(m.Began, look.Event("H006", i.Name, v.Name))
		i.Name = v.Name
	}
	return nil
}

// rotate has servers show a certificate of another authority. PostgreSQL takes it
// while it runs; it is restarted only for those who ask for it.
func rotate(m *database.Modification, i *spec.Instance, v spec.Values) {
	if v.CACertificate == "" {
		return
	}
	i.CACertificate = v.CACertificate
	i.OptIn(spec.RotateCertificate, false, m.Now)
	m.Work(plan.Modifying, "", "")
	m.Began = append(m.Began, look.Event("H009", v.CACertificate))
	if v.RotationRestart {
		i.Restart++
		m.Restarts = true
	}
}

// changeClass changes the class, which needs a restart, and what depends on it.
func changeClass(m *database.Modification, i *spec.Instance, class string) {
	i.Class = class
	i.Restart++
	known, _ := spec.LookupClass(class)
	if i.Follows() {
		i.SharedMemory = max(i.SharedMemory, m.SharedMemory(i.Source))
	}
	if i.Cluster == "" {
		m.Ops = append(m.Ops, m.GrowFollowers(i.ResourceID, max(known.Memory, i.SharedMemory))...)
		return
	}
	cluster := m.ClusterOf(*i)
	if cluster == nil {
		return
	}
	m.Share(cluster, class)
	m.Ops = append(m.Ops, m.GrowFollowers(cluster.ResourceID, cluster.SharedMemory)...)
	m.Sight = m.With(*cluster)
}

// finish counts the modification. Of a member, the planner only carries
// out what needs a restart, and the restarts of its seat are the count.
func finish(m *database.Modification, i *spec.Instance) {
	if i.Cluster == "" {
		m.Finish(&i.Common)
		return
	}
	i.Generation++
	if m.Before.Class != "" || m.Restarts {
		i.Change = i.Restart + m.Cluster[i.Cluster].Restart
		i.ChangeStatus, i.ChangeEvents, i.Before = plan.Modifying, m.Done, &m.Before
	}
}
