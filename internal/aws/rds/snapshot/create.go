package snapshot

import (
	"context"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// createDBSnapshot begins a snapshot of an instance.
func (s *service) createDBSnapshot(ctx context.Context, c front.Call, in *rds.CreateDBSnapshotMessage) (*rds.CreateDBSnapshotResult, error) {
	made, err := s.create(ctx, c, func(l *database.Sight) (Wish, state.Op, error) {
		r, err := l.FindInstance(c.Scope, text(in.DBInstanceIdentifier))
		if err != nil {
			return Wish{}, state.Op{}, err
		}
		i := r.Value
		if err := MayInstance(l.Look, i); err != nil {
			return Wish{}, state.Op{}, err
		}
		return Wish{Name: text(in.DBSnapshotIdentifier), Instance: &i}, state.Swap(r.Key, r.Revision, r.Value), nil
	}, in.Tags)
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBSnapshotResult{DBSnapshot: s.instanceOut(made)}, nil
}

// createDBClusterSnapshot begins a snapshot of a cluster.
func (s *service) createDBClusterSnapshot(ctx context.Context, c front.Call, in *rds.CreateDBClusterSnapshotMessage) (*rds.CreateDBClusterSnapshotResult, error) {
	made, err := s.create(ctx, c, func(l *database.Sight) (Wish, state.Op, error) {
		r, err := l.FindCluster(c.Scope, text(in.DBClusterIdentifier))
		if err != nil {
			return Wish{}, state.Op{}, err
		}
		cluster := r.Value
		if err := MayCluster(l.Look, cluster); err != nil {
			return Wish{}, state.Op{}, err
		}
		return Wish{Name: text(in.DBClusterSnapshotIdentifier), Cluster: &cluster}, state.Swap(r.Key, r.Revision, r.Value), nil
	}, in.Tags)
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBClusterSnapshotResult{DBClusterSnapshot: s.clusterOut(made)}, nil
}

// create begins the snapshot that wish answers. The record of the database is written as it is: whoever
// was about to delete the database, and knew of no snapshot that is being made, looks again.
func (s *service) create(ctx context.Context, c front.Call, wish func(*database.Sight) (Wish, state.Op, error), tags []rds.Tag) (made backup.Snapshot, err error) {
	err = s.State.Retry(ctx, func() error {
		l := s.Of(c.Account)
		w, written, err := wish(l)
		if err != nil {
			return err
		}
		w.Tags, w.Operation, w.Parameter = look.TagsIn(tags), backup.Take, w.kind().parameter
		v, ops, err := Take(l.Look, c, w)
		if err != nil {
			return err
		}
		made = v
		return s.State.Commit(ctx, append(ops, written)...)
	})
	return made, err
}

// MayInstance refuses a snapshot of an instance that cannot have one now.
func MayInstance(l *look.Look, i spec.Instance) error {
	switch status := l.Status(i); {
	case i.Cluster != "":
		return wire.NewError(api.ErrInvalidParameterValue,
			"The specified instance is a member of a cluster and a snapshot cannot be created directly. Please use the CreateDBClusterSnapshot API instead.")
	case i.Follows():
		return wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s is a read replica: make a snapshot of its source, which has the same data.", i.Name)
	case status != plan.Available && status != plan.StorageFull:
		return wire.NewError(rds.ErrInvalidDBInstanceState, "Cannot create a snapshot because the database instance %s is not currently in the available state: it is %s.", i.Name, status)
	}
	return nil
}

// MayCluster refuses a snapshot of a cluster that cannot have one now.
func MayCluster(l *look.Look, c spec.Cluster) error {
	switch status := l.ClusterStatus(c); {
	case status != plan.Available && status != plan.StorageFull:
		return look.ClusterState(c, status, plan.Available)
	case len(l.Members[c.ResourceID]) == 0:
		return wire.NewError(rds.ErrInvalidDBClusterState, "The DB cluster %s has no DB instance that could back it up: add one first.", c.Name)
	}
	return nil
}
