package server

import (
	"context"
	"maps"
	"regexp"
	"slices"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/address"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// describeAccountAttributes answers the quotas that hold here, with what the
// account uses of them in this region. Endpoints are the home's scarce good: each
// instance needs one address, and each cluster two.
func (s *Server) describeAccountAttributes(ctx context.Context, c front.Call, _ *rds.DescribeAccountAttributesMessage) (*rds.AccountAttributesMessage, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return nil, err
	}
	l := s.look(c.Account)
	use := l.use(c.Scope)
	addresses := 1<<(32-s.pools.Private.Bits()) - 2
	taken := 0
	for _, key := range s.Cache.Keys(state.AddressRoot) {
		if address.Contains(s.pools.Private, state.Tail(key, state.AddressRoot)) {
			taken++
		}
	}
	free := addresses - taken
	out := &rds.AccountAttributesMessage{AccountQuotas: []rds.AccountQuota{}}
	for _, q := range []struct {
		name      string
		used, max int
	}{
		{"AllocatedStorage", use.storage, use.storage + s.freeStorage()},
		{"CustomEndpointsPerDBCluster", use.endpoints, look.MaxEndpoints},
		{"DBClusterRoles", use.clusterRoles, look.MaxRoles},
		{"DBClusters", use.clusters, use.clusters + free/2},
		{"DBInstanceRoles", use.instanceRoles, look.MaxRoles},
		{"DBInstances", use.instances, use.instances + free},
		{"DBSubnetGroups", use.subnetGroups, look.MaxSubnetGroups},
		{"EventSubscriptions", len(s.eventSubscriptions(c)), look.MaxEventSubscriptions},
		{"OptionGroups", use.optionGroups, look.MaxOptionGroups},
		{"ReadReplicasPerMaster", use.replicas, look.MaxFollowers},
		{"SubnetsPerDBSubnetGroup", use.subnets, look.MaxSubnets},
	} {
		out.AccountQuotas = append(out.AccountQuotas, rds.AccountQuota{
			AccountQuotaName: wire.Some(q.name), Used: wire.Some(int64(q.used)), Max: wire.Some(int64(q.max)),
		})
	}
	return out, nil
}

// use is what an account has in a region; of what is counted for each resource, the
// most that one of them has.
type use struct {
	instances, clusters, storage, replicas, endpoints int
	subnetGroups, subnets, optionGroups               int
	instanceRoles, clusterRoles                       int
}

func (l *sight) use(scope spec.Scope) use {
	var u use
	for _, r := range l.Instances {
		i := r.Value
		if i.Scope != scope {
			continue
		}
		u.instances++
		u.storage += i.Storage
		u.instanceRoles = max(u.instanceRoles, len(i.Roles))
		u.replicas = max(u.replicas, len(l.Followers[i.ResourceID]))
	}
	for _, r := range l.Clusters {
		if c := r.Value; c.Scope == scope {
			u.clusters++
			u.clusterRoles = max(u.clusterRoles, len(c.Roles))
			u.endpoints = max(u.endpoints, len(l.EndpointsOf(c.ResourceID)))
		}
	}
	for _, g := range l.SubnetGroups(scope) {
		u.subnetGroups++
		u.subnets = max(u.subnets, len(g.Value.Subnets))
	}
	u.optionGroups = len(l.OptionGroups(scope))
	return u
}

// freeStorage are the GiB that are free on the home's hosts.
func (s *Server) freeStorage() int {
	free := 0
	for _, h := range state.LoadAll[member.Host](s.Cache, state.HostRoot) {
		free += int(h.Value.DiskFree >> 30)
	}
	return free
}

