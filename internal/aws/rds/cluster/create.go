package cluster

import (
	"context"
	"fmt"

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

// createDBCluster makes an Aurora cluster, to which users add instances, or a
// Multi-AZ DB cluster (engine postgres) with the three instances that it has.
func (s *service) createDBCluster(ctx context.Context, c front.Call, in *rds.CreateDBClusterMessage) (*rds.CreateDBClusterResult, error) {
	if err := notAvailable(in); err != nil {
		return nil, err
	}
	made, err := s.Create(ctx, c, func(l *database.Sight) (spec.Cluster, []state.Op, error) { return newCluster(l, c, in) })
	if err != nil {
		return nil, err
	}
	// As on RDS, the answer is always this, also of a cluster that is there at once.
	made.Status = wire.Some(plan.Creating)
	return &rds.CreateDBClusterResult{DBCluster: made}, nil
}

// newCluster is the record that a request asks for, with the writes of all that comes along.
func newCluster(l *database.Sight, c front.Call, in *rds.CreateDBClusterMessage) (spec.Cluster, []state.Op, error) {
	cluster, err := recordOf(l, c, in)
	if err != nil {
		return cluster, nil, err
	}
	if err := database.SetMaster(&cluster.Common, in.MasterUsername, in.MasterUserPassword, in.ManageMasterUserPassword); err != nil {
		return cluster, nil, err
	}
	if err := nameFree(l, cluster.Scope, cluster.Name); err != nil {
		return cluster, nil, err
	}
	ops, err := l.Encrypt(c, &cluster.Common, in.StorageEncrypted, in.KmsKeyId)
	if err != nil {
		return cluster, nil, err
	}
	return add(l, c, cluster, ops, in.BackupRetentionPeriod)
}

// add takes addresses for a new cluster, makes its secret and the instances that it has of its own,
// and holds what it uses. days are what was asked for of backups.
func add(l *database.Sight, c front.Call, cluster spec.Cluster, ops []state.Op, days *int32) (spec.Cluster, []state.Op, error) {
	addresses, err := takeAddresses(l, &cluster)
	if err != nil {
		return cluster, nil, err
	}
	kept, err := l.FirstSecret(&cluster.Common, true, c.Now)
	if err != nil {
		return cluster, nil, err
	}
	ops = append(append(append(ops, addresses...), kept...), l.HoldGroups(cluster.Scope, cluster.SubnetGroup, cluster.OptionGroup)...)
	ops = append(append(ops, l.HoldSecurityGroups(cluster.Common)...), group.Use(l.Look, param.Cluster, cluster.Common)...)
	own, err := ownInstances(l, c, &cluster)
	if err != nil {
		return cluster, nil, err
	}
	events, err := l.WarnBackups(c, event.Cluster, cluster.Common, days)
	if err != nil {
		return cluster, nil, err
	}
	warning, err := l.WarnPublic(c, event.Cluster, cluster.Common, cluster.Public)
	return cluster, append(append(append(ops, own...), events...), warning...), err
}

func notAvailable(in *rds.CreateDBClusterMessage) error {
	return look.First(look.RefuseAsked(map[string]bool{
		"MasterUserAuthenticationType":     wire.Or(in.MasterUserAuthenticationType, "password") != "password",
		"ReplicationSourceIdentifier":      in.ReplicationSourceIdentifier != nil,
		"EngineMode":                       wire.Or(in.EngineMode, "provisioned") != "provisioned",
		"ScalingConfiguration":             in.ScalingConfiguration != nil,
		"ServerlessV2ScalingConfiguration": in.ServerlessV2ScalingConfiguration != nil,
		"GlobalClusterIdentifier":          in.GlobalClusterIdentifier != nil,
		"EnableGlobalWriteForwarding":      wire.Or(in.EnableGlobalWriteForwarding, false),
		"EnableLocalWriteForwarding":       wire.Or(in.EnableLocalWriteForwarding, false),
		"EnableHttpEndpoint":               wire.Or(in.EnableHttpEndpoint, false),
		"EnableLimitlessDatabase":          wire.Or(in.EnableLimitlessDatabase, false),
		"ClusterScalabilityType":           wire.Or(in.ClusterScalabilityType, "standard") != "standard",
		"RdsCustomClusterConfiguration":    in.RdsCustomClusterConfiguration != nil,
		"WithExpressConfiguration":         wire.Or(in.WithExpressConfiguration, false),
		"BacktrackWindow":                  wire.Or(in.BacktrackWindow, 0) != 0,
		"CharacterSetName":                 in.CharacterSetName != nil,
		"Domain":                           in.Domain != nil, "DBSystemId": in.DBSystemId != nil,
		"DomainIAMRoleName": in.DomainIAMRoleName != nil, "TagSpecifications": len(in.TagSpecifications) > 0,
		"AssociatedRoles": len(in.AssociatedRoles) > 0,
	}), database.CheckKept(in.PerformanceInsightsRetentionPeriod, in.EngineLifecycleSupport))
}

// nameFree answers the error for a name that is taken.
func nameFree(l *database.Sight, scope spec.Scope, name string) error {
	if _, _, taken := l.Cache.Raw(state.Cluster(scope.Account, scope.Region, name)); taken {
		return wire.NewError(rds.ErrDBClusterAlreadyExists, "DB Cluster already exists")
	}
	return nil
}

// recordOf is the record that a request asks for, with all defaults, but for its master user.
func recordOf(l *database.Sight, c front.Call, in *rds.CreateDBClusterMessage) (spec.Cluster, error) {
	engine := wire.Or(in.Engine, "")
	if engine != spec.Aurora && engine != spec.Postgres {
		return spec.Cluster{}, wire.NewError(api.ErrInvalidParameterValue, "Invalid DB engine: %s", engine)
	}
	cluster := spec.Cluster{Common: spec.Common{
		Scope: c.Scope, Name: wire.Lower(in.DBClusterIdentifier), ResourceID: look.NewResourceID("cluster-"), Created: c.Now, Generation: 1,
		Engine: engine, Port: int(wire.Or(in.Port, look.DefaultPort)), DBName: wire.Or(in.DatabaseName, ""),
		ParameterGroup: wire.Or(in.DBClusterParameterGroupName, ""), SubnetGroup: wire.Or(in.DBSubnetGroupName, look.DefaultSubnetGroup),
		SecurityGroups: in.VpcSecurityGroupIds, BackupRetention: int(wire.Or(in.BackupRetentionPeriod, 1)),
		BackupWindow: wire.Or(in.PreferredBackupWindow, ""), MaintenanceWindow: wire.Or(in.PreferredMaintenanceWindow, ""),
		DeletionProtection: wire.Or(in.DeletionProtection, false), CopyTagsToSnapshot: wire.Or(in.CopyTagsToSnapshot, false),
		IAMAuth:            wire.Or(in.EnableIAMDatabaseAuthentication, false),
		MonitoringInterval: int(wire.Or(in.MonitoringInterval, 0)),
		MonitoringRole:     wire.Or(in.MonitoringRoleArn, ""),
		CACertificate:      wire.Or(in.CACertificateIdentifier, l.Authorities.Default(c.Scope)), NetworkType: wire.Or(in.NetworkType, "IPV4"), Tags: look.TagsIn(in.Tags),
	}, AutoMinor: wire.Or(in.AutoMinorVersionUpgrade, true), Public: wire.Or(in.PubliclyAccessible, false)}
	if err := checkName(l.Looks, "DBClusterIdentifier", cluster); err != nil {
		return cluster, err
	}
	if err := l.Complete(&cluster.Common, wire.Or(in.EngineVersion, ""), rds.ErrDBClusterParameterGroupNotFound); err != nil {
		return cluster, err
	}
	cluster.Taken = group.Taken(l.Look, param.Cluster, cluster.Common)
	if in.OptionGroupName != nil {
		cluster.OptionGroup = *in.OptionGroupName
		if err := option.Check(l.Look, &cluster.OptionGroup, cluster.Common); err != nil {
			return cluster, err
		}
	}
	return cluster, setKind(l, &cluster, in)
}

// checkName checks the name that a cluster is to have. It leaves room for the names of the instances
// that a Multi-AZ DB cluster makes.
func checkName(s *look.Source, what string, c spec.Cluster) error {
	if !c.MultiAZ() {
		return look.First(spec.CheckName(what, c.Name), s.Nameable(what, look.ClusterNames, c.Scope, c.Name))
	}
	if len(c.Name) > 52 {
		return wire.NewError(api.ErrInvalidParameterValue, "The parameter %s is too long: a Multi-AZ DB cluster's name has at most 52 characters.", what)
	}
	return look.First(spec.CheckName(what, c.Name), s.Nameable(what, look.ClusterNames, c.Scope, c.Name),
		s.Nameable(what, look.InstanceNames, c.Scope, ownInstance(c, 9).Name))
}

// setKind sets what only one kind of cluster has, and refuses the other's.
func setKind(l *database.Sight, cluster *spec.Cluster, in *rds.CreateDBClusterMessage) error {
	if !cluster.MultiAZ() {
		err := look.Refuse(map[string]bool{
			"DBClusterInstanceClass": in.DBClusterInstanceClass != nil, "AllocatedStorage": in.AllocatedStorage != nil, "Iops": in.Iops != nil,
			"CACertificateIdentifier": in.CACertificateIdentifier != nil,
		}, "The parameter %s is only valid for Multi-AZ DB clusters: the engine "+spec.Aurora+" has none.")
		if err != nil {
			return err
		}
		cluster.StorageType = wire.Or(in.StorageType, look.AuroraStorage.Type)
		if cluster.StorageType != look.AuroraStorage.Type && cluster.StorageType != look.AuroraIO {
			return wire.NewError(api.ErrInvalidParameterValue, "Invalid storage type: %s", cluster.StorageType)
		}
		return setZones(l, cluster, in.AvailabilityZones)
	}
	if len(in.AvailabilityZones) > 0 {
		return wire.NewError(api.ErrInvalidParameterCombination, "AvailabilityZones is not valid for Multi-AZ DB clusters.")
	}
	if in.DBClusterInstanceClass == nil || in.AllocatedStorage == nil {
		return wire.NewError(api.ErrMissingParameter, "A Multi-AZ DB cluster needs the parameters DBClusterInstanceClass and AllocatedStorage.")
	}
	cluster.Class = *in.DBClusterInstanceClass
	class, err := spec.CheckClass(cluster.Class)
	if err != nil {
		return err
	}
	if err := l.Covers(cluster.Common, 3, rds.ErrDBSubnetGroupDoesNotCoverEnoughAZs); err != nil {
		return err
	}
	cluster.SharedMemory = class.Memory
	disk, err := spec.CheckStorage(spec.Storage{Type: wire.Or(in.StorageType, "io1"), GiB: int(*in.AllocatedStorage), IOPS: int(wire.Or(in.Iops, 0))})
	cluster.SetDisk(disk)
	return err
}

// setZones sets those asked for; none: any.
func setZones(l *database.Sight, cluster *spec.Cluster, asked []string) error {
	if len(asked) > 3 {
		return wire.NewError(api.ErrInvalidParameterValue, "A DB cluster has at most three Availability Zones.")
	}
	for _, name := range asked {
		zone, err := l.ZoneIn(cluster.Scope, &name)
		if err != nil {
			return err
		}
		cluster.Zones = append(cluster.Zones, zone)
	}
	return nil
}

// takeAddresses takes the addresses of the writer's and the readers' endpoint.
func takeAddresses(l *database.Sight, cluster *spec.Cluster) ([]state.Op, error) {
	writer, takeWriter, err := l.Pools.Claim(cluster.ResourceID, cluster.Public)
	if err != nil {
		return nil, err
	}
	reader, takeReader, err := l.Pools.Claim(cluster.ResourceID, cluster.Public, writer)
	if err != nil {
		return nil, err
	}
	cluster.Address, cluster.ReaderAddress = writer, reader
	return []state.Op{takeWriter, takeReader}, nil
}

// ownInstances makes the three instances of a Multi-AZ DB cluster, each in a zone
// of its own. An Aurora cluster is told of at once: it exists without any.
func ownInstances(l *database.Sight, c front.Call, cluster *spec.Cluster) ([]state.Op, error) {
	if !cluster.MultiAZ() {
		return look.Tell(c, event.Cluster, cluster.Common, look.Event("0170"))
	}
	var own []spec.Instance
	var ops []state.Op
	taken := []string{cluster.Address, cluster.ReaderAddress}
	for n := 1; len(own) < 3; n++ {
		i := ownInstance(*cluster, n)
		if l.NameFree(i.Scope, i.Name) != nil {
			continue // of a cluster that had this name before
		}
		address, claim, err := l.Pools.Claim(i.ResourceID, i.Public, taken...)
		if err != nil {
			return nil, err
		}
		i.Address = address
		taken = append(taken, address)
		own = append(own, i)
		ops = append(ops, claim, state.Swap(look.InstanceKey(i), 0, i))
	}
	return ops, l.CanPlace(cluster.Common, plan.ForCluster(*cluster, own, plan.Links{Groups: l.Groups}))
}

func ownInstance(cluster spec.Cluster, n int) spec.Instance {
	i := spec.Instance{
		Common: spec.Common{
			Scope: cluster.Scope, Name: fmt.Sprintf("%s-instance-%d", cluster.Name, n), ResourceID: look.NewResourceID("db-"),
			Created: cluster.Created, Generation: 1, Engine: cluster.Engine, Version: cluster.Version, Major: cluster.Major,
			Port: cluster.Port, ParameterGroup: group.Default(cluster.Common), SubnetGroup: cluster.SubnetGroup,
			BackupRetention: cluster.BackupRetention, BackupWindow: cluster.BackupWindow, MaintenanceWindow: cluster.MaintenanceWindow,
			MonitoringInterval: cluster.MonitoringInterval, MonitoringRole: cluster.MonitoringRole,
			CACertificate: cluster.CACertificate, NetworkType: cluster.NetworkType,
		},
		Class: cluster.Class, License: look.License, AutoMinor: cluster.AutoMinor, Public: cluster.Public, Tier: 1,
		Cluster: cluster.ResourceID, Auto: true, ClusterTaken: cluster.Taken, OptionGroup: look.DefaultOptionGroup(cluster.Common),
	}
	i.SetDisk(cluster.Disk())
	return i
}
