package cluster

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
	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// modifyDBCluster changes a cluster: some parameters at once, others, unless
// ApplyImmediately says so, in the maintenance window.
func (s *service) modifyDBCluster(ctx context.Context, c front.Call, in *rds.ModifyDBClusterMessage) (*rds.ModifyDBClusterResult, error) {
	if !wire.Given(in, "DBClusterIdentifier", "ApplyImmediately", "AllowMajorVersionUpgrade") {
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "No modifications were requested")
	}
	if err := modifyNotAvailable(in); err != nil {
		return nil, err
	}
	cluster, err := s.Modify(ctx, c, in.DBClusterIdentifier, func(m *database.Modification, cluster *spec.Cluster) error {
		return modify(m, cluster, in)
	})
	if err != nil {
		return nil, err
	}
	return &rds.ModifyDBClusterResult{DBCluster: cluster}, nil
}

func modifyNotAvailable(in *rds.ModifyDBClusterMessage) error {
	return look.First(look.RefuseAsked(map[string]bool{
		"MasterUserAuthenticationType":     wire.Or(in.MasterUserAuthenticationType, "password") != "password",
		"ScalingConfiguration":             in.ScalingConfiguration != nil,
		"ServerlessV2ScalingConfiguration": in.ServerlessV2ScalingConfiguration != nil,
		"EngineMode":                       wire.Or(in.EngineMode, "provisioned") != "provisioned",
		"EnableGlobalWriteForwarding":      wire.Or(in.EnableGlobalWriteForwarding, false),
		"EnableLocalWriteForwarding":       wire.Or(in.EnableLocalWriteForwarding, false),
		"EnableHttpEndpoint":               wire.Or(in.EnableHttpEndpoint, false),
		"EnableLimitlessDatabase":          wire.Or(in.EnableLimitlessDatabase, false),
		"BacktrackWindow":                  wire.Or(in.BacktrackWindow, 0) != 0,
		"Domain":                           wire.Or(in.Domain, "none") != "none",
		"DomainIAMRoleName":                in.DomainIAMRoleName != nil,
		"AwsBackupRecoveryPointArn":        in.AwsBackupRecoveryPointArn != nil,
	}), database.CheckKept(in.PerformanceInsightsRetentionPeriod, in.EngineLifecycleSupport))
}

// modify makes the modification of a cluster that a request asks for.
func modify(m *database.Modification, cluster *spec.Cluster, in *rds.ModifyDBClusterMessage) error {
	if err := m.MayCluster(operation.Change, *cluster); err != nil {
		return err
	}
	if err := kindAllows(*cluster, in); err != nil {
		return err
	}
	if err := settings(in).Apply(m, &cluster.Common); err != nil {
		return err
	}
	if in.DBClusterParameterGroupName != nil {
		m.Sight = m.With(*cluster)
		for _, i := range m.InstancesOf(cluster.ResourceID) {
			if err := group.Fits(m.Look, i); err != nil {
				return err
			}
		}
	}
	wire.Set(&cluster.OptionGroup, in.OptionGroupName)
	wire.Set(&cluster.AutoMinor, in.AutoMinorVersionUpgrade)
	wanted, err := wantedOf(m, *cluster, in)
	err = look.First(err, m.Master(&cluster.Common, database.Master{
		Password: in.MasterUserPassword, Manage: in.ManageMasterUserPassword, Rotate: in.RotateMasterUserPassword, Now: in.ApplyImmediately, Facts: m.FactsOfCluster(*cluster),
	}), m.Port(&cluster.Common, in.Port))
	if err != nil {
		return err
	}
	m.Retention(&cluster.Common, wanted.BackupRetention)
	return Kind.Take(m, cluster, wanted, wire.Or(in.ApplyImmediately, false))
}

func settings(in *rds.ModifyDBClusterMessage) database.Settings {
	return database.Settings{
		ParameterGroup: in.DBClusterParameterGroupName, BackupWindow: in.PreferredBackupWindow,
		MaintenanceWindow: in.PreferredMaintenanceWindow, MonitoringRole: in.MonitoringRoleArn, Network: in.NetworkType,
		Version: in.EngineVersion, OptionGroup: in.OptionGroupName,
		Monitoring: in.MonitoringInterval, DeletionProtection: in.DeletionProtection, CopyTags: in.CopyTagsToSnapshot,
		Insights: in.EnablePerformanceInsights, SecurityGroups: in.VpcSecurityGroupIds, Logs: in.CloudwatchLogsExportConfiguration,
		NoGroup: rds.ErrDBClusterParameterGroupNotFound,
	}
}

// kindAllows refuses what the other kind of cluster has.
func kindAllows(c spec.Cluster, in *rds.ModifyDBClusterMessage) error {
	if name := in.DBInstanceParameterGroupName; name != nil && *name != group.Default(c.Common) {
		return look.OrBlank(*name, "DBInstanceParameterGroupName", wire.NewError(rds.ErrDBParameterGroupNotFound, "DBParameterGroup not found: %s", *name))
	}
	if c.MultiAZ() {
		return nil
	}
	if kind := wire.Or(in.StorageType, look.AuroraStorage.Type); kind != look.AuroraStorage.Type && kind != look.AuroraIO {
		return wire.NewError(rds.ErrStorageTypeNotSupported, "Invalid storage type: %s", kind)
	}
	return look.Refuse(map[string]bool{
		"DBClusterInstanceClass": in.DBClusterInstanceClass != nil, "AllocatedStorage": in.AllocatedStorage != nil, "Iops": in.Iops != nil,
		"CACertificateIdentifier": in.CACertificateIdentifier != nil,
	}, "The parameter %s is only valid for Multi-AZ DB clusters.")
}

