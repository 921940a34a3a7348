package server

import (
	"context"
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

const defaultSubnetGroup = spec.DefaultGroup

func subnetGroupKey(g spec.SubnetGroup) string { return state.SubnetGroup(g.Account, g.Region, g.Name) }

// subnetGroups are those that users made in a scope, by name.
func (s *Server) subnetGroups(scope spec.Scope) []state.Record[spec.SubnetGroup] {
	return state.LoadAll[spec.SubnetGroup](s.Cache, state.SubnetGroup(scope.Account, scope.Region, ""))
}

// findSubnetGroup finds a group that a user made, by name or ARN.
func (s *Server) findSubnetGroup(scope spec.Scope, identifier string) (state.Record[spec.SubnetGroup], error) {
	r, name, ok := findNamed[spec.SubnetGroup](s, scope, identifier, "subgrp", state.SubnetGroup)
	if !ok {
		missing := wire.NewError(rds.ErrDBSubnetGroupNotFound, "DB subnet group '%s' does not exist: see DBSubnetGroupName of DescribeDBSubnetGroups.", name)
		return r, orBlank(name, "DBSubnetGroupName", missing)
	}
	return r, nil
}

// checkSubnetGroup: there is such a group. Its name becomes what it is stored as.
func (l *look) checkSubnetGroup(scope spec.Scope, name *string) error {
	*name = strings.ToLower(strings.TrimSpace(*name))
	if *name == defaultSubnetGroup {
		return nil
	}
	r, err := l.findSubnetGroup(scope, *name)
	if err != nil {
		return err
	}
	*name = r.Value.Name
	r.Value.Generation++
	l.checked[r.Key] = state.Swap(r.Key, r.Revision, r.Value)
	return nil
}

// createDBSubnetGroup keeps a group. Subnets that the home does not know are spread
// over its zones, in their order.
func (s *Server) createDBSubnetGroup(ctx context.Context, c front.Call, in *rds.CreateDBSubnetGroupMessage) (*rds.CreateDBSubnetGroupResult, error) {
	g := spec.SubnetGroup{
		Scope: c.Scope, Name: wire.Lower(in.DBSubnetGroupName), Description: wire.Or(in.DBSubnetGroupDescription, ""), Tags: tagsIn(in.Tags), Created: c.Now, Generation: 1,
	}
	if err := first(spec.CheckSubnetGroup(g.Name, g.Description), spec.CheckTags(g.Tags)); err != nil {
		return nil, err
	}
	err := s.client.Retry(ctx, func() error {
		var err error
		if g.Subnets, err = s.subnetsOf(c.Scope, in.SubnetIds); err != nil {
			return err
		}
		own := s.subnetGroups(c.Scope)
		switch {
		case slices.ContainsFunc(own, func(r state.Record[spec.SubnetGroup]) bool { return r.Value.Name == g.Name }):
			return wire.NewError(rds.ErrDBSubnetGroupAlreadyExists, "The DB subnet group '%s' already exists.", g.Name)
		case len(own) >= maxSubnetGroups:
			return wire.NewError(rds.ErrDBSubnetGroupQuotaExceeded, "The account has %d DB subnet groups already.", maxSubnetGroups)
		}
		return s.client.Commit(ctx, state.Swap(subnetGroupKey(g), 0, g))
	})
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBSubnetGroupResult{DBSubnetGroup: subnetsOut(g)}, nil
}

// subnetsOf checks ids of subnets, and gives each a zone: subnet-a is in the zone a,
// if there is one.
func (s *Server) subnetsOf(scope spec.Scope, ids []string) ([]spec.Subnet, error) {
	zones := s.zones()
	covered := map[string]bool{}
	var all []spec.Subnet
	for n, id := range ids {
		switch {
		case !spec.CheckSubnet(id):
			return nil, wire.NewError(rds.ErrInvalidSubnet, "Subnet IDs are required in SubnetIds: %s is none.", id)
		case slices.Contains(ids[:n], id):
			return nil, wire.NewError(api.ErrInvalidParameterValue, "The subnet %s is in SubnetIds twice.", id)
		}
		zone := strings.TrimPrefix(id, "subnet-")
		if !slices.Contains(zones, zone) {
			zone = "a"
			if len(zones) > 0 {
				zone = zones[n%len(zones)]
			}
		}
		covered[zone] = true
		all = append(all, spec.Subnet{ID: id, Zone: zone})
	}
	switch {
	case len(all) == 0:
		return nil, wire.NewError(api.ErrInvalidParameterValue, "The parameter SubnetIds must not be empty.")
	case len(all) > maxSubnets:
		return nil, wire.NewError(rds.ErrDBSubnetQuotaExceeded, "A DB subnet group has at most %d subnets.", maxSubnets)
	case len(covered) < min(2, len(zones)):
		return nil, wire.NewError(rds.ErrDBSubnetGroupDoesNotCoverEnoughAZs, "The DB subnet group doesn't meet Availability Zone (AZ) coverage requirement. "+
			"Current AZ coverage: %s. Add subnets to cover at least 2 AZs.", scope.ZoneName(all[0].Zone))
	}
	return all, nil
}

// describeDBSubnetGroups lists the default group and those that users made.
func (s *Server) describeDBSubnetGroups(ctx context.Context, c front.Call, in *rds.DescribeDBSubnetGroupsMessage) (*rds.DBSubnetGroupMessage, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return nil, err
	}
	if _, err := readFilters(in.Filters); err != nil {
		return nil, err
	}
	l := s.look(c.Account)
	all := []rds.DBSubnetGroup{*l.subnetGroupOut(c.Scope, defaultSubnetGroup)}
	for _, r := range s.subnetGroups(c.Scope) {
		all = append(all, *subnetsOut(r.Value))
	}
	slices.SortFunc(all, func(a, b rds.DBSubnetGroup) int { return strings.Compare(*a.DBSubnetGroupName, *b.DBSubnetGroupName) })
	if in.DBSubnetGroupName != nil {
		at, name := locate(c.Scope, *in.DBSubnetGroupName, "subgrp")
		if at != c.Scope || name != defaultSubnetGroup {
			if _, err := s.findSubnetGroup(c.Scope, *in.DBSubnetGroupName); err != nil {
				return nil, err
			}
		}
		all = []rds.DBSubnetGroup{*l.subnetGroupOut(c.Scope, name)}
	}
	chosen, marker, err := page.Of(all, func(g rds.DBSubnetGroup) string { return *g.DBSubnetGroupName }, in.MaxRecords, in.Marker)
	return &rds.DBSubnetGroupMessage{DBSubnetGroups: wire.List(chosen), Marker: marker}, err
}

