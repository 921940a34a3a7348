// Package instance is the part of RDS about DB instances: databases of their own, members of
// Aurora clusters, and read replicas. Its actions check a request, change the record of an
// instance, or show it with the truth about its processes. What an instance and a cluster are
// alike in is package database's.
package instance

import (
	"context"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
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

type service struct{ *database.Source }

// Actions are those on instances.
func Actions(from *database.Source) map[string]front.Action {
	s := &service{from}
	return map[string]front.Action{
		"AddRoleToDBInstance":         front.On(s.addRoleToDBInstance),
		"CreateDBInstance":            front.On(s.createDBInstance),
		"CreateDBInstanceReadReplica": front.On(s.createDBInstanceReadReplica),
		"DeleteDBInstance":            front.On(s.deleteDBInstance),
		"DescribeDBInstances":         front.On(s.describeDBInstances),
		"ModifyDBInstance":            front.On(s.modifyDBInstance),
		"PromoteReadReplica":          front.On(s.promoteReadReplica),
		"RebootDBInstance":            front.On(s.rebootDBInstance),
		"RemoveRoleFromDBInstance":    front.On(s.removeRoleFromDBInstance),
		"StartDBInstance":             front.On(s.startDBInstance),
		"StopDBInstance":              front.On(s.stopDBInstance),
	}
}

// change alters one instance's record, and answers it as the API shows it afterwards.
func (s *service) change(ctx context.Context, c front.Call, identifier *string, change func(*database.Sight, *spec.Instance) error) (*rds.DBInstance, error) {
	i, err := Kind.Change(ctx, s.Source, c, wire.Or(identifier, ""), func(l *database.Sight, i *spec.Instance) ([]state.Op, error) {
		return nil, change(l, i)
	})
	return s.out(c, i, err)
}

// out is an instance that was made or changed, as the API shows it.
func (s *service) out(c front.Call, i spec.Instance, err error) (*rds.DBInstance, error) {
	if err != nil {
		return nil, err
	}
	return instanceOut(s.Of(c.Account), i), nil
}

// Tagged is an instance, by its ARN, with its tags.
func Tagged(l *look.Look, scope spec.Scope, arn string) (look.Tagged, error) {
	gone := func(i spec.Instance) error {
		return wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s is being deleted.", i.Name)
	}
	return Kind.Tagged(l, scope, arn, gone)
}
