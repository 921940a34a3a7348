// Package subnet is about DB subnet groups: their subnets say in which zones databases may be.
package subnet

import (
	"context"
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// service has the handlers.
type service struct {
	*state.Client
	looks *look.Source
}

// Actions are those on subnet groups.
func Actions(client *state.Client, looks *look.Source) map[string]front.Action {
	s := &service{client, looks}
	return map[string]front.Action{
		"CreateDBSubnetGroup":    front.On(s.createDBSubnetGroup),
		"DeleteDBSubnetGroup":    front.On(s.deleteDBSubnetGroup),
		"DescribeDBSubnetGroups": front.On(s.describeDBSubnetGroups),
		"ModifyDBSubnetGroup":    front.On(s.modifyDBSubnetGroup),
	}
}

func key(g spec.SubnetGroup) string { return state.SubnetGroup(g.Account, g.Region, g.Name) }

// Check refuses a group that does not exist. Its name becomes what it is stored as.
func Check(l *look.Look, scope spec.Scope, name *string) error {
	*name = strings.ToLower(strings.TrimSpace(*name))
	if *name == look.DefaultSubnetGroup {
		return nil
	}
	r, err := l.FindSubnetGroup(scope, *name)
	if err != nil {
		return err
	}
	*name = r.Value.Name
	r.Value.Generation++
	l.Checked[r.Key] = state.Swap(r.Key, r.Revision, r.Value)
	return nil
}

// createDBSubnetGroup keeps a group. Subnets that the home does not know are spread
// over its zones, in their order.
func (s *service) createDBSubnetGroup(ctx context.Context, c front.Call, in *rds.CreateDBSubnetGroupMessage) (*rds.CreateDBSubnetGroupResult, error) {
	g := spec.SubnetGroup{
		Scope: c.Scope, Name: wire.Lower(in.DBSubnetGroupName), Description: wire.Or(in.DBSubnetGroupDescription, ""), Tags: look.TagsIn(in.Tags), Created: c.Now, Generation: 1,
	}
	if err := look.First(spec.CheckSubnetGroup(g.Name, g.Description), spec.CheckTags(g.Tags)); err != nil {
		return nil, err
	}
	err := s.Retry(ctx, func() error {
		var err error
		if g.Subnets, err = s.subnetsOf(c.Scope, in.SubnetIds); err != nil {
			return err
		}
		own := s.looks.SubnetGroups(c.Scope)
		switch {
		case slices.ContainsFunc(own, func(r state.Record[spec.SubnetGroup]) bool { return r.Value.Name == g.Name }):
			return wire.NewError(rds.ErrDBSubnetGroupAlreadyExists, "The DB subnet group '%s' already exists.", g.Name)
		case len(own) >= look.MaxSubnetGroups:
			return wire.NewError(rds.ErrDBSubnetGroupQuotaExceeded, "The account has %d DB subnet groups already.", look.MaxSubnetGroups)
		}
		return s.Commit(ctx, state.Swap(key(g), 0, g))
	})
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBSubnetGroupResult{DBSubnetGroup: groupOut(g)}, nil
}

// subnetsOf checks ids of subnets, and gives each a zone: subnet-a is in the zone a,
// if there is one.
func (s *service) subnetsOf(scope spec.Scope, ids []string) ([]spec.Subnet, error) {
	zones := s.looks.Zones()
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
	case len(all) > look.MaxSubnets:
		return nil, wire.NewError(rds.ErrDBSubnetQuotaExceeded, "A DB subnet group has at most %d subnets.", look.MaxSubnets)
	case len(covered) < min(2, len(zones)):
		return nil, wire.NewError(rds.ErrDBSubnetGroupDoesNotCoverEnoughAZs, "The DB subnet group doesn't meet Availability Zone (AZ) coverage requirement. "+
			"Current AZ coverage: %s. Add subnets to cover at least 2 AZs.", scope.ZoneName(all[0].Zone))
	}
	return all, nil
}

