package wire_test

import (
	"errors"
	"strings"
	"testing"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/wire"
)

func TestValidate(t *testing.T) {
	secret := &rds.CreateBlueGreenDeploymentRequest{BlueGreenDeploymentName: new("bg"), Source: new("arn:aws:rds:us-east-1:123456789012:db:a")}
	group := func(name string) *rds.CreateBlueGreenDeploymentRequest {
		in := *secret
		in.TargetDBParameterGroupName = &name
		return &in
	}
	tests := []struct {
		name          string
		in            any
		code, message string // empty if the input is valid
	}{
		{"valid", &rds.CreateDBInstanceMessage{DBInstanceIdentifier: new("a"), DBInstanceClass: new("db.t3.micro"), Engine: new("postgres")}, "", ""},
		{
			"required", &rds.CreateDBInstanceMessage{DBInstanceIdentifier: new("a"), DBInstanceClass: new("db.t3.micro")},
			api.ErrMissingParameter, "The request must contain the parameter Engine.",
		},
		{
			"required in the second of a list", &rds.DescribeDBInstancesMessage{Filters: []rds.Filter{{Name: new("a"), Values: []string{}}, {Values: []string{"b"}}}},
			api.ErrMissingParameter, "The request must contain the parameter Filters.Filter.2.Name.",
		},
		{"required list", &rds.AddTagsToResourceMessage{ResourceName: new("a")}, api.ErrMissingParameter, "The request must contain the parameter Tags."},
		{"required list given and empty", &rds.AddTagsToResourceMessage{ResourceName: new("a"), Tags: []rds.Tag{}}, "", ""},
		{
			"enum", &rds.DescribeEventsMessage{SourceType: new("db-table")}, api.ErrInvalidParameterValue,
			"The parameter SourceType must be one of db-instance, db-parameter-group, db-security-group, db-snapshot, db-cluster, db-cluster-snapshot, custom-engine-version, db-proxy, blue-green-deployment, db-shard-group, zero-etl, not 'db-table'.",
		},
		{
			"enum in a list", &rds.ModifyDBParameterGroupMessage{DBParameterGroupName: new("a"), Parameters: []rds.Parameter{{}, {}, {ApplyMethod: new("now")}}},
			api.ErrInvalidParameterValue, "The parameter Parameters.Parameter.3.ApplyMethod must be one of immediate, pending-reboot, not 'now'.",
		},
		{"least number", &rds.DescribeDBShardGroupsMessage{MaxRecords: new(int32(20))}, "", ""},
		{"below the least number", &rds.DescribeDBShardGroupsMessage{MaxRecords: new(int32(19))}, api.ErrInvalidParameterValue, "The parameter MaxRecords must be 20 to 100, not 19."},
		{"above the largest number", &rds.DescribeDBShardGroupsMessage{MaxRecords: new(int32(101))}, api.ErrInvalidParameterValue, "The parameter MaxRecords must be 20 to 100, not 101."},
		{
			"least number alone", &rds.SwitchoverBlueGreenDeploymentRequest{BlueGreenDeploymentIdentifier: new("a"), SwitchoverTimeout: new(int32(29))},
			api.ErrInvalidParameterValue, "The parameter SwitchoverTimeout must be at least 30, not 29.",
		},
		{"characters, not bytes", &rds.DescribeDBMajorEngineVersionsRequest{Engine: new(strings.Repeat("é", 50))}, "", ""},
		{"too many characters", &rds.DescribeDBMajorEngineVersionsRequest{Engine: new(strings.Repeat("é", 51))}, api.ErrInvalidParameterValue, "The parameter Engine must have 1 to 50 characters."},
		{"too few characters", &rds.DescribeDBMajorEngineVersionsRequest{Engine: new("")}, api.ErrInvalidParameterValue, "The parameter Engine must have 1 to 50 characters."},
		{
			"too many elements", &rds.CreateDBClusterMessage{DBClusterIdentifier: new("a"), Engine: new("b"), AssociatedRoles: make([]rds.DBClusterAssociatedRole, 16)},
			api.ErrInvalidParameterValue, "The parameter AssociatedRoles must have 0 to 15 elements.",
		},
		{
			"pattern of the whole text", &rds.DescribeDBShardGroupsMessage{DBShardGroupIdentifier: new("a--b")}, api.ErrInvalidParameterValue,
			"The parameter DBShardGroupIdentifier must match the pattern [a-zA-Z](?:-?[a-zA-Z0-9]+)*, not 'a--b'.",
		},
		{
			"pattern and a line feed at the end", &rds.DescribeDBShardGroupsMessage{DBShardGroupIdentifier: new("a\n")}, api.ErrInvalidParameterValue,
			"The parameter DBShardGroupIdentifier must match the pattern [a-zA-Z](?:-?[a-zA-Z0-9]+)*, not 'a\n'.",
		},
		{"look-ahead, fine", group("default.postgres-15"), "", ""},
		{"look-ahead, hyphens", group("name--1"), api.ErrInvalidParameterValue, "The parameter TargetDBParameterGroupName must not contain '--', not 'name--1'."},
		{"look-ahead, dots", group("default..a"), api.ErrInvalidParameterValue, "The parameter TargetDBParameterGroupName must not contain '..', not 'default..a'."},
		{"no input", nil, "", "not a shape"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := wire.Validate(tt.in)
			var e *wire.Error
			switch {
			case tt.message == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.code != "" && (!errors.As(err, &e) || e.Code != tt.code || e.Message != tt.message || e.Status != 400):
				t.Errorf("got  %v\nwant %s: %s", err, tt.code, tt.message)
			case tt.code == "" && tt.message != "" && !errors.Is(err, wire.ErrShape):
				t.Errorf("got %v, want ErrShape", err)
			}
		})
	}
}

// A value that breaks its limits is not shown if the model calls it sensitive.
func TestSensitiveValuesAreNotShown(t *testing.T) {
	type login struct {
		Password *int32 `wire:"Password,sensitive"`
		Name     *int32 `wire:"Name"`
	}
	if err := decode("Password=hunter2", &login{}); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	if err := decode("Name=hunter2", &login{}); err == nil || !strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}
