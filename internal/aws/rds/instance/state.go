package instance

import (
	"context"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/group"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/snapshot"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// rebootDBInstance restarts PostgreSQL, or with ForceFailover lets the standby
// take over.
func (s *service) rebootDBInstance(ctx context.Context, c front.Call, in *rds.RebootDBInstanceMessage) (*rds.RebootDBInstanceResult, error) {
	i, err := s.Change(ctx, c, in.DBInstanceIdentifier, func(l *database.Sight, i *spec.Instance) ([]state.Op, error) {
		busy := wire.NewError(rds.ErrInvalidDBInstanceState, "Instance cannot currently reboot due to an in-progress management operation.")
		deed, force := operation.Restart, wire.Or(in.ForceFailover, false)
		if force {
			deed = operation.Failover
		}
		if err := l.May(deed, *i, busy); err != nil {
			return nil, err
		}
		if !force {
			group.Take(l.Look, i)
			i.Reboot++
			return nil, nil
		}
		if !i.MultiAZ || i.Cluster != "" {
			return nil, wire.NewError(api.ErrInvalidParameterCombination, "Cannot force a failover of the DB instance %s: it is not a Multi-AZ deployment.", i.Name)
		}
		if len(l.Candidates(l.InstanceFacts(*i))) == 0 {
			return nil, wire.NewError(rds.ErrInvalidDBInstanceState, "Cannot force a failover of the DB instance %s: its standby is not in sync.", i.Name)
		}
		group.Take(l.Look, i)
		i.Failover++
		i.FailoverTarget = ""
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	return &rds.RebootDBInstanceResult{DBInstance: i}, nil
}

// stopDBInstance ends an instance's processes; its data and its endpoint stay. With a snapshot it
// ends them when that is there (package upkeep).
func (s *service) stopDBInstance(ctx context.Context, c front.Call, in *rds.StopDBInstanceMessage) (*rds.StopDBInstanceResult, error) {
	i, err := s.Change(ctx, c, in.DBInstanceIdentifier, func(l *database.Sight, i *spec.Instance) ([]state.Op, error) {
		if err := alone(l, *i); err != nil {
			return nil, err
		}
		if err := l.May(operation.Restart, *i, wire.NewError(rds.ErrInvalidDBInstanceState, "Instance %s is not in available state.", i.Name)); err != nil {
			return nil, err
		}
		if in.DBSnapshotIdentifier == nil {
			Stop(i)
			return nil, nil
		}
		made, ops, err := snapshot.Take(l.Look, c, snapshot.Wish{
			Name: *in.DBSnapshotIdentifier, Parameter: "DBSnapshotIdentifier", Operation: backup.Take, Instance: i,
		})
		i.StopAfter = made.Name
		return ops, err
	})
	if err != nil {
		return nil, err
	}
	return &rds.StopDBInstanceResult{DBInstance: i}, nil
}

// Stop has an instance stopped.
func Stop(i *spec.Instance) {
	i.Stopped, i.StopAfter = true, ""
	look.Begin(&i.Common, plan.Stopping, nil, "0087")
}

// startDBInstance starts a stopped instance.
func (s *service) startDBInstance(ctx context.Context, c front.Call, in *rds.StartDBInstanceMessage) (*rds.StartDBInstanceResult, error) {
	i, err := s.Change(ctx, c, in.DBInstanceIdentifier, func(l *database.Sight, i *spec.Instance) ([]state.Op, error) {
		if err := alone(l, *i); err != nil {
			return nil, err
		}
		err := wire.NewError(rds.ErrInvalidDBInstanceState, "Instance %s is not stopped, it cannot be started.", i.Name)
		if err := l.May(operation.Restart, *i, err, plan.StoppedWord); err != nil {
			return nil, err
		}
		group.Take(l.Look, i)
		i.Stopped = false
		look.Begin(&i.Common, plan.Starting, nil, "0088")
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	return &rds.StartDBInstanceResult{DBInstance: i}, nil
}

// alone: as on RDS, only an instance that neither is in a cluster nor follows, or
// is followed by, another one can be stopped and started.
func alone(l *database.Sight, i spec.Instance) error {
	switch {
	case i.Cluster != "":
		return wire.NewError(rds.ErrInvalidDBClusterState, "The DB instance %s is a member of a DB cluster: stop and start the cluster.", i.Name)
	case i.Follows() && !i.Stopped:
		return wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s is a read replica: it cannot be stopped.", i.Name)
	case len(l.Followers[i.ResourceID]) > 0 && !i.Stopped:
		return wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s has read replicas: it cannot be stopped.", i.Name)
	}
	return nil
}
