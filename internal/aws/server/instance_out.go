package server

import (
	"howdah/api/rds"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/param"
	"howdah/internal/model/spec"
)

// instanceOut is an instance as the API shows it.
func (l *look) instanceOut(i spec.Instance) *rds.DBInstance {
	facts := l.factsOf(i)
	i = l.inherit(i)
	out := &rds.DBInstance{
		DBInstanceIdentifier: some(i.Name), DBInstanceClass: some(i.Class), Engine: some(i.Engine),
		DBInstanceStatus: some(l.statusBy(i, facts)), MasterUsername: some(i.MasterUser), DBName: text(i.DBName),
		AllocatedStorage: number(i.Storage), InstanceCreateTime: moment(i.Created),
		PreferredBackupWindow: some(i.BackupWindow), BackupRetentionPeriod: number(i.BackupRetention),
		DBSecurityGroups: []rds.DBSecurityGroupMembership{}, VpcSecurityGroups: securityGroupsOut(i.SecurityGroups),
		DBParameterGroups:          []rds.DBParameterGroupStatus{{DBParameterGroupName: some(i.ParameterGroup), ParameterApplyStatus: some(l.groupStatus(i, facts, param.Instance))}},
		DBSubnetGroup:              l.subnetGroupOut(i.Scope, i.SubnetGroup),
		PreferredMaintenanceWindow: some(i.MaintenanceWindow), PendingModifiedValues: pendingOut(i),
		MultiAZ: some(i.MultiAZ), EngineVersion: some(i.Version), AutoMinorVersionUpgrade: some(i.AutoMinor),
		ReadReplicaDBInstanceIdentifiers: l.replicaNames(i.Common, i.Cluster), LicenseModel: some(i.License),
		OptionGroupMemberships: []rds.OptionGroupMembership{{OptionGroupName: some(i.OptionGroup), Status: some("in-sync")}},
		PubliclyAccessible:     some(i.Public), StorageType: some(i.StorageType), DbInstancePort: number(0),
		Iops: amount(i.IOPS), StorageThroughput: amount(i.Throughput), MaxAllocatedStorage: amount(i.MaxStorage),
		DbiResourceId:           some(i.ResourceID),
		CACertificateIdentifier: some(i.CACertificate), DomainMemberships: []rds.DomainMembership{},
		CopyTagsToSnapshot: some(i.CopyTagsToSnapshot), MonitoringInterval: number(0),
		DBInstanceArn:                    some(i.ARN("db", i.Name)),
		IAMDatabaseAuthenticationEnabled: some(i.IAMAuth), PerformanceInsightsEnabled: some(false),
		DeletionProtection: some(i.DeletionProtection), AssociatedRoles: instanceRolesOut(i.Roles), TagList: tagsOut(i.Tags),
		CustomerOwnedIpEnabled: some(false), NetworkType: some(i.NetworkType), ActivityStreamStatus: some("stopped"),
		BackupTarget: some("region"), DedicatedLogVolume: some(false), IsStorageConfigUpgradeAvailable: some(false),
	}
	if i.Cluster == "" {
		out.MasterUserSecret = l.masterSecretOut(i.Common, facts)
	}
	out.StorageEncrypted, out.KmsKeyId = encryptedOut(i.Common, facts)
	addPlace(out, i, facts)
	l.addRelations(out, i, facts)
	showBefore(out, i, facts)
	showCertificate(out, i, facts)
	return out
}

// auroraStorage is what RDS shows of the storage that the instances of an Aurora
// cluster share.
var auroraStorage = spec.Storage{Type: "aurora", GiB: 1}

// inherit gives a member what its cluster has for all of them.
func (l *look) inherit(i spec.Instance) spec.Instance {
	c, ok := l.cluster[i.Cluster]
	if !ok {
		return i
	}
	i.MasterUser, i.DBName, i.Port, i.Version = c.MasterUser, c.DBName, c.Port, c.Version
	i.BackupRetention, i.BackupWindow, i.SecurityGroups = c.BackupRetention, c.BackupWindow, c.SecurityGroups
	i.IAMAuth, i.StorageKey = c.IAMAuth, c.StorageKey
	if !c.MultiAZ() {
		i.SetDisk(auroraStorage)
	}
	return i
}

