package rds

import (
	"reflect"
	"slices"

	"howdah/api"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
)

// nameParameters name an instance or a cluster by its name alone, but for those actions
// that take its ARN too.
var nameParameters = []string{"DBInstanceIdentifier", "DBClusterIdentifier", "TargetDBInstanceIdentifier"}

// takeARNs are the actions of which nameParameters may be ARNs.
var takeARNs = []string{"rds:DescribeDBInstances", "rds:DescribeDBClusters"}

// newNames are the parameters of actions that give a name, by action: what such a name
// must be like is checked where the resource is made.
var newNames = map[string]string{
	"rds:CreateDBInstance": "DBInstanceIdentifier", "rds:CreateDBInstanceReadReplica": "DBInstanceIdentifier",
	"rds:CreateDBCluster": "DBClusterIdentifier", "rds:RestoreDBClusterFromSnapshot": "DBClusterIdentifier", "rds:RestoreDBClusterToPointInTime": "DBClusterIdentifier",
	"rds:RestoreDBInstanceFromDBSnapshot": "DBInstanceIdentifier", "rds:RestoreDBInstanceToPointInTime": "TargetDBInstanceIdentifier",
}

// checkNames refuses an ARN where a name belongs, in RDS's own words.
func checkNames(c front.Call, in any) error {
	if slices.Contains(takeARNs, c.Action) {
		return nil
	}
	var err error
	front.Each(in, func(name string, value reflect.Value) {
		text, ok := value.Interface().(*string)
		if ok && slices.Contains(nameParameters, name) && newNames[c.Action] != name && look.IsARN(*text) {
			err = wire.NewError(api.ErrInvalidParameterValue, "Invalid database identifier: %s", *text)
		}
	})
	return err
}
