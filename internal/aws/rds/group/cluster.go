package group

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
func (s *Groups) createDBClusterParameterGroup(ctx context.Context, c front.Call, in *rds.CreateDBClusterParameterGroupMessage) (*rds.CreateDBClusterParameterGroupResult, error) {
	g, err := s.add(ctx, c, spec.ParameterGroup{
		Kind: param.Cluster, Name: wire.Or(in.DBClusterParameterGroupName, ""), Family: wire.Or(in.DBParameterGroupFamily, ""),
		Description: wire.Or(in.Description, ""), Tags: look.TagsIn(in.Tags),
	}, "DBClusterParameterGroupName")
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBClusterParameterGroupResult{DBClusterParameterGroup: wire.Some(clusterOut(g))}, nil
}

// copyDBClusterParameterGroup makes a group with the values of another one.
func (s *Groups) copyDBClusterParameterGroup(ctx context.Context, c front.Call, in *rds.CopyDBClusterParameterGroupMessage) (*rds.CopyDBClusterParameterGroupResult, error) {
	g, err := s.copyOf(ctx, c, wire.Or(in.SourceDBClusterParameterGroupIdentifier, ""), spec.ParameterGroup{
		Kind: param.Cluster, Name: wire.Or(in.TargetDBClusterParameterGroupIdentifier, ""),
		Description: wire.Or(in.TargetDBClusterParameterGroupDescription, ""), Tags: look.TagsIn(in.Tags),
	}, "TargetDBClusterParameterGroupIdentifier")
	if err != nil {
		return nil, err
	}
	return &rds.CopyDBClusterParameterGroupResult{DBClusterParameterGroup: wire.Some(clusterOut(g))}, nil
}

// deleteDBClusterParameterGroup deletes a group that nobody uses.
func (s *Groups) deleteDBClusterParameterGroup(ctx context.Context, c front.Call, in *rds.DeleteDBClusterParameterGroupMessage) (*front.Void, error) {
	return nil, s.remove(ctx, c, param.Cluster, wire.Or(in.DBClusterParameterGroupName, ""))
}

// describeDBClusterParameterGroups lists groups.
func (s *Groups) describeDBClusterParameterGroups(ctx context.Context, c front.Call, in *rds.DescribeDBClusterParameterGroupsMessage) (*rds.DBClusterParameterGroupsMessage, error) {
	all, marker, err := s.pageOf(ctx, c, param.Cluster, in.DBClusterParameterGroupName, in.Filters, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.DBClusterParameterGroupsMessage{Marker: marker, DBClusterParameterGroups: []rds.DBClusterParameterGroup{}}
	for _, g := range all {
		out.DBClusterParameterGroups = append(out.DBClusterParameterGroups, clusterOut(g))
	}
	return out, nil
}

// modifyDBClusterParameterGroup sets values.
func (s *Groups) modifyDBClusterParameterGroup(ctx context.Context, c front.Call, in *rds.ModifyDBClusterParameterGroupMessage) (*rds.DBClusterParameterGroupNameMessage, error) {
	name, err := s.modify(ctx, c, param.Cluster, in.DBClusterParameterGroupName, in.Parameters)
	if err != nil {
		return nil, err
	}
	return &rds.DBClusterParameterGroupNameMessage{DBClusterParameterGroupName: name}, nil
}

// resetDBClusterParameterGroup sets values back to their defaults.
func (s *Groups) resetDBClusterParameterGroup(ctx context.Context, c front.Call, in *rds.ResetDBClusterParameterGroupMessage) (*rds.DBClusterParameterGroupNameMessage, error) {
	name, err := s.reset(ctx, c, param.Cluster, in.DBClusterParameterGroupName, in.ResetAllParameters, in.Parameters)
	if err != nil {
		return nil, err
	}
	return &rds.DBClusterParameterGroupNameMessage{DBClusterParameterGroupName: name}, nil
}

// describeDBClusterParameters lists the parameters of a group.
func (s *Groups) describeDBClusterParameters(ctx context.Context, c front.Call, in *rds.DescribeDBClusterParametersMessage) (*rds.DBClusterParameterGroupDetails, error) {
	all, marker, err := s.parametersOf(ctx, c, param.Cluster, wire.Or(in.DBClusterParameterGroupName, ""), listing{in.Source, in.Filters, in.MaxRecords, in.Marker})
	if err != nil {
		return nil, err
	}
	return &rds.DBClusterParameterGroupDetails{Parameters: all, Marker: marker}, nil
}

// describeEngineDefaultClusterParameters lists the parameters of a family.
func (s *Groups) describeEngineDefaultClusterParameters(ctx context.Context, c front.Call, in *rds.DescribeEngineDefaultClusterParametersMessage) (*rds.DescribeEngineDefaultClusterParametersResult, error) {
	out, err := s.engineDefaults(ctx, c, param.Cluster, wire.Or(in.DBParameterGroupFamily, ""), listing{nil, in.Filters, in.MaxRecords, in.Marker})
	if err != nil {
		return nil, err
	}
	return &rds.DescribeEngineDefaultClusterParametersResult{EngineDefaults: out}, nil
}

func clusterOut(g spec.ParameterGroup) rds.DBClusterParameterGroup {
	return rds.DBClusterParameterGroup{
		DBClusterParameterGroupName: wire.Some(g.Name), DBParameterGroupFamily: wire.Some(g.Family), Description: wire.Some(g.Description), DBClusterParameterGroupArn: wire.Some(g.ARN()),
	}
}
