package cluster

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

// addRoleToDBCluster associates a role with a cluster, for a feature or none.
func (s *service) addRoleToDBCluster(ctx context.Context, c front.Call, in *rds.AddRoleToDBClusterMessage) (*front.Void, error) {
	role := spec.Role{ARN: wire.Or(in.RoleArn, ""), Feature: wire.Or(in.FeatureName, "")}
	if err := spec.CheckRole(role.ARN); err != nil {
		return nil, err
	}
	if role.Feature != "" {
		if err := database.CheckFeature(role.Feature); err != nil {
			return nil, err
		}
	}
	_, err := s.Change(ctx, c, in.DBClusterIdentifier, func(l *database.Sight, cluster *spec.Cluster) ([]state.Op, error) {
		if err := l.MayCluster(operation.Change, *cluster); err != nil {
			return nil, err
		}
		switch {
		case slices.Contains(cluster.Roles, role):
			return nil, wire.NewError(rds.ErrDBClusterRoleAlreadyExists, "The DB cluster %s has the role %s already.", cluster.Name, role.ARN)
		case len(cluster.Roles) >= look.MaxRoles:
			return nil, wire.NewError(rds.ErrDBClusterRoleQuotaExceeded, "The DB cluster %s has %d roles already.", cluster.Name, look.MaxRoles)
		}
		database.AddRole(&cluster.Common, role)
		return nil, nil
	})
	return nil, err
}

// removeRoleFromDBCluster ends the association.
func (s *service) removeRoleFromDBCluster(ctx context.Context, c front.Call, in *rds.RemoveRoleFromDBClusterMessage) (*front.Void, error) {
	role := spec.Role{ARN: wire.Or(in.RoleArn, ""), Feature: wire.Or(in.FeatureName, "")}
	_, err := s.Change(ctx, c, in.DBClusterIdentifier, func(l *database.Sight, cluster *spec.Cluster) ([]state.Op, error) {
		if err := l.MayCluster(operation.Change, *cluster); err != nil {
			return nil, err
		}
		if !database.RemoveRole(&cluster.Common, role) {
			return nil, wire.NewError(rds.ErrDBClusterRoleNotFound, "The DB cluster %s has no role %s with the FeatureName %q.", cluster.Name, role.ARN, role.Feature)
		}
		return nil, nil
	})
	return nil, err
}

func rolesOut(l *look.Look, c spec.Common) []rds.DBClusterRole {
	out := []rds.DBClusterRole{}
	for _, r := range c.Roles {
		out = append(out, rds.DBClusterRole{RoleArn: wire.Some(r.ARN), FeatureName: wire.Text(r.Feature), Status: wire.Some(database.RoleStatus(l, c, r))})
	}
	return out
}
