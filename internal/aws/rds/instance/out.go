package instance

import (
	"howdah/api/rds"
	"howdah/internal/aws/rds/certificate"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/group"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/aws/rds/subnet"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/param"
	"howdah/internal/model/spec"
)

// instanceOut is an instance as the API shows it.
func instanceOut(l *database.Sight, i spec.Instance) *rds.DBInstance {
	facts := l.FactsOf(i)
	i = l.Inherit(i)
	out := &rds.DBInstance{
		DBInstanceIdentifier: wire.Some(i.Name), DBInstanceClass: wire.Some(i.Class), Engine: wire.Some(i.Engine),
		DBInstanceStatus: wire.Some(l.StatusBy(i, facts)), MasterUsername: wire.Some(i.MasterUser), DBName: wire.Text(i.DBName),
		AllocatedStorage: wire.Number(i.Storage), InstanceCreateTime: wire.Moment(i.Created),
		PreferredBackupWindow: wire.Some(i.BackupWindow), BackupRetentionPeriod: wire.Number(i.BackupRetention),
		DBSecurityGroups: []rds.DBSecurityGroupMembership{}, VpcSecurityGroups: database.SecurityGroupsOut(i.SecurityGroups),
		DBParameterGroups:          []rds.DBParameterGroupStatus{{DBParameterGroupName: wire.Some(i.ParameterGroup), ParameterApplyStatus: wire.Some(group.Status(l.Look, i, facts, param.Instance))}},
		DBSubnetGroup:              subnet.Out(l.Looks, i.Scope, i.SubnetGroup),
		PreferredMaintenanceWindow: wire.Some(i.MaintenanceWindow), PendingModifiedValues: pendingOut(i),
		MultiAZ: wire.Some(i.MultiAZ), EngineVersion: wire.Some(i.Version), AutoMinorVersionUpgrade: wire.Some(i.AutoMinor),
		ReadReplicaDBInstanceIdentifiers: l.ReplicaNames(i.Common, i.Cluster), LicenseModel: wire.Some(i.License),
		OptionGroupMemberships: []rds.OptionGroupMembership{{OptionGroupName: wire.Some(i.OptionGroup), Status: wire.Some("in-sync")}},
		PubliclyAccessible:     wire.Some(i.Public), StorageType: wire.Some(i.StorageType), DbInstancePort: wire.Number(0),
		Iops: wire.Amount(i.IOPS), StorageThroughput: wire.Amount(i.Throughput), MaxAllocatedStorage: wire.Amount(i.MaxStorage),
		DbiResourceId:           wire.Some(i.ResourceID),
		CACertificateIdentifier: wire.Some(i.CACertificate), DomainMemberships: []rds.DomainMembership{},
		CopyTagsToSnapshot: wire.Some(i.CopyTagsToSnapshot), MonitoringInterval: wire.Number(0),
		DBInstanceArn:                    wire.Some(i.ARN("db", i.Name)),
		IAMDatabaseAuthenticationEnabled: wire.Some(i.IAMAuth), PerformanceInsightsEnabled: wire.Some(false),
		DeletionProtection: wire.Some(i.DeletionProtection), AssociatedRoles: rolesOut(l.Look, i.Common), TagList: look.TagsOut(i.Tags),
		CustomerOwnedIpEnabled: wire.Some(false), NetworkType: wire.Some(i.NetworkType), ActivityStreamStatus: wire.Some("stopped"),
		BackupTarget: wire.Some("region"), DedicatedLogVolume: wire.Some(false), IsStorageConfigUpgradeAvailable: wire.Some(false),
	}
	if i.Cluster == "" {
		out.MasterUserSecret = l.MasterSecretOut(i.Common, facts)
		out.LatestRestorableTime = wire.Moment(restore.WindowOf(l.Looks, i.Common, facts).Until)
	}
	out.StorageEncrypted, out.KmsKeyId = database.EncryptedOut(i.Common, facts)
	addPlace(l, out, i, facts)
	addRelations(l, out, i, facts)
	showBefore(out, i, facts)
	certificate.Show(out, i, facts)
	return out
}

