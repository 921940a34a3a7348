package server

import (
	"slices"
	"strings"

	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
)

// A subnet group names zones by its subnets, and members are placed in these only. The
// default group, which is the home's own network, covers all of them.

// covered are the zones of a database's subnet group; nil: all.
func (s *Server) covered(c spec.Common) []string {
	r, err := s.findSubnetGroup(c.Scope, c.SubnetGroup)
	if err != nil {
		return nil
	}
	return r.Value.Zones()
}

// covers refuses a database with members in more zones than its subnet group has.
func (s *Server) covers(c spec.Common, need int, code string) error {
	zones := s.covered(c)
	if zones == nil || len(zones) >= need {
		return nil
	}
	return wire.NewError(code, "The DB subnet group %s doesn't meet Availability Zone (AZ) coverage requirement. "+
		"Current AZ coverage: %s. Add subnets to cover at least %d AZs.", c.SubnetGroup, zoneNames(c.Scope, zones), need)
}

// coversZone refuses a zone that was asked for and in which the subnet group has no
// subnet.
func (s *Server) coversZone(c spec.Common, zone string) error {
	zones := s.covered(c)
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
