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

// createDBParameterGroup makes an empty group.
func (s *Server) createDBParameterGroup(ctx context.Context, c front.Call, in *rds.CreateDBParameterGroupMessage) (*rds.CreateDBParameterGroupResult, error) {
	g, err := s.newGroup(ctx, c, spec.ParameterGroup{
		Kind: param.Instance, Name: wire.Or(in.DBParameterGroupName, ""), Family: wire.Or(in.DBParameterGroupFamily, ""),
		Description: wire.Or(in.Description, ""), Tags: look.TagsIn(in.Tags),
	}, "DBParameterGroupName")
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBParameterGroupResult{DBParameterGroup: wire.Some(groupOut(g))}, nil
}

// copyDBParameterGroup makes a group with the values of another one.
func (s *Server) copyDBParameterGroup(ctx context.Context, c front.Call, in *rds.CopyDBParameterGroupMessage) (*rds.CopyDBParameterGroupResult, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return nil, err
	}
	source, err := s.look(c.Account).findGroup(c.Scope, param.Instance, wire.Or(in.SourceDBParameterGroupIdentifier, ""))
	if err != nil {
		return nil, err
	}
	g, err := s.newGroup(ctx, c, spec.ParameterGroup{
		Kind: param.Instance, Name: wire.Or(in.TargetDBParameterGroupIdentifier, ""), Family: source.Value.Family,
		Description: wire.Or(in.TargetDBParameterGroupDescription, ""), Tags: look.TagsIn(in.Tags), Values: source.Value.Values, Serial: source.Value.Serial,
	}, "TargetDBParameterGroupIdentifier")
	if err != nil {
		return nil, err
	}
	return &rds.CopyDBParameterGroupResult{DBParameterGroup: wire.Some(groupOut(g))}, nil
}

// deleteDBParameterGroup deletes a group that nobody uses.
func (s *Server) deleteDBParameterGroup(ctx context.Context, c front.Call, in *rds.DeleteDBParameterGroupMessage) (*front.Void, error) {
	return nil, s.deleteGroup(ctx, c, param.Instance, wire.Or(in.DBParameterGroupName, ""))
}

// describeDBParameterGroups lists groups.
func (s *Server) describeDBParameterGroups(ctx context.Context, c front.Call, in *rds.DescribeDBParameterGroupsMessage) (*rds.DBParameterGroupsMessage, error) {
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
func (s *Server) modifyDBParameterGroup(ctx context.Context, c front.Call, in *rds.ModifyDBParameterGroupMessage) (*rds.DBParameterGroupNameMessage, error) {
	if err := checkCount(in.Parameters); err != nil {
		return nil, err
	}
	name, err := s.changeGroup(ctx, c, param.Instance, wire.Or(in.DBParameterGroupName, ""), func(e *groupEdit) error {
		return e.modify(ctx, in.Parameters)
	})
	if err != nil {
		return nil, err
	}
	return &rds.DBParameterGroupNameMessage{DBParameterGroupName: wire.Some(name)}, nil
}

// resetDBParameterGroup sets values back to their defaults.
func (s *Server) resetDBParameterGroup(ctx context.Context, c front.Call, in *rds.ResetDBParameterGroupMessage) (*rds.DBParameterGroupNameMessage, error) {
	if err := checkReset(wire.Or(in.ResetAllParameters, false), in.Parameters); err != nil {
		return nil, err
	}
	name, err := s.changeGroup(ctx, c, param.Instance, wire.Or(in.DBParameterGroupName, ""), func(e *groupEdit) error {
		return e.reset(in.Parameters, wire.Or(in.ResetAllParameters, false))
	})
	if err != nil {
		return nil, err
	}
	return &rds.DBParameterGroupNameMessage{DBParameterGroupName: wire.Some(name)}, nil
}

// describeDBParameters lists the parameters of a group.
func (s *Server) describeDBParameters(ctx context.Context, c front.Call, in *rds.DescribeDBParametersMessage) (*rds.DBParameterGroupDetails, error) {
	all, marker, err := s.groupParameters(ctx, c, param.Instance, wire.Or(in.DBParameterGroupName, ""), listing{in.Source, in.Filters, in.MaxRecords, in.Marker})
	if err != nil {
		return nil, err
	}
	return &rds.DBParameterGroupDetails{Parameters: all, Marker: marker}, nil
}

// describeEngineDefaultParameters lists the parameters of a family.
func (s *Server) describeEngineDefaultParameters(ctx context.Context, c front.Call, in *rds.DescribeEngineDefaultParametersMessage) (*rds.DescribeEngineDefaultParametersResult, error) {
	out, err := s.engineDefaults(ctx, c, param.Instance, wire.Or(in.DBParameterGroupFamily, ""), listing{nil, in.Filters, in.MaxRecords, in.Marker})
	if err != nil {
		return nil, err
	}
	return &rds.DescribeEngineDefaultParametersResult{EngineDefaults: out}, nil
}

func groupOut(g spec.ParameterGroup) rds.DBParameterGroup {
	return rds.DBParameterGroup{
		DBParameterGroupName: wire.Some(g.Name), DBParameterGroupFamily: wire.Some(g.Family), Description: wire.Some(g.Description), DBParameterGroupArn: wire.Some(g.ARN()),
	}
}
