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

// createDBParameterGroup makes an empty group.
func (s *Groups) createDBParameterGroup(ctx context.Context, c front.Call, in *rds.CreateDBParameterGroupMessage) (*rds.CreateDBParameterGroupResult, error) {
	g, err := s.add(ctx, c, spec.ParameterGroup{
		Kind: param.Instance, Name: wire.Or(in.DBParameterGroupName, ""), Family: wire.Or(in.DBParameterGroupFamily, ""),
		Description: wire.Or(in.Description, ""), Tags: look.TagsIn(in.Tags),
	}, "DBParameterGroupName")
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBParameterGroupResult{DBParameterGroup: wire.Some(instanceOut(g))}, nil
}

// copyDBParameterGroup makes a group with the values of another one.
func (s *Groups) copyDBParameterGroup(ctx context.Context, c front.Call, in *rds.CopyDBParameterGroupMessage) (*rds.CopyDBParameterGroupResult, error) {
	g, err := s.copyOf(ctx, c, wire.Or(in.SourceDBParameterGroupIdentifier, ""), spec.ParameterGroup{
		Kind: param.Instance, Name: wire.Or(in.TargetDBParameterGroupIdentifier, ""),
		Description: wire.Or(in.TargetDBParameterGroupDescription, ""), Tags: look.TagsIn(in.Tags),
	}, "TargetDBParameterGroupIdentifier")
	if err != nil {
		return nil, err
	}
	return &rds.CopyDBParameterGroupResult{DBParameterGroup: wire.Some(instanceOut(g))}, nil
}

// deleteDBParameterGroup deletes a group that nobody uses.
func (s *Groups) deleteDBParameterGroup(ctx context.Context, c front.Call, in *rds.DeleteDBParameterGroupMessage) (*front.Void, error) {
	return nil, s.remove(ctx, c, param.Instance, wire.Or(in.DBParameterGroupName, ""))
}

// describeDBParameterGroups lists groups.
func (s *Groups) describeDBParameterGroups(ctx context.Context, c front.Call, in *rds.DescribeDBParameterGroupsMessage) (*rds.DBParameterGroupsMessage, error) {
	all, marker, err := s.pageOf(ctx, c, param.Instance, in.DBParameterGroupName, in.Filters, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.DBParameterGroupsMessage{Marker: marker, DBParameterGroups: []rds.DBParameterGroup{}}
	for _, g := range all {
		out.DBParameterGroups = append(out.DBParameterGroups, instanceOut(g))
	}
	return out, nil
}

// modifyDBParameterGroup sets values.
func (s *Groups) modifyDBParameterGroup(ctx context.Context, c front.Call, in *rds.ModifyDBParameterGroupMessage) (*rds.DBParameterGroupNameMessage, error) {
	name, err := s.modify(ctx, c, param.Instance, in.DBParameterGroupName, in.Parameters)
	if err != nil {
		return nil, err
	}
	return &rds.DBParameterGroupNameMessage{DBParameterGroupName: name}, nil
}

// resetDBParameterGroup sets values back to their defaults.
func (s *Groups) resetDBParameterGroup(ctx context.Context, c front.Call, in *rds.ResetDBParameterGroupMessage) (*rds.DBParameterGroupNameMessage, error) {
	name, err := s.reset(ctx, c, param.Instance, in.DBParameterGroupName, in.ResetAllParameters, in.Parameters)
	if err != nil {
		return nil, err
	}
	return &rds.DBParameterGroupNameMessage{DBParameterGroupName: name}, nil
}

// describeDBParameters lists the parameters of a group.
func (s *Groups) describeDBParameters(ctx context.Context, c front.Call, in *rds.DescribeDBParametersMessage) (*rds.DBParameterGroupDetails, error) {
	all, marker, err := s.parametersOf(ctx, c, param.Instance, wire.Or(in.DBParameterGroupName, ""), listing{in.Source, in.Filters, in.MaxRecords, in.Marker})
	if err != nil {
		return nil, err
	}
	return &rds.DBParameterGroupDetails{Parameters: all, Marker: marker}, nil
}

// describeEngineDefaultParameters lists the parameters of a family.
func (s *Groups) describeEngineDefaultParameters(ctx context.Context, c front.Call, in *rds.DescribeEngineDefaultParametersMessage) (*rds.DescribeEngineDefaultParametersResult, error) {
	out, err := s.engineDefaults(ctx, c, param.Instance, wire.Or(in.DBParameterGroupFamily, ""), listing{nil, in.Filters, in.MaxRecords, in.Marker})
	if err != nil {
		return nil, err
	}
	return &rds.DescribeEngineDefaultParametersResult{EngineDefaults: out}, nil
}

func instanceOut(g spec.ParameterGroup) rds.DBParameterGroup {
	return rds.DBParameterGroup{
		DBParameterGroupName: wire.Some(g.Name), DBParameterGroupFamily: wire.Some(g.Family), Description: wire.Some(g.Description), DBParameterGroupArn: wire.Some(g.ARN()),
	}
}
