package instance

import (
	"context"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/automated"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/snapshot"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// deleteDBInstance marks an instance as being deleted, in whatever state it is: from the answer on
// its status is "deleting". With a final snapshot it can only be taken back until that is there.
func (s *service) deleteDBInstance(ctx context.Context, c front.Call, in *rds.DeleteDBInstanceMessage) (*rds.DeleteDBInstanceResult, error) {
	i, err := s.Change(ctx, c, in.DBInstanceIdentifier, func(l *database.Sight, i *spec.Instance) ([]state.Op, error) {
		if err := mayDelete(l, *i, in); err != nil {
			return nil, err
		}
		ops, err := l.LetGo(i.Common, in.FinalDBSnapshotIdentifier != nil)
		if err != nil {
			return nil, err
		}
		last, err := end(l, c, i, in)
		if err != nil {
			return nil, err
		}
		more, err := l.Leaves(*i)
		return append(append(ops, last...), more...), err
	})
	if err != nil {
		return nil, err
	}
	return &rds.DeleteDBInstanceResult{DBInstance: i}, nil
}

// end has an instance deleted, at once or after its final snapshot.
func end(l *database.Sight, c front.Call, i *spec.Instance, in *rds.DeleteDBInstanceMessage) ([]state.Op, error) {
	drop := wire.Or(in.DeleteAutomatedBackups, true)
	if in.FinalDBSnapshotIdentifier == nil {
		i.Deleting = true
		if drop || i.Cluster != "" {
			return nil, nil
		}
		return automated.Retain(l.Look, c, i, nil)
	}
	if err := snapshot.MayInstance(l.Look, *i); err != nil {
		return nil, err
	}
	made, ops, err := snapshot.Take(l.Look, c, snapshot.Wish{
		Name: *in.FinalDBSnapshotIdentifier, Parameter: "FinalDBSnapshotIdentifier", Operation: backup.Final, DropAutomated: drop, Instance: i,
	})
	i.Final = made.Name
	return ops, err
}

// mayDelete asks for the explicit word that the data may go, or for a final snapshot.
func mayDelete(l *database.Sight, i spec.Instance, in *rds.DeleteDBInstanceMessage) error {
	switch {
	case i.Deleting || l.Status(i) == plan.Deleting:
		return wire.NewError(rds.ErrInvalidDBInstanceState, "Instance %s is already being deleted.", i.Name)
	case i.DeletionProtection:
		return wire.NewError(api.ErrInvalidParameterCombination, "Cannot delete protected DB Instance, please disable deletion protection and try again.")
	case i.Auto:
		return wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s belongs to a Multi-AZ DB cluster: delete the cluster.", i.Name)
	case i.Cluster != "":
		cluster := l.Cluster[i.Cluster]
		if status := l.ClusterStatus(cluster); status == plan.StoppedWord || status == plan.Stopping {
			return look.ClusterState(cluster, status, plan.Available)
		}
	}
	if err := l.Excluded(operation.Delete, look.DatabaseOf(i), rds.ErrInvalidDBInstanceState); err != nil {
		return err
	}
	if i.Cluster == "" && !i.Follows() {
		return database.FinalSnapshot(wire.Or(in.SkipFinalSnapshot, false), in.FinalDBSnapshotIdentifier, "FinalDBSnapshotIdentifier")
	}
	// Nothing is lost: the cluster, or the source, has the data.
	if in.FinalDBSnapshotIdentifier != nil {
		return wire.NewError(api.ErrInvalidParameterCombination, "FinalDBSnapshotIdentifier can not be specified when deleting a cluster or replica instance.")
	}
	return nil
}
