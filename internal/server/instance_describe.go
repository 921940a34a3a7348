package server

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/plan"
	"howdah/internal/spec"
	"howdah/internal/wire"
)

// describeDBInstances lists instances with the truth about their processes.
func (s *Server) describeDBInstances(ctx context.Context, c call, in *rds.DescribeDBInstancesMessage) (*rds.DBInstanceMessage, error) {
	if err := s.fresh(ctx); err != nil {
		return nil, err
	}
	filters, err := readFilters(in.Filters, "db-cluster-id", "db-instance-id", "dbi-resource-id", "domain", "engine")
	if err != nil {
		return nil, err
	}
	if in.DBInstanceIdentifier != nil {
		i, err := s.instance(c.Scope, *in.DBInstanceIdentifier)
		if err != nil {
			return nil, err
		}
		return &rds.DBInstanceMessage{DBInstances: []rds.DBInstance{*s.instanceOut(i.Value)}}, nil
	}
	var found []spec.Instance
	for _, i := range s.instances(c.Scope) {
		if filters.match(s.instanceAttributes(i.Value)) {
			found = append(found, i.Value)
		}
	}
	chosen, marker, err := page(found, func(i spec.Instance) string { return i.Name }, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.DBInstanceMessage{Marker: marker, DBInstances: []rds.DBInstance{}}
	for _, i := range chosen {
		out.DBInstances = append(out.DBInstances, *s.instanceOut(i))
	}
	return out, nil
}

// instanceAttributes are what filters compare, by filter name.
func (s *Server) instanceAttributes(i spec.Instance) map[string][]string {
	attributes := map[string][]string{
		"db-instance-id":  {i.Name, i.ARN("db", i.Name)},
		"dbi-resource-id": {i.ResourceID},
		"engine":          {i.Engine},
	}
	for _, c := range s.clusters(i.Scope) {
		if c.Value.ResourceID == i.Cluster {
			attributes["db-cluster-id"] = []string{c.Value.Name, c.Value.ARN("cluster", c.Value.Name)}
		}
	}
	return attributes
}

// instanceOut is an instance as the API shows it.
func (s *Server) instanceOut(i spec.Instance) *rds.DBInstance {
	status := s.instanceStatus(i)
	out := &rds.DBInstance{
		DBInstanceIdentifier: some(i.Name), DBInstanceClass: some(i.Class), Engine: some(i.Engine),
		DBInstanceStatus: some(status), MasterUsername: some(i.MasterUser), DBName: text(i.DBName),
		AllocatedStorage: number(i.Storage), InstanceCreateTime: moment(i.Created),
		PreferredBackupWindow: some(i.BackupWindow), BackupRetentionPeriod: number(i.BackupRetention),
		DBSecurityGroups: []rds.DBSecurityGroupMembership{}, VpcSecurityGroups: securityGroupsOut(i.SecurityGroups),
		DBParameterGroups:          []rds.DBParameterGroupStatus{{DBParameterGroupName: some(i.ParameterGroup), ParameterApplyStatus: some("in-sync")}},
		DBSubnetGroup:              subnetGroupOut(i.Scope, i.SubnetGroup),
		PreferredMaintenanceWindow: some(i.MaintenanceWindow), PendingModifiedValues: pendingOut(i.Pending),
		MultiAZ: some(i.MultiAZ), EngineVersion: some(i.Version), AutoMinorVersionUpgrade: some(i.AutoMinor),
		ReadReplicaDBInstanceIdentifiers: s.replicaNames(i), LicenseModel: some(i.License),
		OptionGroupMemberships: []rds.OptionGroupMembership{{OptionGroupName: some(i.OptionGroup), Status: some("in-sync")}},
		PubliclyAccessible:     some(i.Public), StorageType: some(i.StorageType), DbInstancePort: number(0),
		StorageEncrypted: some(i.Encrypted), KmsKeyId: text(i.KMSKey), DbiResourceId: some(i.ResourceID),
		CACertificateIdentifier: some(i.CACertificate), DomainMemberships: []rds.DomainMembership{},
		CopyTagsToSnapshot: some(i.CopyTagsToSnapshot), MonitoringInterval: number(i.MonitoringInterval),
		MonitoringRoleArn: text(i.MonitoringRole), DBInstanceArn: some(i.ARN("db", i.Name)),
		IAMDatabaseAuthenticationEnabled: some(i.IAMAuth), PerformanceInsightsEnabled: some(i.PerformanceInsights),
		EnabledCloudwatchLogsExports: i.LogExports, DeletionProtection: some(i.DeletionProtection),
		AssociatedRoles: []rds.DBInstanceRole{}, TagList: tagsOut(i.Tags), CustomerOwnedIpEnabled: some(false),
		NetworkType: some(i.NetworkType), ActivityStreamStatus: some("stopped"), BackupTarget: some("region"),
		DedicatedLogVolume: some(false), IsStorageConfigUpgradeAvailable: some(false),
	}
	s.addStorage(out, i)
	s.addPlace(out, i)
	s.addRelations(out, i)
	return out
}

func (s *Server) addStorage(out *rds.DBInstance, i spec.Instance) {
	if i.IOPS > 0 {
		out.Iops = number(i.IOPS)
	}
	if i.Throughput > 0 {
		out.StorageThroughput = number(i.Throughput)
	}
	if i.MaxStorage > 0 {
		out.MaxAllocatedStorage = number(i.MaxStorage)
	}
}

// addPlace shows the endpoint, once there is one that leads somewhere, and the
// zones of primary and standby as they are now.
func (s *Server) addPlace(out *rds.DBInstance, i spec.Instance) {
	facts := s.factsOf(i)
	if facts.Layout.Created && !i.Deleting {
		out.Endpoint = &rds.Endpoint{Address: some(i.Address), Port: number(i.Port), HostedZoneId: some("HOWDAH")}
	}
	for _, m := range facts.Layout.Members {
		switch {
		case m.Leaving || (i.Cluster != "" && m.Seat != i.ResourceID):
		case i.Cluster != "" || m.Name == facts.Leader || facts.Leader == "" && out.AvailabilityZone == nil:
			out.AvailabilityZone = some(i.ZoneName(m.Zone))
		case i.MultiAZ:
			out.SecondaryAvailabilityZone = some(i.ZoneName(m.Zone))
		}
	}
}

// factsOf are those of the database that an instance is, or is part of.
func (s *Server) factsOf(i spec.Instance) plan.Facts {
	if i.Cluster == "" {
		return s.instanceFacts(i)
	}
	for _, c := range s.clusters(i.Scope) {
		if c.Value.ResourceID == i.Cluster {
			f, _ := s.clusterFacts(c.Value)
			return f
		}
	}
	return plan.Facts{}
}

// addRelations shows the cluster that an instance is in, and whom it follows.
func (s *Server) addRelations(out *rds.DBInstance, i spec.Instance) {
	for _, c := range s.clusters(i.Scope) {
		if c.Value.ResourceID == i.Cluster {
			out.DBClusterIdentifier = some(c.Value.Name)
			out.PromotionTier = number(i.Tier)
		}
		if c.Value.ResourceID == i.Source && i.Follows() {
			out.ReadReplicaSourceDBClusterIdentifier = some(c.Value.Name)
		}
	}
	if !i.Follows() {
		return
	}
	for _, other := range s.instances(i.Scope) {
		if other.Value.ResourceID == i.Source {
			out.ReadReplicaSourceDBInstanceIdentifier = some(other.Value.Name)
		}
	}
	normal := s.replicates(i)
	state := "replicating"
	if !normal {
		state = "error"
	}
	out.StatusInfos = []rds.DBInstanceStatusInfo{{
		StatusType: some("read replication"), Normal: some(normal), Status: some(state),
	}}
}

// replicates: the leader of a following database receives from its source now.
func (s *Server) replicates(i spec.Instance) bool {
	f := s.instanceFacts(i)
	primary, ok := f.Primary()
	return ok && f.Reports[plan.ID(f.Want.ID, primary.Name)].Streaming
}

func (s *Server) replicaNames(i spec.Instance) []string {
	names := []string{}
	for _, other := range s.instances(i.Scope) {
		if other.Value.Follows() && other.Value.Source == i.ResourceID && !other.Value.Deleting {
			names = append(names, other.Value.Name)
		}
	}
	return names
}

func securityGroupsOut(ids []string) []rds.VpcSecurityGroupMembership {
	out := []rds.VpcSecurityGroupMembership{}
	for _, id := range ids {
		out = append(out, rds.VpcSecurityGroupMembership{VpcSecurityGroupId: some(id), Status: some("active")})
	}
	return out
}

func subnetGroupOut(scope spec.Scope, name string) *rds.DBSubnetGroup {
	return &rds.DBSubnetGroup{
		DBSubnetGroupName: some(name), DBSubnetGroupDescription: some("The network of this Howdah home"), VpcId: some("vpc-howdah"),
		SubnetGroupStatus: some("Complete"), Subnets: []rds.Subnet{}, DBSubnetGroupArn: some(scope.ARN("subgrp", name)),
	}
}

func pendingOut(p *spec.Pending) *rds.PendingModifiedValues {
	out := &rds.PendingModifiedValues{}
	if p == nil {
		return out
	}
	out.DBInstanceClass, out.StorageType, out.DBInstanceIdentifier = text(p.Class), text(p.StorageType), text(p.Name)
	out.MultiAZ, out.IAMDatabaseAuthenticationEnabled = p.MultiAZ, p.IAMAuth
	if p.Storage > 0 {
		out.AllocatedStorage = number(p.Storage)
	}
	if p.IOPS > 0 {
		out.Iops = number(p.IOPS)
	}
	if p.Port > 0 {
		out.Port = number(p.Port)
	}
	if p.Verifier != "" {
		out.MasterUserPassword = some("****")
	}
	if p.BackupRetention != nil {
		out.BackupRetentionPeriod = number(*p.BackupRetention)
	}
	return out
}

// filter is one condition of a Describe action.
type filter struct {
	name   string
	values []string
}

type filters []filter

// readFilters checks names and values of filters.
func readFilters(in []rds.Filter, known ...string) (filters, error) {
	var all filters
	for _, f := range in {
		name := or(f.Name, "")
		if !slices.Contains(known, name) {
			return nil, wire.NewError(api.ErrInvalidParameterValue, "Unrecognized filter name: %s", name)
		}
		if len(f.Values) == 0 {
			return nil, wire.NewError(api.ErrInvalidParameterCombination, "The filter %s must not have an empty list of values: the values must not be empty.", name)
		}
		all = append(all, filter{name, f.Values})
	}
	return all, nil
}

// match: every filter has a value that the resource has.
func (all filters) match(attributes map[string][]string) bool {
	for _, f := range all {
		if !slices.ContainsFunc(f.values, func(v string) bool {
			return slices.ContainsFunc(attributes[f.name], func(a string) bool { return strings.EqualFold(a, v) })
		}) {
			return false
		}
	}
	return true
}

// page takes one page out of a sorted list. The marker is the name after which
// the next page begins: it stays right when others come and go.
func page[T any](all []T, name func(T) string, size *int32, marker *string) ([]T, *string, error) {
	n := int(or(size, 100))
	if n < 20 || n > 100 {
		return nil, nil, wire.NewError(api.ErrInvalidParameterValue, "Invalid value %s for MaxRecords. Must be between 20 and 100", strconv.Itoa(n))
	}
	if marker != nil {
		after, err := readMarker(*marker)
		if err != nil {
			return nil, nil, err
		}
		all = slices.DeleteFunc(slices.Clone(all), func(v T) bool { return name(v) <= after })
	}
	if len(all) <= n {
		return all, nil, nil
	}
	return all[:n], some(makeMarker(name(all[n-1]))), nil
}