// describeDBSubnetGroups lists the default group and those that users made.
func (s *service) describeDBSubnetGroups(ctx context.Context, c front.Call, in *rds.DescribeDBSubnetGroupsMessage) (*rds.DBSubnetGroupMessage, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	all := []rds.DBSubnetGroup{*Out(s.looks, c.Scope, look.DefaultSubnetGroup)}
	for _, r := range s.looks.SubnetGroups(c.Scope) {
		all = append(all, *groupOut(r.Value))
	}
	slices.SortFunc(all, func(a, b rds.DBSubnetGroup) int { return strings.Compare(*a.DBSubnetGroupName, *b.DBSubnetGroupName) })
	if in.DBSubnetGroupName != nil {
		at, name := look.Locate(c.Scope, *in.DBSubnetGroupName, "subgrp")
		if at != c.Scope || name != look.DefaultSubnetGroup {
			if _, err := s.looks.FindSubnetGroup(c.Scope, *in.DBSubnetGroupName); err != nil {
				return nil, err
			}
		}
		all = []rds.DBSubnetGroup{*Out(s.looks, c.Scope, name)}
	}
	chosen, marker, err := page.Of(all, func(g rds.DBSubnetGroup) string { return *g.DBSubnetGroupName }, in.MaxRecords, in.Marker)
	return &rds.DBSubnetGroupMessage{DBSubnetGroups: wire.List(chosen), Marker: marker}, err
}

// modifyDBSubnetGroup replaces a group's subnets.
func (s *service) modifyDBSubnetGroup(ctx context.Context, c front.Call, in *rds.ModifyDBSubnetGroupMessage) (*rds.ModifyDBSubnetGroupResult, error) {
	var changed spec.SubnetGroup
	err := s.Retry(ctx, func() error {
		if err := notDefault(c.Scope, in.DBSubnetGroupName); err != nil {
			return err
		}
		r, err := s.looks.FindSubnetGroup(c.Scope, wire.Or(in.DBSubnetGroupName, ""))
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
		return s.Commit(ctx, state.Swap(r.Key, r.Revision, changed))
	})
	if err != nil {
		return nil, err
	}
	return &rds.ModifyDBSubnetGroupResult{DBSubnetGroup: groupOut(changed)}, nil
}

// deleteDBSubnetGroup deletes a group that no database uses.
func (s *service) deleteDBSubnetGroup(ctx context.Context, c front.Call, in *rds.DeleteDBSubnetGroupMessage) (*front.Void, error) {
	return nil, s.Retry(ctx, func() error {
		if err := notDefault(c.Scope, in.DBSubnetGroupName); err != nil {
			return err
		}
		r, err := s.looks.FindSubnetGroup(c.Scope, wire.Or(in.DBSubnetGroupName, ""))
		if err != nil {
			return err
		}
		name := r.Value.Name
		if who := s.looks.Of(c.Account).WhoHas(c.Scope, func(d spec.Common, _ string) bool { return d.SubnetGroup == name }); who != "" {
			return wire.NewError(rds.ErrInvalidDBSubnetGroupState, "Cannot delete the subnet group '%s' because at least one database instance: %s is still using it.", name, who)
		}
		return s.Commit(ctx, state.Remove(r.Key, r.Revision))
	})
}

func notDefault(scope spec.Scope, identifier *string) error {
	if in, name := look.Locate(scope, wire.Or(identifier, ""), "subgrp"); in == scope && name == look.DefaultSubnetGroup {
		return wire.NewError(rds.ErrInvalidDBSubnetGroupState, "The DB subnet group 'default' is the home's own network: it cannot be changed or deleted.")
	}
	return nil
}

// Out is a group as the API shows it. The default one is the network that a home has, with a
// subnet in each zone.
func Out(s *look.Source, scope spec.Scope, name string) *rds.DBSubnetGroup {
	if r, err := s.FindSubnetGroup(scope, name); err == nil {
		return groupOut(r.Value)
	}
	g := spec.SubnetGroup{Scope: scope, Name: name, Description: "The network of this Howdah home"}
	for _, zone := range s.Zones() {
		g.Subnets = append(g.Subnets, spec.Subnet{ID: spec.SubnetOf(zone), Zone: zone})
	}
	return groupOut(g)
}

func groupOut(g spec.SubnetGroup) *rds.DBSubnetGroup {
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

// Tagged is a subnet group with its tags.
func Tagged(l *look.Look, scope spec.Scope, arn string) (look.Tagged, error) {
	r, err := l.FindSubnetGroup(scope, arn)
	return look.Tagged{Tags: r.Value.Tags, Put: func(tags []spec.Tag) state.Op {
		g := r.Value
		g.Tags = tags
		g.Generation++
		return state.Swap(r.Key, r.Revision, g)
	}}, err
}
