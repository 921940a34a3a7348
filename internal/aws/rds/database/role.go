package database

import (
	"slices"

	"howdah/api"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// features are those that RDS has roles for, with PostgreSQL. For Lambda a role is only kept and shown.
var features = []string{"Lambda", member.Export, member.Import}

// CheckFeature refuses a feature that no role is for.
func CheckFeature(name string) error {
	if !slices.Contains(features, name) {
		return wire.NewError(api.ErrInvalidParameterValue, "The value %s of the parameter FeatureName is not valid: PostgreSQL has Lambda, s3Export and s3Import.", name)
	}
	return nil
}

// AddRole associates a role. The record may be shared: its list is not altered.
func AddRole(c *spec.Common, role spec.Role) { c.Roles = append(slices.Clone(c.Roles), role) }

// RemoveRole ends an association, and reports whether there was one.
func RemoveRole(c *spec.Common, role spec.Role) bool {
	at := slices.Index(c.Roles, role)
	c.Roles = slices.DeleteFunc(slices.Clone(c.Roles), func(r spec.Role) bool { return r == role })
	return at >= 0
}

// RoleStatus is what a database's role is good for: INVALID, as RDS says where it cannot assume a role,
// if it leads to no bucket. So it is where the operator has made none of this name, where the role is of
// another account, and where nothing uses it.
func RoleStatus(l *look.Look, c spec.Common, role spec.Role) string {
	alone := c
	alone.Roles = []spec.Role{role}
	name := alone.RoleFor(role.Feature)
	if name == "" || role.Feature != member.Export && role.Feature != member.Import {
		return "INVALID"
	}
	if _, err := state.View[spec.BucketRole](l.Cache, state.BucketRole(c.Account, name)); err != nil {
		return "INVALID"
	}
	return "ACTIVE"
}
