package look

import (
	"slices"
	"strconv"
	"strings"

	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// DefaultOptionGroup is the group of an engine's version, which has no options.
func DefaultOptionGroup(c spec.Common) string {
	return "default:" + c.Engine + "-" + strconv.Itoa(c.Major)
}

// OptionGroups are those that users made in a scope, by name.
func (s *Source) OptionGroups(scope spec.Scope) []state.Record[spec.OptionGroup] {
	return state.LoadAll[spec.OptionGroup](s.Cache, state.OptionGroup(scope.Account, scope.Region, ""))
}

// FindOptionGroup finds a group that a user made, by name or ARN.
func (s *Source) FindOptionGroup(scope spec.Scope, identifier string) (state.Record[spec.OptionGroup], error) {
	r, name, ok := FindNamed[spec.OptionGroup](s, scope, identifier, "og", state.OptionGroup)
	if !ok {
		return r, OrBlank(name, "OptionGroupName", wire.NewError(rds.ErrOptionGroupNotFound, "Specified OptionGroupName: %s not found.", name))
	}
	return r, nil
}

// DefaultSubnetGroup is the home's own network.
const DefaultSubnetGroup = spec.DefaultGroup

// SubnetGroups are those that users made in a scope, by name.
func (s *Source) SubnetGroups(scope spec.Scope) []state.Record[spec.SubnetGroup] {
	return state.LoadAll[spec.SubnetGroup](s.Cache, state.SubnetGroup(scope.Account, scope.Region, ""))
}

// FindSubnetGroup finds a group that a user made, by name or ARN.
func (s *Source) FindSubnetGroup(scope spec.Scope, identifier string) (state.Record[spec.SubnetGroup], error) {
	r, name, ok := FindNamed[spec.SubnetGroup](s, scope, identifier, "subgrp", state.SubnetGroup)
	if !ok {
		missing := wire.NewError(rds.ErrDBSubnetGroupNotFound, "DB subnet group '%s' does not exist: see DBSubnetGroupName of DescribeDBSubnetGroups.", name)
		return r, OrBlank(name, "DBSubnetGroupName", missing)
	}
	return r, nil
}

// WhoHas is the name of a database of a scope that a condition holds for, or "".
func (l *Look) WhoHas(scope spec.Scope, uses func(d spec.Common, optionGroup string) bool) string {
	for _, r := range l.Instances {
		if r.Value.Scope == scope && uses(r.Value.Common, r.Value.OptionGroup) {
			return r.Value.Name
		}
	}
	for _, r := range l.Clusters {
		if r.Value.Scope == scope && uses(r.Value.Common, r.Value.OptionGroup) {
			return r.Value.Name
		}
	}
	return ""
}

// A subnet group names zones by its subnets, and members are placed in these only. The
// default group, which is the home's own network, covers all of them.

// Covered are the zones of a database's subnet group; nil: all.
func (s *Source) Covered(c spec.Common) []string {
	r, err := s.FindSubnetGroup(c.Scope, c.SubnetGroup)
	if err != nil {
		return nil
	}
	return r.Value.Zones()
}

// Covers refuses a database with members in more zones than its subnet group has.
func (s *Source) Covers(c spec.Common, need int, code string) error {
	zones := s.Covered(c)
	if zones == nil || len(zones) >= need {
		return nil
	}
	return wire.NewError(code, "The DB subnet group %s doesn't meet Availability Zone (AZ) coverage requirement. "+
		"Current AZ coverage: %s. Add subnets to cover at least %d AZs.", c.SubnetGroup, zoneNames(c.Scope, zones), need)
}

// CoversZone refuses a zone that was asked for and in which the subnet group has no
// subnet.
func (s *Source) CoversZone(c spec.Common, zone string) error {
	zones := s.Covered(c)
	if zone == "" || zones == nil || slices.Contains(zones, zone) {
		return nil
	}
	return wire.NewError(rds.ErrInvalidVPCNetworkState, "The DB subnet group %s has no subnet in the AvailabilityZone %s: choose one of %s, or none.",
		c.SubnetGroup, c.ZoneName(zone), zoneNames(c.Scope, zones))
}

func zoneNames(scope spec.Scope, zones []string) string {
	var names []string
	for _, z := range zones {
		names = append(names, scope.ZoneName(z))
	}
	return strings.Join(names, ", ")
}