// addPlace shows the endpoint, once there is one that leads somewhere, and the
// zones of primary and standby as they are now.
func addPlace(out *rds.DBInstance, i spec.Instance, facts plan.Facts) {
	created := facts.Layout.Created
	if i.Cluster != "" {
		created = i.Announced
	}
	if created && !i.Deleting {
		out.Endpoint = &rds.Endpoint{Address: some(i.ServedAt()), Port: number(i.Port), HostedZoneId: some(hostedZone)}
	}
	for _, m := range facts.Layout.Members {
		switch {
		case m.Leaving || m.Going == plan.Surplus || i.Cluster != "" && m.Seat != i.ResourceID:
		case i.Cluster != "" || m.Name == facts.Leader || facts.Leader == "" && out.AvailabilityZone == nil:
			out.AvailabilityZone = some(i.ZoneName(m.Zone))
		case i.MultiAZ && m.Going == plan.Staying:
			out.SecondaryAvailabilityZone = some(i.ZoneName(m.Zone))
		}
	}
}

// hostedZone stands where RDS has the id of the DNS zone of its endpoints.
const hostedZone = "HOWDAH"

// addRelations shows the cluster that an instance is in, and whom it follows.
func (l *look) addRelations(out *rds.DBInstance, i spec.Instance, facts plan.Facts) {
	if c, ok := l.cluster[i.Cluster]; ok {
		out.DBClusterIdentifier = some(c.Name)
		out.PromotionTier = number(i.Tier)
	}
	if !i.Follows() {
		return
	}
	if source, ok := l.instance[i.Source]; ok {
		out.ReadReplicaSourceDBInstanceIdentifier = some(nameFor(i.Scope, source.Common, "db"))
	}
	if source, ok := l.cluster[i.Source]; ok {
		out.ReadReplicaSourceDBClusterIdentifier = some(nameFor(i.Scope, source.Common, "cluster"))
	}
	// The leader of a following database receives from its source.
	primary, serves := facts.Primary()
	normal := serves && facts.Reports[member.ID(facts.Want.ID, primary.Name)].Streaming
	word := "replicating"
	if !normal {
		word = "error"
	}
	if facts.Layout.Created {
		out.StatusInfos = []rds.DBInstanceStatusInfo{{StatusType: some("read replication"), Normal: some(normal), Status: some(word)}}
	}
}

// replicaNames are those who follow a database; of a cluster, none of its members
// is followed.
func (l *look) replicaNames(c spec.Common, cluster string) []string {
	names := []string{}
	if cluster != "" {
		return names
	}
	for _, f := range l.followers[c.ResourceID] {
		names = append(names, nameFor(c.Scope, f.Value.Common, "db"))
	}
	return names
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
		out.DBInstanceClass, pending.DBInstanceClass = some(b.Class), some(i.Class)
	}
	if b.MultiAZ != nil {
		out.MultiAZ, pending.MultiAZ = b.MultiAZ, some(i.MultiAZ)
	}
	if b.Disk != nil {
		out.AllocatedStorage, out.StorageType = number(b.Disk.GiB), some(b.Disk.Type)
		out.Iops, out.StorageThroughput = amount(b.Disk.IOPS), amount(b.Disk.MiBps)
		diskOut(pending, *b.Disk, i.Disk())
	}
	if b.Port != 0 {
		pending.Port = number(i.Port)
	}
	if b.Password {
		pending.MasterUserPassword = some("****")
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
	out.DBInstanceClass, out.DBInstanceIdentifier = text(p.Class), text(p.Name)
	out.MultiAZ, out.IAMDatabaseAuthenticationEnabled = p.MultiAZ, p.IAMAuth
	if p.Disk != nil {
		diskOut(out, i.Disk(), *p.Disk)
	}
	if p.BackupRetention != nil {
		out.BackupRetentionPeriod = number(*p.BackupRetention)
	}
	return out
}

// diskOut shows what of a new storage differs from the old one.
func diskOut(out *rds.PendingModifiedValues, before, after spec.Storage) {
	if after.GiB != before.GiB {
		out.AllocatedStorage = number(after.GiB)
	}
	if after.Type != before.Type {
		out.StorageType = some(after.Type)
	}
	if after.IOPS != before.IOPS {
		out.Iops = number(after.IOPS)
	}
	if after.MiBps != before.MiBps {
		out.StorageThroughput = number(after.MiBps)
	}
}

func securityGroupsOut(ids []string) []rds.VpcSecurityGroupMembership {
	out := []rds.VpcSecurityGroupMembership{}
	for _, id := range ids {
		out = append(out, rds.VpcSecurityGroupMembership{VpcSecurityGroupId: some(id), Status: some("active")})
	}
	return out
}
