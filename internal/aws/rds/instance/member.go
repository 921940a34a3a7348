package instance

import (
	"slices"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/group"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// newMember is the record of a new instance of an Aurora cluster. The cluster's
// record is written too, so that it cannot be deleted meanwhile.
func newMember(l *database.Sight, c front.Call, in *rds.CreateDBInstanceMessage) (spec.Instance, []state.Op, error) {
	record, err := l.FindCluster(c.Scope, wire.Or(in.DBClusterIdentifier, ""))
	if err != nil {
		return spec.Instance{}, nil, err
	}
	cluster := record.Value
	i, err := memberRecord(l, c, cluster, in)
	if err != nil {
		return i, nil, err
	}
	if err := mayJoin(l, cluster, i); err != nil {
		return i, nil, err
	}
	own := append(l.InstancesOf(cluster.ResourceID), i)
	if err := l.CanPlace(cluster.Common, plan.ForCluster(cluster, own, plan.Links{Groups: l.Groups})); err != nil {
		return i, nil, err
	}
	l.Share(&cluster, i.Class)
	cluster.Generation++
	var address state.Op
	if i.Address, address, err = l.Pools.Claim(i.ResourceID, i.Public); err != nil {
		return i, nil, err
	}
	ops, err := l.PublishCluster(&cluster, own, i.Address)
	if err != nil {
		return i, nil, err
	}
	ops = append(append(ops, address), l.GrowFollowers(cluster.ResourceID, cluster.SharedMemory)...)
	return i, append(ops, state.Swap(record.Key, record.Revision, cluster)), nil
}

// mayJoin: the cluster takes instances that users make, and has room for one more.
func mayJoin(l *database.Sight, c spec.Cluster, i spec.Instance) error {
	status := l.ClusterStatus(c)
	switch {
	case c.MultiAZ():
		return wire.NewError(api.ErrInvalidParameterCombination, "DB instances cannot be added to the Multi-AZ DB cluster %s: it has three of its own.", c.Name)
	case status == plan.Deleting || status == plan.Stopping || status == plan.StoppedWord || status == plan.Starting:
		return look.ClusterState(c, status, plan.Available)
	case len(l.Members[c.ResourceID]) > look.MaxFollowers:
		return wire.NewError(rds.ErrInstanceQuotaExceeded, "The DB cluster %s has a writer and %d readers already.", c.Name, look.MaxFollowers)
	}
	return l.NameFree(i.Scope, i.Name)
}

// memberRecord is an instance that has what is its own; all else is the cluster's.
func memberRecord(l *database.Sight, c front.Call, cluster spec.Cluster, in *rds.CreateDBInstanceMessage) (spec.Instance, error) {
	if engine := wire.Or(in.Engine, ""); engine != cluster.Engine {
		return spec.Instance{}, wire.NewError(api.ErrInvalidParameterCombination,
			"The engine name requested for your DB instance (%s) doesn't match the engine name of your DB cluster (%s).", engine, cluster.Engine)
	}
	if err := clustersOwn(cluster, in); err != nil {
		return spec.Instance{}, err
	}
	i := spec.Instance{
		Common: spec.Common{
			Scope: c.Scope, Name: wire.Lower(in.DBInstanceIdentifier), ResourceID: look.NewResourceID("db-"), Created: c.Now, Generation: 1,
			Engine: cluster.Engine, Version: cluster.Version, Major: cluster.Major, Port: cluster.Port,
			ParameterGroup: wire.Or(in.DBParameterGroupName, group.Default(cluster.Common)),
			SubnetGroup:    wire.Or(in.DBSubnetGroupName, cluster.SubnetGroup), BackupRetention: cluster.BackupRetention,
			BackupWindow: cluster.BackupWindow, MaintenanceWindow: wire.Or(in.PreferredMaintenanceWindow, ""),
			CopyTagsToSnapshot: wire.Or(in.CopyTagsToSnapshot, false), MonitoringInterval: int(wire.Or(in.MonitoringInterval, 0)),
			MonitoringRole: wire.Or(in.MonitoringRoleArn, ""),
			CACertificate:  wire.Or(in.CACertificateIdentifier, l.Authorities.Default(c.Scope)), NetworkType: wire.Or(in.NetworkType, cluster.NetworkType),
			Tags: look.TagsIn(in.Tags),
		},
		Class: wire.Or(in.DBInstanceClass, ""), License: wire.Or(in.LicenseModel, look.License), AutoMinor: wire.Or(in.AutoMinorVersionUpgrade, true),
		Public: wire.Or(in.PubliclyAccessible, cluster.Public), Tier: int(wire.Or(in.PromotionTier, 1)), Cluster: cluster.ResourceID,
		OptionGroup: wire.Or(in.OptionGroupName, look.DefaultOptionGroup(cluster.Common)),
	}
	_, i.MaintenanceWindow = spec.FillWindows(i.ResourceID, i.BackupWindow, i.MaintenanceWindow)
	return i, look.First(spec.CheckName("DBInstanceIdentifier", i.Name),
		l.Nameable("DBInstanceIdentifier", look.InstanceNames, i.Scope, i.Name), l.Check(&i.Common, rds.ErrDBParameterGroupNotFound),
		checkInstance(l, &i, memberZone(l, cluster, in.AvailabilityZone)))
}

// memberZone is the zone asked for, or of the zones asked for the cluster the one
// with the fewest instances.
func memberZone(l *database.Sight, c spec.Cluster, asked *string) *string {
	if asked != nil || len(c.Zones) == 0 {
		return asked
	}
	used := map[string]int{}
	for _, i := range l.InstancesOf(c.ResourceID) {
		used[i.Zone]++
	}
	zones := c.Zones
	if covered := l.Covered(c.Common); covered != nil {
		zones = slices.DeleteFunc(slices.Clone(zones), func(z string) bool { return !slices.Contains(covered, z) })
	}
	if len(zones) == 0 {
		return nil
	}
	zone := slices.MinFunc(zones, func(a, b string) int { return used[a] - used[b] })
	return wire.Some(c.ZoneName(zone))
}

// clustersOwn refuses parameters that belong to the cluster.
func clustersOwn(c spec.Cluster, in *rds.CreateDBInstanceMessage) error {
	if wire.Or(in.MultiAZ, false) {
		return wire.NewError(api.ErrInvalidParameterCombination, "VPC Multi-AZ DB Instances are not available for engine: %s", c.Engine)
	}
	if v := wire.Or(in.EngineVersion, ""); v != "" && database.SameVersion(c.Common, &v) != nil {
		return wire.NewError(api.ErrInvalidParameterCombination,
			"The engine version that you requested for your DB instance (%s) does not match the engine version of your DB cluster (%s).", v, c.Version)
	}
	return look.Refuse(map[string]bool{
		"master username": in.MasterUsername != nil, "master user password": in.MasterUserPassword != nil || in.ManageMasterUserPassword != nil,
		"backup retention": in.BackupRetentionPeriod != nil, "backup window": in.PreferredBackupWindow != nil,
		"database name": in.DBName != nil, "vpc security group": len(in.VpcSecurityGroupIds) > 0,
		"port":                in.Port != nil && int(*in.Port) != c.Port,
		"iam authentication":  in.EnableIAMDatabaseAuthentication != nil && *in.EnableIAMDatabaseAuthentication != c.IAMAuth,
		"storage encryption":  in.StorageEncrypted != nil && *in.StorageEncrypted != (c.StorageKey != "") || in.KmsKeyId != nil,
		"deletion protection": wire.Or(in.DeletionProtection, false), "log exports": len(in.EnableCloudwatchLogsExports) > 0,
	}, "The requested DB Instance will be a member of a DB Cluster and its %[1]s should not be set directly. Set %[1]s for the DB Cluster.")
}