// modifyDBSubnetGroup replaces a group's subnets.
func (s *Server) modifyDBSubnetGroup(ctx context.Context, c front.Call, in *rds.ModifyDBSubnetGroupMessage) (*rds.ModifyDBSubnetGroupResult, error) {
	var changed spec.SubnetGroup
	err := s.client.Retry(ctx, func() error {
		if err := notDefault(c.Scope, in.DBSubnetGroupName); err != nil {
			return err
		}
		r, err := s.findSubnetGroup(c.Scope, wire.Or(in.DBSubnetGroupName, ""))
		if err != nil {
			return err
		}
		changed = r.Value
		wire.Set(&changed.Description, in.DBSubnetGroupDescription)
		if err := spec.CheckSubnetGroup(changed.Name, changed.Description); err != nil {
			return err
		}
		if changed.Subnets, err = s.subnetsOf(c.Scope, in.SubnetIds); err != nil {
			return err
		}
		changed.Generation++
		return s.client.Commit(ctx, state.Swap(r.Key, r.Revision, changed))
	})
	if err != nil {
		return nil, err
	}
	return &rds.ModifyDBSubnetGroupResult{DBSubnetGroup: subnetsOut(changed)}, nil
}

// deleteDBSubnetGroup deletes a group that no database uses.
func (s *Server) deleteDBSubnetGroup(ctx context.Context, c front.Call, in *rds.DeleteDBSubnetGroupMessage) (*front.Void, error) {
	return nil, s.client.Retry(ctx, func() error {
		if err := notDefault(c.Scope, in.DBSubnetGroupName); err != nil {
			return err
		}
		r, err := s.findSubnetGroup(c.Scope, wire.Or(in.DBSubnetGroupName, ""))
		if err != nil {
			return err
		}
		name := r.Value.Name
		if who := s.look(c.Account).whoHas(c.Scope, func(d spec.Common, _ string) bool { return d.SubnetGroup == name }); who != "" {
			return wire.NewError(rds.ErrInvalidDBSubnetGroupState, "Cannot delete the subnet group '%s' because at least one database instance: %s is still using it.", name, who)
		}
		return s.client.Commit(ctx, state.Remove(r.Key, r.Revision))
	})
}

