package instance

import (
	"context"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// deleteDBInstance marks an instance as being deleted, in whatever state it is:
// from the answer on its status is "deleting", and it cannot be taken back.
func (s *service) deleteDBInstance(ctx context.Context, c front.Call, in *rds.DeleteDBInstanceMessage) (*rds.DeleteDBInstanceResult, error) {
	i, err := s.Change(ctx, c, in.DBInstanceIdentifier, func(l *database.Sight, i *spec.Instance) ([]state.Op, error) {
		if err := mayDelete(l, *i, in); err != nil {
			return nil, err
		}
		ops, err := l.LetGo(i.Common)
		if err != nil {
			return nil, err
		}
		more, err := l.Leaves(*i)
		i.Deleting = true
		return append(ops, more...), err
	})
	if err != nil {
		return nil, err
	}
	return &rds.DeleteDBInstanceResult{DBInstance: i}, nil
}

// mayDelete asks for the explicit word that the data may go: in this version that
// is SkipFinalSnapshot, since there are no snapshots yet.
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
