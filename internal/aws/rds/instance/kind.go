// Package instance is the part of RDS about DB instances: databases of their own, members of
// Aurora clusters, and read replicas. Its actions check a request, change the record of an
// instance, or show it with the truth about its processes. What an instance and a cluster are
// alike in is package database's.
package instance

import (
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
)

// Kind is how records of instances are found, changed and written.
var Kind = &database.Kind[spec.Instance]{
	Type: event.Instance, Find: (*look.Look).FindInstance, Key: look.InstanceKey,
	Common: func(i *spec.Instance) *spec.Common { return &i.Common },
	Status: (*look.Look).Status, May: may, Values: valuesOf, Possible: possible, CarryOut: carryOut, Finish: finish,
}

func may(l *look.Look, deed operation.Deed, i spec.Instance) error {
	return l.May(deed, i, wire.NewError(rds.ErrInvalidDBInstanceState, "Instance %s is not in available state.", i.Name))
}

type service struct {
	database.Service[spec.Instance, rds.DBInstance]
}

// Actions are those on instances.
func Actions(from *database.Source) map[string]front.Action {
	s := &service{database.Service[spec.Instance, rds.DBInstance]{Source: from, Kind: Kind, Show: instanceOut}}
	return map[string]front.Action{
		"AddRoleToDBInstance":             front.On(s.addRoleToDBInstance),
		"CreateDBInstance":                front.On(s.createDBInstance),
		"CreateDBInstanceReadReplica":     front.On(s.createDBInstanceReadReplica),
		"RestoreDBInstanceFromDBSnapshot": front.On(s.restoreDBInstanceFromDBSnapshot),
		"RestoreDBInstanceToPointInTime":  front.On(s.restoreDBInstanceToPointInTime),
		"DeleteDBInstance":                front.On(s.deleteDBInstance),
		"DescribeDBInstances":             front.On(s.describeDBInstances),
		"ModifyDBInstance":                front.On(s.modifyDBInstance),
		"PromoteReadReplica":              front.On(s.promoteReadReplica),
		"RebootDBInstance":                front.On(s.rebootDBInstance),
		"RemoveRoleFromDBInstance":        front.On(s.removeRoleFromDBInstance),
		"StartDBInstance":                 front.On(s.startDBInstance),
		"StopDBInstance":                  front.On(s.stopDBInstance),
	}
}

// Tagged is an instance, by its ARN, with its tags.
func Tagged(l *look.Look, scope spec.Scope, arn string) (look.Tagged, error) {
	gone := func(i spec.Instance) error {
		return wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s is being deleted.", i.Name)
	}
	return Kind.Tagged(l, scope, arn, gone)
}
