package server

import (
	"context"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/param"
	"howdah/internal/model/spec"
)

// createDBClusterParameterGroup makes an empty group.
func (s *Server) createDBClusterParameterGroup(ctx context.Context, c front.Call, in *rds.CreateDBClusterParameterGroupMessage) (*rds.CreateDBClusterParameterGroupResult, error) {
	g, err := s.newGroup(ctx, c, spec.ParameterGroup{
		Kind: param.Cluster, Name: wire.Or(in.DBClusterParameterGroupName, ""), Family: wire.Or(in.DBParameterGroupFamily, ""),
		Description: wire.Or(in.Description, ""), Tags: look.TagsIn(in.Tags),
	}, "DBClusterParameterGroupName")
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBClusterParameterGroupResult{DBClusterParameterGroup: wire.Some(clusterGroupOut(g))}, nil
}

// copyDBClusterParameterGroup makes a group with the values of another one.
func (s *Server) copyDBClusterParameterGroup(ctx context.Context, c front.Call, in *rds.CopyDBClusterParameterGroupMessage) (*rds.CopyDBClusterParameterGroupResult, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return nil, err
	}
	source, err := s.look(c.Account).findGroup(c.Scope, param.Cluster, wire.Or(in.SourceDBClusterParameterGroupIdentifier, ""))
	if err != nil {
		return nil, err
	}
	g, err := s.newGroup(ctx, c, spec.ParameterGroup{
		Kind: param.Cluster, Name: wire.Or(in.TargetDBClusterParameterGroupIdentifier, ""), Family: source.Value.Family,
		Description: wire.Or(in.TargetDBClusterParameterGroupDescription, ""), Tags: look.TagsIn(in.Tags), Values: source.Value.Values, Serial: source.Value.Serial,
	}, "TargetDBClusterParameterGroupIdentifier")
	if err != nil {
		return nil, err
	}
	return &rds.CopyDBClusterParameterGroupResult{DBClusterParameterGroup: wire.Some(clusterGroupOut(g))}, nil
}

// deleteDBClusterParameterGroup deletes a group that nobody uses.
func (s *Server) deleteDBClusterParameterGroup(ctx context.Context, c front.Call, in *rds.DeleteDBClusterParameterGroupMessage) (*front.Void, error) {
	return nil, s.deleteGroup(ctx, c, param.Cluster, wire.Or(in.DBClusterParameterGroupName, ""))
}

// describeDBClusterParameterGroups lists groups.
func (s *Server) describeDBClusterParameterGroups(ctx context.Context, c front.Call, in *rds.DescribeDBClusterParameterGroupsMessage) (*rds.DBClusterParameterGroupsMessage, error) {
	all, marker, err := s.groupPage(ctx, c, param.Cluster, in.DBClusterParameterGroupName, in.Filters, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.DBClusterParameterGroupsMessage{Marker: marker, DBClusterParameterGroups: []rds.DBClusterParameterGroup{}}
	for _, g := range all {
		out.DBClusterParameterGroups = append(out.DBClusterParameterGroups, clusterGroupOut(g))
	}
	return out, nil
}

// modifyDBClusterParameterGroup sets values.
func (s *Server) modifyDBClusterParameterGroup(ctx context.Context, c front.Call, in *rds.ModifyDBClusterParameterGroupMessage) (*rds.DBClusterParameterGroupNameMessage, error) {
	if err := checkCount(in.Parameters); err != nil {
		return nil, err
	}
	name, err := s.changeGroup(ctx, c, param.Cluster, wire.Or(in.DBClusterParameterGroupName, ""), func(e *groupEdit) error {
		return e.modify(ctx, in.Parameters)
	})
	if err != nil {
		return nil, err
	}
	return &rds.DBClusterParameterGroupNameMessage{DBClusterParameterGroupName: wire.Some(name)}, nil
}

// resetDBClusterParameterGroup sets values back to their defaults.
func (s *Server) resetDBClusterParameterGroup(ctx context.Context, c front.Call, in *rds.ResetDBClusterParameterGroupMessage) (*rds.DBClusterParameterGroupNameMessage, error) {
	if err := checkReset(wire.Or(in.ResetAllParameters, false), in.Parameters); err != nil {
		return nil, err
	}
	name, err := s.changeGroup(ctx, c, param.Cluster, wire.Or(in.DBClusterParameterGroupName, ""), func(e *groupEdit) error {
		return e.reset(in.Parameters, wire.Or(in.ResetAllParameters, false))
	})
	if err != nil {
		return nil, err
	}
	return &rds.DBClusterParameterGroupNameMessage{DBClusterParameterGroupName: wire.Some(name)}, nil
}

// describeDBClusterParameters lists the parameters of a group.
func (s *Server) describeDBClusterParameters(ctx context.Context, c front.Call, in *rds.DescribeDBClusterParametersMessage) (*rds.DBClusterParameterGroupDetails, error) {
	all, marker, err := s.groupParameters(ctx, c, param.Cluster, wire.Or(in.DBClusterParameterGroupName, ""), listing{in.Source, in.Filters, in.MaxRecords, in.Marker})
	if err != nil {
		return nil, err
	}
	return &rds.DBClusterParameterGroupDetails{Parameters: all, Marker: marker}, nil
}

// describeEngineDefaultClusterParameters lists the parameters of a family.
func (s *Server) describeEngineDefaultClusterParameters(ctx context.Context, c front.Call, in *rds.DescribeEngineDefaultClusterParametersMessage) (*rds.DescribeEngineDefaultClusterParametersResult, error) {
	out, err := s.engineDefaults(ctx, c, param.Cluster, wire.Or(in.DBParameterGroupFamily, ""), listing{nil, in.Filters, in.MaxRecords, in.Marker})
	if err != nil {
		return nil, err
	}
	return &rds.DescribeEngineDefaultClusterParametersResult{EngineDefaults: out}, nil
}

func clusterGroupOut(g spec.ParameterGroup) rds.DBClusterParameterGroup {
	return rds.DBClusterParameterGroup{
		DBClusterParameterGroupName: wire.Some(g.Name), DBParameterGroupFamily: wire.Some(g.Family), Description: wire.Some(g.Description), DBClusterParameterGroupArn: wire.Some(g.ARN()),
	}
}
