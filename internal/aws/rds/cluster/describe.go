package cluster

import (
	"context"
	"slices"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/certificate"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/group"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/param"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// describeDBClusters lists clusters with the truth about their processes.
func (s *service) describeDBClusters(ctx context.Context, c front.Call, in *rds.DescribeDBClustersMessage) (*rds.DBClusterMessage, error) {
	if err := s.State.Fresh(ctx); err != nil {
		return nil, err
	}
	filters, err := look.ReadFilters(in.Filters, "clone-group-id", "db-cluster-id", "db-cluster-resource-id", "domain", "engine")
	if err != nil {
		return nil, err
	}
	l := s.Of(c.Account)
	found := l.Clusters
	if in.DBClusterIdentifier != nil {
		record, err := l.FindCluster(c.Scope, *in.DBClusterIdentifier)
		if err != nil {
			return nil, err
		}
		found = []state.Record[spec.Cluster]{record}
	}
	var matching []spec.Cluster
	for _, r := range found {
		if r.Value.Scope == c.Scope && filters.Match(attributes(r.Value)) {
			matching = append(matching, r.Value)
		}
	}
	chosen, marker, err := page.Of(matching, func(c spec.Cluster) string { return c.Name }, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.DBClusterMessage{Marker: marker, DBClusters: []rds.DBCluster{}}
	for _, cluster := range chosen {
		out.DBClusters = append(out.DBClusters, *clusterOut(l, cluster))
	}
	return out, nil
}

// attributes are what filters compare, by filter name.
func attributes(c spec.Cluster) map[string][]string {
	return map[string][]string{
		"db-cluster-id":          {c.Name, c.ARN("cluster", c.Name)},
		"db-cluster-resource-id": {c.ResourceID},
		"engine":                 {c.Engine},
	}
}

// clusterOut is a cluster as the API shows it.
func clusterOut(l *database.Sight, c spec.Cluster) *rds.DBCluster {
	facts := l.FactsOfCluster(c)
	out := &rds.DBCluster{
		AllocatedStorage: wire.Number(max(c.Storage, 1)), AvailabilityZones: l.Looks.ZonesOf(c), BackupRetentionPeriod: wire.Number(c.BackupRetention),
		DatabaseName: wire.Text(c.DBName), DBClusterIdentifier: wire.Some(c.Name), DBClusterParameterGroup: wire.Some(c.ParameterGroup),
		DBSubnetGroup: wire.Some(c.SubnetGroup), Status: wire.Some(l.ClusterStatusBy(c, facts)), Endpoint: wire.Some(l.WriterHost(c)),
		ReaderEndpoint: wire.Some(l.ReaderHost(c)), MultiAZ: wire.Some(c.MultiAZ() || spread(facts)), Engine: wire.Some(c.Engine),
		EngineVersion: wire.Some(c.Version), Port: wire.Number(c.Port), MasterUsername: wire.Some(c.MasterUser),
		PreferredBackupWindow: wire.Some(c.BackupWindow), PreferredMaintenanceWindow: wire.Some(c.MaintenanceWindow),
		ReadReplicaIdentifiers: l.ReplicaNames(c.Common, ""), DBClusterMembers: membersOut(l, c, facts),
		VpcSecurityGroups: database.SecurityGroupsOut(c.SecurityGroups), HostedZoneId: wire.Some(look.HostedZone),
		DbClusterResourceId: wire.Some(c.ResourceID),
		DBClusterArn:        wire.Some(c.ARN("cluster", c.Name)), AssociatedRoles: rolesOut(l.Look, c.Common),
		IAMDatabaseAuthenticationEnabled: wire.Some(c.IAMAuth), ClusterCreateTime: wire.Moment(c.Created),
		EngineMode: wire.Some("provisioned"), DeletionProtection: wire.Some(c.DeletionProtection), HttpEndpointEnabled: wire.Some(false),
		ActivityStreamStatus: wire.Some("stopped"), CopyTagsToSnapshot: wire.Some(c.CopyTagsToSnapshot), CrossAccountClone: wire.Some(false),
		DomainMemberships: []rds.DomainMembership{}, TagList: look.TagsOut(c.Tags), NetworkType: wire.Some(c.NetworkType),
		AutoMinorVersionUpgrade: wire.Some(c.AutoMinor), CloneGroupId: wire.Text(c.CloneGroup),
	}
	out.MasterUserSecret = l.MasterSecretOut(c.Common, facts)
	window := restore.WindowOf(l.Looks, c.Common, facts)
	out.EarliestRestorableTime, out.LatestRestorableTime = wire.Moment(window.From), wire.Moment(window.Until)
	out.StorageEncrypted, out.KmsKeyId = database.EncryptedOut(c.Common, facts)
	if c.OptionGroup != "" {
		out.DBClusterOptionGroupMemberships = []rds.DBClusterOptionGroupStatus{{DBClusterOptionGroupName: wire.Some(c.OptionGroup), Status: wire.Some("in-sync")}}
	}
	if c.MultiAZ() || c.StorageType != look.AuroraStorage.Type {
		out.StorageType = wire.Some(c.StorageType)
	}
	if c.MultiAZ() {
		out.DBClusterInstanceClass, out.Iops, out.PubliclyAccessible = wire.Some(c.Class), wire.Amount(c.IOPS), wire.Some(c.Public)
		out.MonitoringInterval, out.PerformanceInsightsEnabled = wire.Number(0), wire.Some(false)
	}
	for _, e := range l.EndpointsOf(c.ResourceID) {
		out.CustomEndpoints = append(out.CustomEndpoints, l.EndpointHost(e.Value))
	}
	out.PendingModifiedValues = pendingOut(l, out, c, facts)
	return out
}

// spread: the members live in more than one zone.
func spread(f plan.Facts) bool {
	var zones []string
	for _, m := range f.Layout.Members {
		if !m.Leaving {
			zones = append(zones, m.Zone)
		}
	}
	slices.Sort(zones)
	return len(slices.Compact(zones)) > 1
}

func membersOut(l *database.Sight, c spec.Cluster, facts plan.Facts) []rds.DBClusterMember {
	writer := writer(l, c, facts)
	out := []rds.DBClusterMember{}
	for _, i := range l.InstancesOf(c.ResourceID) {
		out = append(out, rds.DBClusterMember{
			DBInstanceIdentifier: wire.Some(i.Name), IsClusterWriter: wire.Some(i.ResourceID == writer),
			DBClusterParameterGroupStatus: wire.Some(group.Status(l.Look, i, facts, param.Cluster)), PromotionTier: wire.Number(i.Tier),
		})
	}
	return out
}

// writer is the resource id of the instance that is the writer: the leader, in a
// moment without one the last leader, and of a new cluster the one that will be.
func writer(l *database.Sight, c spec.Cluster, facts plan.Facts) string {
	leader := facts.Leader
	if leader == "" {
		if last, err := state.Load[member.Lead](l.Cache, state.Lead(c.ResourceID)); err == nil {
			leader = last.Value.Member
		}
	}
	for _, m := range facts.Layout.Members {
		if m.Name == leader {
			return m.Seat
		}
	}
	if len(facts.Want.Seats) > 0 {
		return facts.Want.Seats[0].Key
	}
	return ""
}

// pendingOut are the changes that wait for the maintenance window, or that
// are being carried out, whose old values are shown meanwhile. Nil: none.
func pendingOut(l *database.Sight, out *rds.DBCluster, c spec.Cluster, facts plan.Facts) *rds.ClusterPendingModifiedValues {
	pending := &rds.ClusterPendingModifiedValues{}
	if p := c.Pending; p != nil {
		pending.DBClusterIdentifier, pending.IAMDatabaseAuthenticationEnabled = wire.Text(p.Name), p.IAMAuth
		if p.Disk != nil {
			showDisk(pending, c.Disk(), *p.Disk)
		}
	}
	if b := c.Before; b != nil && c.Change > facts.Layout.Changed {
		if b.Class != "" {
			out.DBClusterInstanceClass = wire.Some(b.Class)
		}
		if b.Disk != nil {
			out.AllocatedStorage, out.StorageType, out.Iops = wire.Number(max(b.Disk.GiB, 1)), wire.Some(b.Disk.Type), wire.Amount(b.Disk.IOPS)
			showDisk(pending, *b.Disk, c.Disk())
		}
		if b.Password {
			pending.MasterUserPassword = wire.Some("****")
		}
	}
	certificate.ShowOfCluster(l.Look, out, pending, c, facts)
	if !wire.Given(pending) {
		return nil
	}
	return pending
}

func showDisk(out *rds.ClusterPendingModifiedValues, before, after spec.Storage) {
	database.ShowDisk(before, after, &out.AllocatedStorage, &out.Iops, new(*int32), &out.StorageType)
}