func notDefault(scope spec.Scope, identifier *string) error {
	if in, name := locate(scope, wire.Or(identifier, ""), "subgrp"); in == scope && name == defaultSubnetGroup {
		return wire.NewError(rds.ErrInvalidDBSubnetGroupState, "The DB subnet group 'default' is the home's own network: it cannot be changed or deleted.")
	}
	return nil
}

// whoHas is the name of a database of a scope that a condition holds for, or "".
func (l *look) whoHas(scope spec.Scope, uses func(d spec.Common, optionGroup string) bool) string {
	for _, r := range l.instances {
		if r.Value.Scope == scope && uses(r.Value.Common, r.Value.OptionGroup) {
			return r.Value.Name
		}
	}
	for _, r := range l.clusters {
		if r.Value.Scope == scope && uses(r.Value.Common, r.Value.OptionGroup) {
			return r.Value.Name
		}
	}
	return ""
}

// subnetGroupOut is a group as the API shows it; the default one is the network that
// a home has, with a subnet in each zone.
func (l *look) subnetGroupOut(scope spec.Scope, name string) *rds.DBSubnetGroup {
	if r, err := l.findSubnetGroup(scope, name); err == nil {
		return subnetsOut(r.Value)
	}
	g := spec.SubnetGroup{Scope: scope, Name: name, Description: "The network of this Howdah home"}
	for _, zone := range l.zones() {
		g.Subnets = append(g.Subnets, spec.Subnet{ID: spec.SubnetOf(zone), Zone: zone})
	}
	return subnetsOut(g)
}

func subnetsOut(g spec.SubnetGroup) *rds.DBSubnetGroup {
	out := &rds.DBSubnetGroup{
		DBSubnetGroupName: wire.Some(g.Name), DBSubnetGroupDescription: wire.Some(g.Description), VpcId: wire.Some("vpc-howdah"), SubnetGroupStatus: wire.Some("Complete"),
		Subnets: []rds.Subnet{}, DBSubnetGroupArn: wire.Some(g.ARN("subgrp", g.Name)), SupportedNetworkTypes: []string{"IPV4"},
	}
	for _, s := range g.Subnets {
		out.Subnets = append(out.Subnets, rds.Subnet{
			SubnetIdentifier: wire.Some(s.ID), SubnetStatus: wire.Some("Active"), SubnetAvailabilityZone: &rds.AvailabilityZone{Name: wire.Some(g.ZoneName(s.Zone))},
		})
	}
	return out
}

// holdGroups writes the groups that a new or changed database uses, so that they
// cannot be deleted meanwhile: as they were checked, so that one that is gone since is
// noticed. The default groups cannot be deleted.
func (l *look) holdGroups(scope spec.Scope, subnetGroup, optionGroup string) []state.Op {
	return l.hold(state.SubnetGroup(scope.Account, scope.Region, subnetGroup), state.OptionGroup(scope.Account, scope.Region, optionGroup))
}

func (l *look) hold(keys ...string) []state.Op {
	var ops []state.Op
	for _, key := range keys {
		if op, ok := l.checked[key]; ok {
			ops = append(ops, op)
		}
	}
	return ops
}
