package database

import (
	"slices"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/model/network"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

func SecurityGroupsOut(ids []string) []rds.VpcSecurityGroupMembership {
	out := []rds.VpcSecurityGroupMembership{}
	for _, id := range ids {
		out = append(out, rds.VpcSecurityGroupMembership{VpcSecurityGroupId: wire.Some(id), Status: wire.Some("active")})
	}
	return out
}

// maxSecurityGroups is how many groups a database may be in.
const maxSecurityGroups = 5

// checkSecurityGroups: the groups of a database exist. Who names none is in the
// default group.
func (l *Sight) checkSecurityGroups(c *spec.Common) error {
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
	if n := len(c.SecurityGroups); n > maxSecurityGroups {
		return wire.NewError(api.ErrInvalidParameterValue, "A database is in at most %d security groups; VpcSecurityGroupIds has %d.", maxSecurityGroups, n)
	}
	return nil
}

// HoldSecurityGroups writes the groups of a new or changed database, so that they
// cannot be deleted meanwhile: as they were checked, so that one that is gone since is
// noticed. A default group without a record cannot be deleted.
func (l *Sight) HoldSecurityGroups(c spec.Common) []state.Op {
	var keys []string
	for _, id := range c.SecurityGroups {
		keys = append(keys, state.SecurityGroup(c.Account, c.Region, id))
	}
	return l.Hold(keys...)
}

// UserOf is a database that is in a security group, in words; "": none is.
func (s *Source) UserOf(scope spec.Scope, group string) string {
	return s.Looks.Of(scope.Account).WhoHas(scope, func(d spec.Common, _ string) bool { return slices.Contains(d.SecurityGroups, group) })
}
