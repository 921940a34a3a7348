package server

import (
	"context"
	"slices"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// roleActions are those on roles.
func (s *Server) roleActions() map[string]front.Action {
	return map[string]front.Action{
		"AddRoleToDBCluster":       front.On(s.addRoleToDBCluster),
		"AddRoleToDBInstance":      front.On(s.addRoleToDBInstance),
		"RemoveRoleFromDBCluster":  front.On(s.removeRoleFromDBCluster),
		"RemoveRoleFromDBInstance": front.On(s.removeRoleFromDBInstance),
	}
}

// features are those that RDS has roles for, with PostgreSQL. Roles are kept and
// shown; the features are not available here.
var features = []string{"Lambda", "s3Export", "s3Import"}

func checkFeature(name string) error {
	if !slices.Contains(features, name) {
		return wire.NewError(api.ErrInvalidParameterValue, "The value %s of the parameter FeatureName is not valid: PostgreSQL has Lambda, s3Export and s3Import.", name)
	}
	return nil
}

// addRoleToDBInstance associates a role with an instance: one for each feature.
func (s *Server) addRoleToDBInstance(ctx context.Context, c front.Call, in *rds.AddRoleToDBInstanceMessage) (*front.Void, error) {
	role := spec.Role{ARN: wire.Or(in.RoleArn, ""), Feature: wire.Or(in.FeatureName, "")}
	if err := look.First(spec.CheckRole(role.ARN), checkFeature(role.Feature)); err != nil {
		return nil, err
	}
	_, err := s.changeInstance(ctx, c, wire.Or(in.DBInstanceIdentifier, ""), func(l *sight, i *spec.Instance) error {
		if err := l.mayHaveRoles(*i); err != nil {
			return err
		}
		if slices.ContainsFunc(i.Roles, func(r spec.Role) bool { return r.Feature == role.Feature }) {
			return wire.NewError(rds.ErrDBInstanceRoleAlreadyExists, "The DB instance %s has a role for the feature %s already.", i.Name, role.Feature)
		}
		i.Roles = append(slices.Clone(i.Roles), role)
		return nil
	})
	return nil, err
}

// removeRoleFromDBInstance ends the association.
func (s *Server) removeRoleFromDBInstance(ctx context.Context, c front.Call, in *rds.RemoveRoleFromDBInstanceMessage) (*front.Void, error) {
	role := spec.Role{ARN: wire.Or(in.RoleArn, ""), Feature: wire.Or(in.FeatureName, "")}
	_, err := s.changeInstance(ctx, c, wire.Or(in.DBInstanceIdentifier, ""), func(l *sight, i *spec.Instance) error {
		if err := l.mayHaveRoles(*i); err != nil {
			return err
		}
		if !slices.Contains(i.Roles, role) {
			return wire.NewError(rds.ErrDBInstanceRoleNotFound, "The DB instance %s has no role %s for the feature %s.", i.Name, role.ARN, role.Feature)
		}
		i.Roles = slices.DeleteFunc(slices.Clone(i.Roles), func(r spec.Role) bool { return r == role })
		return nil
	})
	return nil, err
}

func (l *sight) mayHaveRoles(i spec.Instance) error {
	err := wire.NewError(rds.ErrInvalidDBInstanceState, "DB instance %s is not in the available state: it is %s.", i.Name, l.Status(i))
	return l.May(operation.Change, i, err)
}

// addRoleToDBCluster associates a role with a cluster, for a feature or none.
func (s *Server) addRoleToDBCluster(ctx context.Context, c front.Call, in *rds.AddRoleToDBClusterMessage) (*front.Void, error) {
	role := spec.Role{ARN: wire.Or(in.RoleArn, ""), Feature: wire.Or(in.FeatureName, "")}
	if err := spec.CheckRole(role.ARN); err != nil {
		return nil, err
	}
	if role.Feature != "" {
		if err := checkFeature(role.Feature); err != nil {
			return nil, err
		}
	}
	_, err := s.changeCluster(ctx, c, wire.Or(in.DBClusterIdentifier, ""), func(l *sight, cluster *spec.Cluster) ([]state.Op, error) {
		switch {
		case l.clusterHasNoRoles(*cluster) != nil:
			return nil, l.clusterHasNoRoles(*cluster)
		case slices.Contains(cluster.Roles, role):
			return nil, wire.NewError(rds.ErrDBClusterRoleAlreadyExists, "The DB cluster %s has the role %s already.", cluster.Name, role.ARN)
		case len(cluster.Roles) >= look.MaxRoles:
			return nil, wire.NewError(rds.ErrDBClusterRoleQuotaExceeded, "The DB cluster %s has %d roles already.", cluster.Name, look.MaxRoles)
		}
		cluster.Roles = append(slices.Clone(cluster.Roles), role)
		return nil, nil
	})
	return nil, err
}

// removeRoleFromDBCluster ends the association.
func (s *Server) removeRoleFromDBCluster(ctx context.Context, c front.Call, in *rds.RemoveRoleFromDBClusterMessage) (*front.Void, error) {
	role := spec.Role{ARN: wire.Or(in.RoleArn, ""), Feature: wire.Or(in.FeatureName, "")}
	_, err := s.changeCluster(ctx, c, wire.Or(in.DBClusterIdentifier, ""), func(l *sight, cluster *spec.Cluster) ([]state.Op, error) {
		if err := l.clusterHasNoRoles(*cluster); err != nil {
			return nil, err
		}
		if !slices.Contains(cluster.Roles, role) {
			return nil, wire.NewError(rds.ErrDBClusterRoleNotFound, "The DB cluster %s has no role %s with the FeatureName %q.", cluster.Name, role.ARN, role.Feature)
		}
		cluster.Roles = slices.DeleteFunc(slices.Clone(cluster.Roles), func(r spec.Role) bool { return r == role })
		return nil, nil
	})
	return nil, err
}

// clusterHasNoRoles is the error of a cluster whose roles cannot be changed now.
func (l *sight) clusterHasNoRoles(c spec.Cluster) error {
	return l.MayCluster(operation.Change, c)
}

func instanceRolesOut(roles []spec.Role) []rds.DBInstanceRole {
	out := []rds.DBInstanceRole{}
	for _, r := range roles {
		out = append(out, rds.DBInstanceRole{RoleArn: wire.Some(r.ARN), FeatureName: wire.Text(r.Feature), Status: wire.Some("ACTIVE")})
	}
	return out
}

func clusterRolesOut(roles []spec.Role) []rds.DBClusterRole {
	out := []rds.DBClusterRole{}
	for _, r := range roles {
		out = append(out, rds.DBClusterRole{RoleArn: wire.Some(r.ARN), FeatureName: wire.Text(r.Feature), Status: wire.Some("ACTIVE")})
	}
	return out
}
