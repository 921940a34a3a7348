package server

import (
	"slices"

	"howdah/api"
	"howdah/internal/aws/wire"
	"howdah/internal/model/network"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// maxSecurityGroupsOfDatabase is how many groups a database may be in.
const maxSecurityGroupsOfDatabase = 5

// checkSecurityGroups: the groups of a database exist. Who names none is in the
// default group.
func (l *sight) checkSecurityGroups(c *spec.Common) error {
	if len(c.SecurityGroups) == 0 {
		c.SecurityGroups = []string{network.Default(c.Scope).ID}
	}
	known := map[string]bool{}
	for _, r := range state.LoadAll[network.Group](l.Cache, state.SecurityGroup(c.Account, c.Region, "")) {
		known[r.Value.ID] = true
		if slices.Contains(c.SecurityGroups, r.Value.ID) {
			r.Value.Generation++
			l.Checked[r.Key] = state.Swap(r.Key, r.Revision, r.Value)
		}
	}
	for n, id := range c.SecurityGroups {
		if !known[id] && id != network.Default(c.Scope).ID {
			return wire.NewError(api.ErrInvalidParameterValue, "Invalid security group , groupId= %s, groupName=. VpcSecurityGroupIds are those of DescribeSecurityGroups.", id)
		}
		if slices.Contains(c.SecurityGroups[:n], id) {
			return wire.NewError(api.ErrInvalidParameterValue, "The security group %s is in VpcSecurityGroupIds twice.", id)
		}
	}
	if n := len(c.SecurityGroups); n > maxSecurityGroupsOfDatabase {
		return wire.NewError(api.ErrInvalidParameterValue, "A database is in at most %d security groups; VpcSecurityGroupIds has %d.", maxSecurityGroupsOfDatabase, n)
	}
	return nil
}

// holdSecurityGroups writes the groups of a new or changed database, so that they
// cannot be deleted meanwhile: as they were checked, so that one that is gone since is
// noticed. A default group without a record cannot be deleted.
func (l *sight) holdSecurityGroups(c spec.Common) []state.Op {
	var keys []string
	for _, id := range c.SecurityGroups {
		keys = append(keys, state.SecurityGroup(c.Account, c.Region, id))
	}
	return l.Hold(keys...)
}

// memberOf is a database that is in a security group, in words; "": none is.
func (s *Server) memberOf(scope spec.Scope, group string) string {
	return s.look(scope.Account).WhoHas(scope, func(d spec.Common, _ string) bool { return slices.Contains(d.SecurityGroups, group) })
}
