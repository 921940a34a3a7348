package instance

import (
	"context"
	"slices"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// addRoleToDBInstance associates a role with an instance: one for each feature.
func (s *service) addRoleToDBInstance(ctx context.Context, c front.Call, in *rds.AddRoleToDBInstanceMessage) (*front.Void, error) {
	role := spec.Role{ARN: wire.Or(in.RoleArn, ""), Feature: wire.Or(in.FeatureName, "")}
	if err := look.First(spec.CheckRole(role.ARN), database.CheckFeature(role.Feature)); err != nil {
		return nil, err
	}
	_, err := s.Change(ctx, c, in.DBInstanceIdentifier, func(l *database.Sight, i *spec.Instance) ([]state.Op, error) {
		if err := mayHaveRoles(l, *i); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(i.Roles, func(r spec.Role) bool { return r.Feature == role.Feature }) {
			return nil, wire.NewError(rds.ErrDBInstanceRoleAlreadyExists, "The DB instance %s has a role for the feature %s already.", i.Name, role.Feature)
		}
		database.AddRole(&i.Common, role)
		return nil, nil
	})
	return nil, err
}

// removeRoleFromDBInstance ends the association.
func (s *service) removeRoleFromDBInstance(ctx context.Context, c front.Call, in *rds.RemoveRoleFromDBInstanceMessage) (*front.Void, error) {
	role := spec.Role{ARN: wire.Or(in.RoleArn, ""), Feature: wire.Or(in.FeatureName, "")}
	_, err := s.Change(ctx, c, in.DBInstanceIdentifier, func(l *database.Sight, i *spec.Instance) ([]state.Op, error) {
		if err := mayHaveRoles(l, *i); err != nil {
			return nil, err
		}
		if !database.RemoveRole(&i.Common, role) {
			return nil, wire.NewError(rds.ErrDBInstanceRoleNotFound, "The DB instance %s has no role %s for the feature %s.", i.Name, role.ARN, role.Feature)
		}
		return nil, nil
	})
	return nil, err
}

func mayHaveRoles(l *database.Sight, i spec.Instance) error {
	err := wire.NewError(rds.ErrInvalidDBInstanceState, "DB instance %s is not in the available state: it is %s.", i.Name, l.Status(i))
	return l.May(operation.Change, i, err)
}

func rolesOut(l *look.Look, c spec.Common) []rds.DBInstanceRole {
	out := []rds.DBInstanceRole{}
	for _, r := range c.Roles {
		out = append(out, rds.DBInstanceRole{RoleArn: wire.Some(r.ARN), FeatureName: wire.Text(r.Feature), Status: wire.Some(database.RoleStatus(l, c, r))})
	}
	return out
}