// addPlace shows the endpoint, once there is one that leads somewhere, and the
// zones of primary and standby as they are now.
func addPlace(l *database.Sight, out *rds.DBInstance, i spec.Instance, facts plan.Facts) {
	created := facts.Layout.Created
	if i.Cluster != "" {
		// It is announced a moment after it is available, and whoever waits for that connects at once.
		created = i.Announced || created && *out.DBInstanceStatus == plan.Available
	}
	if created && !i.Going() {
		out.Endpoint = &rds.Endpoint{Address: wire.Some(l.HostOf(i)), Port: wire.Number(i.Port), HostedZoneId: wire.Some(look.HostedZone)}
	}
	for m := range look.PlacesOf(i, facts) {
		switch {
		case m.Going == plan.Surplus:
		case i.Cluster != "" || m.Name == facts.Leader || facts.Leader == "" && out.AvailabilityZone == nil:
			out.AvailabilityZone = wire.Some(i.ZoneName(m.Zone))
		case i.MultiAZ && m.Going == plan.Staying:
			out.SecondaryAvailabilityZone = wire.Some(i.ZoneName(m.Zone))
		}
	}
}

// addRelations shows the cluster that an instance is in, and whom it follows.
func addRelations(l *database.Sight, out *rds.DBInstance, i spec.Instance, facts plan.Facts) {
	if c, ok := l.Cluster[i.Cluster]; ok {
		out.DBClusterIdentifier = wire.Some(c.Name)
		out.PromotionTier = wire.Number(i.Tier)
	}
	if !i.Follows() {
		return
	}
	if source, ok := l.Instance[i.Source]; ok {
		out.ReadReplicaSourceDBInstanceIdentifier = wire.Some(look.NameFor(i.Scope, source.Common, "db"))
	}
	if source, ok := l.Cluster[i.Source]; ok {
		out.ReadReplicaSourceDBClusterIdentifier = wire.Some(look.NameFor(i.Scope, source.Common, "cluster"))
	}
	// The leader of a following database receives from its source.
	primary, serves := facts.Primary()
	normal := serves && facts.Reports[member.ID(facts.Want.ID, primary.Name)].Streaming
	word := "replicating"
	if !normal {
		word = "error"
	}
	if facts.Layout.Created {
		out.StatusInfos = []rds.DBInstanceStatusInfo{{StatusType: wire.Some("read replication"), Normal: wire.Some(normal), Status: wire.Some(word)}}
	}
}

// showBefore shows the values that a change replaces until it is done, and the new
// ones as pending, as RDS does.
func showBefore(out *rds.DBInstance, i spec.Instance, facts plan.Facts) {
	b := i.Before
	if b == nil || !applying(i, facts) {
		return
	}
	pending := out.PendingModifiedValues
	if b.Class != "" {
		out.DBInstanceClass, pending.DBInstanceClass = wire.Some(b.Class), wire.Some(i.Class)
	}
	if b.MultiAZ != nil {
		out.MultiAZ, pending.MultiAZ = b.MultiAZ, wire.Some(i.MultiAZ)
	}
	if b.Disk != nil {
		out.AllocatedStorage, out.StorageType = wire.Number(b.Disk.GiB), wire.Some(b.Disk.Type)
		out.Iops, out.StorageThroughput = wire.Amount(b.Disk.IOPS), wire.Amount(b.Disk.MiBps)
		database.ShowDisk(*b.Disk, i.Disk(), &pending.AllocatedStorage, &pending.Iops, &pending.StorageThroughput, &pending.StorageType)
	}
	if b.Port != 0 {
		pending.Port = wire.Number(i.Port)
	}
	if b.Password {
		pending.MasterUserPassword = wire.Some("****")
	}
}

// applying: the newest change of an instance is not done yet.
func applying(i spec.Instance, facts plan.Facts) bool {
	if i.Cluster == "" {
		return i.Change > facts.Layout.Changed
	}
	m, _, found := facts.Member(i.ResourceID)
	return found && i.Change > m.Restarted
}

// pendingOut are the changes that wait for the maintenance window.
func pendingOut(i spec.Instance) *rds.PendingModifiedValues {
	out := &rds.PendingModifiedValues{}
	p := i.Pending
	if p == nil {
		return out
	}
	out.DBInstanceClass, out.DBInstanceIdentifier = wire.Text(p.Class), wire.Text(p.Name)
	out.MultiAZ, out.IAMDatabaseAuthenticationEnabled = p.MultiAZ, p.IAMAuth
	if p.Disk != nil {
		database.ShowDisk(i.Disk(), *p.Disk, &out.AllocatedStorage, &out.Iops, &out.StorageThroughput, &out.StorageType)
	}
	if p.BackupRetention != nil {
		out.BackupRetentionPeriod = wire.Number(*p.BackupRetention)
	}
	return out
}