var regionForm = regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-[0-9]+$`)

// describeSourceRegions lists the other regions whose instances can be followed
// from this one. Regions here are names: those that the account uses, and the
// home's own.
func (s *Server) describeSourceRegions(ctx context.Context, c front.Call, in *rds.DescribeSourceRegionsMessage) (*rds.SourceRegionMessage, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return nil, err
	}
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	names := map[string]bool{s.Home.Region: true}
	for _, r := range s.look(c.Account).Instances {
		names[r.Value.Region] = true
	}
	delete(names, c.Region)
	all := slices.Sorted(maps.Keys(names))
	if in.RegionName != nil {
		if !regionForm.MatchString(*in.RegionName) {
			return nil, wire.NewError(api.ErrInvalidParameterValue, "Invalid region name: %s", *in.RegionName)
		}
		all = slices.DeleteFunc(all, func(n string) bool { return n != *in.RegionName })
	}
	chosen, marker, err := page.Of(all, func(n string) string { return n }, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.SourceRegionMessage{Marker: marker, SourceRegions: []rds.SourceRegion{}}
	for _, n := range chosen {
		out.SourceRegions = append(out.SourceRegions, rds.SourceRegion{
			RegionName: wire.Some(n), Endpoint: wire.Some("https://" + s.Home.Listen), Status: wire.Some("available"),
			SupportsDBInstanceAutomatedBackupsReplication: wire.Some(false),
		})
	}
	return out, nil
}

// describeValidDBInstanceModifications says what storage an instance can be given:
// it can only grow, and by a tenth at least.
func (s *Server) describeValidDBInstanceModifications(ctx context.Context, c front.Call, in *rds.DescribeValidDBInstanceModificationsMessage) (*rds.DescribeValidDBInstanceModificationsResult, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return nil, err
	}
	l := s.look(c.Account)
	record, err := l.FindInstance(c.Scope, wire.Or(in.DBInstanceIdentifier, ""))
	if err != nil {
		return nil, err
	}
	i := record.Value
	if status := l.Status(i); status == plan.Deleting || status == plan.Creating {
		return nil, wire.NewError(rds.ErrInvalidDBInstanceState, "DB instance %s is not in the available state: it is %s.", i.Name, status)
	}
	out := &rds.ValidDBInstanceModificationsMessage{
		Storage: []rds.ValidStorageOptions{}, ValidProcessorFeatures: []rds.AvailableProcessorFeature{}, SupportsDedicatedLogVolume: wire.Some(false),
	}
	if i.Cluster == "" {
		for _, kind := range storageOf[spec.Postgres] {
			out.Storage = append(out.Storage, validStorage(kind, i.Storage))
		}
	}
	return &rds.DescribeValidDBInstanceModificationsResult{ValidDBInstanceModificationsMessage: out}, nil
}

func validStorage(kind string, size int) rds.ValidStorageOptions {
	limits := storageLimits(kind)
	ranges := func(from, to int) []rds.Range {
		return []rds.Range{{From: wire.Number(from), To: wire.Number(to), Step: wire.Number(1)}}
	}
	out := rds.ValidStorageOptions{StorageType: wire.Some(kind), SupportsStorageAutoscaling: wire.Some(false), StorageSize: []rds.Range{}}
	if size >= limits.low {
		out.StorageSize = ranges(size, size)
	}
	if larger := max((size*11+9)/10, limits.low); larger <= limits.high {
		out.StorageSize = append(out.StorageSize, ranges(larger, limits.high)...)
	}
	if limits.iops {
		out.ProvisionedIops = ranges(limits.minIOPS, limits.maxIOPS)
	}
	return out
}

// describeServerlessV2PlatformVersions lists none: capacity that scales by itself is
// not available, and CreateDBCluster says so too.
func (s *Server) describeServerlessV2PlatformVersions(_ context.Context, _ front.Call, in *rds.DescribeServerlessV2PlatformVersionsMessage) (*rds.ServerlessV2PlatformVersionsMessage, error) {
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	if _, err := s.looks.Offers(in.Engine); err != nil {
		return nil, err
	}
	none, marker, err := page.Of([]rds.ServerlessV2PlatformVersionInfo{}, func(rds.ServerlessV2PlatformVersionInfo) string { return "" }, in.MaxRecords, in.Marker)
	return &rds.ServerlessV2PlatformVersionsMessage{ServerlessV2PlatformVersions: none, Marker: marker}, err
}