func wantedOf(m *database.Modification, c spec.Cluster, in *rds.ModifyDBClusterMessage) (spec.Values, error) {
	v := spec.Values{IAMAuth: in.EnableIAMDatabaseAuthentication, Class: wire.Or(in.DBClusterInstanceClass, ""), BackupRetention: database.Ints(in.BackupRetentionPeriod)}
	if v.Class != "" {
		if _, err := spec.CheckClass(v.Class); err != nil {
			return v, err
		}
	}
	if in.CACertificateIdentifier != nil {
		v.CACertificate = *in.CACertificateIdentifier
		if err := m.Authorities.Check(v.CACertificate); err != nil {
			return v, err
		}
	}
	if v.BackupRetention != nil {
		if err := spec.CheckRetention(*v.BackupRetention, 1); err != nil {
			return v, err
		}
	}
	if in.NewDBClusterIdentifier != nil {
		v.Name = wire.Lower(in.NewDBClusterIdentifier)
		named := c
		named.Name = v.Name
		if err := checkName(m.Looks, "NewDBClusterIdentifier", named); err != nil {
			return v, err
		}
	}
	if !c.MultiAZ() {
		if in.StorageType != nil {
			v.Disk = &spec.Storage{Type: *in.StorageType}
		}
		return v, nil
	}
	var err error
	v.Disk, err = database.WantedDisk(c.Disk(), in.AllocatedStorage, in.Iops, nil, in.StorageType)
	return v, err
}

func valuesOf(c spec.Cluster) spec.Values {
	return spec.Values{
		Class: c.Class, Disk: wire.Some(c.Disk()), BackupRetention: wire.Some(c.BackupRetention), IAMAuth: wire.Some(c.IAMAuth), Name: c.Name,
		CACertificate: c.CACertificate,
	}
}

// possible: there is room, and the new name is free.
func possible(m *database.Modification, c spec.Cluster, v spec.Values) error {
	if v.Name != "" {
		if err := nameFree(m.Sight, c.Scope, v.Name); err != nil {
			return err
		}
	}
	if v.Class == "" {
		return nil
	}
	facts := m.FactsOfCluster(c)
	for _, i := range m.InstancesOf(c.ResourceID) {
		if err := m.CanGrow(facts, i.ResourceID, i.Class, v.Class); err != nil {
			return err
		}
	}
	return nil
}

// carryOut changes the records of a cluster and its own instances to new
// values, all of which differ from its own.
func carryOut(m *database.Modification, c *spec.Cluster, v spec.Values) error {
	if v.Class != "" {
		m.Before.Class = c.Class
		m.Work(plan.Modifying, "", "")
		c.Class = v.Class
		m.Share(c, v.Class)
		c.Restart++
		m.Ops = append(m.Ops, m.GrowFollowers(c.ResourceID, c.SharedMemory)...)
	}
	if v.Disk != nil {
		m.Before.Disk = wire.Some(c.Disk())
		if c.MultiAZ() {
			m.Work(plan.Modifying, "", "")
		}
		c.SetDisk(*v.Disk)
	}
	if v.CACertificate != "" {
		c.CACertificate = v.CACertificate
		c.OptIn(spec.RotateCertificate, false, m.Now)
		m.Work(plan.Modifying, "", "")
	}
	if c.MultiAZ() && (v.Class != "" || v.Disk != nil || v.CACertificate != "") {
		if err := followCluster(m, *c, v.Class != ""); err != nil {
			return err
		}
	}
	m.Retention(&c.Common, v.BackupRetention)
	wire.Set(&c.IAMAuth, v.IAMAuth)
	if v.Name != "" {
		m.Work(database.Renaming, "", "")
		m.Began = append(m.Began, look.Event("0172", c.Name, v.Name))
		c.Name = v.Name
	}
	return nil
}

// followCluster gives the instances of a Multi-AZ DB cluster its class, its storage and
// its authority.
func followCluster(m *database.Modification, c spec.Cluster, restarts bool) error {
	for _, r := range m.MembersOf(c.ResourceID) {
		i := r.Value
		i.Class = c.Class
		i.SetDisk(c.Disk())
		i.Generation++
		if i.CACertificate != c.CACertificate {
			i.CACertificate = c.CACertificate
			began, err := look.Tell(m.Call, event.Instance, i.Common, look.Event("H009", c.CACertificate))
			if err != nil {
				return err
			}
			m.Ops = append(m.Ops, began...)
		}
		if restarts {
			i.Change = i.Restart + c.Restart
			i.ChangeStatus, i.ChangeEvents = plan.Modifying, []string{"0014"}
			i.Before = &spec.Values{Class: r.Value.Class}
			began, err := look.Tell(m.Call, event.Instance, i.Common, look.Event("0012"))
			if err != nil {
				return err
			}
			m.Ops = append(m.Ops, began...)
		}
		m.Ops = append(m.Ops, state.Swap(r.Key, r.Revision, i))
	}
	return nil
}
