package catalogue

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
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// describeAccountAttributes answers the quotas that hold here, with what the
// account uses of them in this region. Endpoints are the home's scarce good: each
// instance needs one address, and each cluster two.
func (s *service) describeAccountAttributes(ctx context.Context, c front.Call, _ *rds.DescribeAccountAttributesMessage) (*rds.AccountAttributesMessage, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	l := s.looks.Of(c.Account)
	use := useOf(l, c.Scope)
	addresses := 1<<(32-s.pool.Bits()) - 2
	taken := 0
	for _, key := range s.Cache.Keys(state.AddressRoot) {
		if address.Contains(s.pool, state.Tail(key, state.AddressRoot)) {
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
		{"EventSubscriptions", use.subscriptions, look.MaxEventSubscriptions},
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
	instanceRoles, clusterRoles, subscriptions        int
}

func useOf(l *look.Look, scope spec.Scope) use {
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
	u.subscriptions = len(state.LoadAll[topic.EventSubscription](l.Cache, state.EventSub(scope.Account, scope.Region, "")))
	return u
}

// freeStorage are the GiB that are free on the home's hosts.
func (s *service) freeStorage() int {
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
func (s *service) describeSourceRegions(ctx context.Context, c front.Call, in *rds.DescribeSourceRegionsMessage) (*rds.SourceRegionMessage, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	names := map[string]bool{s.home.Region: true}
	for _, r := range s.looks.Of(c.Account).Instances {
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
			RegionName: wire.Some(n), Endpoint: wire.Some("https://" + s.home.Listen), Status: wire.Some("available"),
			SupportsDBInstanceAutomatedBackupsReplication: wire.Some(false),
		})
	}
	return out, nil
}
