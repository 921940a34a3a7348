package server

import (
	"context"

	"howdah/api/rds"
	"howdah/internal/model/param"
	"howdah/internal/model/spec"
)

// createDBParameterGroup makes an empty group.
func (s *Server) createDBParameterGroup(ctx context.Context, c call, in *rds.CreateDBParameterGroupMessage) (*rds.CreateDBParameterGroupResult, error) {
	g, err := s.newGroup(ctx, c, spec.ParameterGroup{
		Kind: param.Instance, Name: or(in.DBParameterGroupName, ""), Family: or(in.DBParameterGroupFamily, ""),
		Description: or(in.Description, ""), Tags: tagsIn(in.Tags),
	}, "DBParameterGroupName")
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBParameterGroupResult{DBParameterGroup: some(groupOut(g))}, nil
}

// copyDBParameterGroup makes a group with the values of another one.
func (s *Server) copyDBParameterGroup(ctx context.Context, c call, in *rds.CopyDBParameterGroupMessage) (*rds.CopyDBParameterGroupResult, error) {
	if err := s.fresh(ctx); err != nil {
		return nil, err
	}
	source, err := s.look(c.Account).findGroup(c.Scope, param.Instance, or(in.SourceDBParameterGroupIdentifier, ""))
	if err != nil {
		return nil, err
	}
	g, err := s.newGroup(ctx, c, spec.ParameterGroup{
		Kind: param.Instance, Name: or(in.TargetDBParameterGroupIdentifier, ""), Family: source.Value.Family,
		Description: or(in.TargetDBParameterGroupDescription, ""), Tags: tagsIn(in.Tags), Values: source.Value.Values, Serial: source.Value.Serial,
	}, "TargetDBParameterGroupIdentifier")
	if err != nil {
		return nil, err
	}
	return &rds.CopyDBParameterGroupResult{DBParameterGroup: some(groupOut(g))}, nil
}

// deleteDBParameterGroup deletes a group that nobody uses.
func (s *Server) deleteDBParameterGroup(ctx context.Context, c call, in *rds.DeleteDBParameterGroupMessage) (*void, error) {
	return nil, s.deleteGroup(ctx, c, param.Instance, or(in.DBParameterGroupName, ""))
}

// describeDBParameterGroups lists groups.
func (s *Server) describeDBParameterGroups(ctx context.Context, c call, in *rds.DescribeDBParameterGroupsMessage) (*rds.DBParameterGroupsMessage, error) {
	all, marker, err := s.groupPage(ctx, c, param.Instance, in.DBParameterGroupName, in.Filters, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.DBParameterGroupsMessage{Marker: marker, DBParameterGroups: []rds.DBParameterGroup{}}
	for _, g := range all {
		out.DBParameterGroups = append(out.DBParameterGroups, groupOut(g))
	}
	return out, nil
}

// modifyDBParameterGroup sets values.
func (s *Server) modifyDBParameterGroup(ctx context.Context, c call, in *rds.ModifyDBParameterGroupMessage) (*rds.DBParameterGroupNameMessage, error) {
	if err := checkCount(in.Parameters); err != nil {
		return nil, err
	}
	name, err := s.changeGroup(ctx, c, param.Instance, or(in.DBParameterGroupName, ""), func(e *groupEdit) error {
		return e.modify(ctx, in.Parameters)
	})
	if err != nil {
		return nil, err
	}
	return &rds.DBParameterGroupNameMessage{DBParameterGroupName: some(name)}, nil
}

// resetDBParameterGroup sets values back to their defaults.
func (s *Server) resetDBParameterGroup(ctx context.Context, c call, in *rds.ResetDBParameterGroupMessage) (*rds.DBParameterGroupNameMessage, error) {
	if err := checkReset(or(in.ResetAllParameters, false), in.Parameters); err != nil {
		return nil, err
	}
	name, err := s.changeGroup(ctx, c, param.Instance, or(in.DBParameterGroupName, ""), func(e *groupEdit) error {
		return e.reset(in.Parameters, or(in.ResetAllParameters, false))
	})
	if err != nil {
		return nil, err
	}
	return &rds.DBParameterGroupNameMessage{DBParameterGroupName: some(name)}, nil
}

// describeDBParameters lists the parameters of a group.
func (s *Server) describeDBParameters(ctx context.Context, c call, in *rds.DescribeDBParametersMessage) (*rds.DBParameterGroupDetails, error) {
	all, marker, err := s.groupParameters(ctx, c, param.Instance, or(in.DBParameterGroupName, ""), listing{in.Source, in.Filters, in.MaxRecords, in.Marker})
	if err != nil {
		return nil, err
	}
	return &rds.DBParameterGroupDetails{Parameters: all, Marker: marker}, nil
}

// describeEngineDefaultParameters lists the parameters of a family.
func (s *Server) describeEngineDefaultParameters(ctx context.Context, c call, in *rds.DescribeEngineDefaultParametersMessage) (*rds.DescribeEngineDefaultParametersResult, error) {
	out, err := s.engineDefaults(ctx, c, param.Instance, or(in.DBParameterGroupFamily, ""), listing{nil, in.Filters, in.MaxRecords, in.Marker})
	if err != nil {
		return nil, err
	}
	return &rds.DescribeEngineDefaultParametersResult{EngineDefaults: out}, nil
}

func groupOut(g spec.ParameterGroup) rds.DBParameterGroup {
	return rds.DBParameterGroup{
		DBParameterGroupName: some(g.Name), DBParameterGroupFamily: some(g.Family), Description: some(g.Description), DBParameterGroupArn: some(g.ARN()),
	}
}
