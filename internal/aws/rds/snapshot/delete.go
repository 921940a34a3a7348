package snapshot

import (
	"context"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/state"
)

// deleted is shown of a snapshot that was just deleted.
const deleted = "deleted"

// deleteDBSnapshot deletes a snapshot that a user made.
func (s *service) deleteDBSnapshot(ctx context.Context, c front.Call, in *rds.DeleteDBSnapshotMessage) (*rds.DeleteDBSnapshotResult, error) {
	gone, err := s.remove(ctx, c, Instance, in.DBSnapshotIdentifier)
	if err != nil {
		return nil, err
	}
	out := s.instanceOut(gone)
	out.Status = wire.Some(deleted)
	return &rds.DeleteDBSnapshotResult{DBSnapshot: out}, nil
}

// deleteDBClusterSnapshot deletes a cluster snapshot that a user made.
func (s *service) deleteDBClusterSnapshot(ctx context.Context, c front.Call, in *rds.DeleteDBClusterSnapshotMessage) (*rds.DeleteDBClusterSnapshotResult, error) {
	gone, err := s.remove(ctx, c, Cluster, in.DBClusterSnapshotIdentifier)
	if err != nil {
		return nil, err
	}
	out := s.clusterOut(gone)
	out.Status = wire.Some(deleted)
	return &rds.DeleteDBClusterSnapshotResult{DBClusterSnapshot: out}, nil
}

// remove removes the record. What nobody needs in the repository then, package control/backup
// removes.
func (s *service) remove(ctx context.Context, c front.Call, k *Kind, identifier *string) (gone backup.Snapshot, err error) {
	err = s.State.Retry(ctx, func() error {
		r, err := k.Find(s.Looks, c.Scope, text(identifier))
		if err != nil {
			return err
		}
		gone = r.Value
		switch {
		case gone.Automated:
			return wire.NewError(k.badState, "The snapshot %s is automated and cannot be deleted: it goes with the backup retention period of its database.", gone.Name)
		case gone.State == backup.Creating:
			return wire.NewError(k.badState, "Cannot delete the snapshot because it is not currently in the available or failed state: %s is %s.", gone.Name, gone.State)
		}
		ops := []state.Op{state.Remove(r.Key, r.Revision)}
		if gone.State == backup.Copying {
			cancelled, err := k.cancel(c, gone)
			if err != nil {
				return err
			}
			ops = append(ops, cancelled...)
		}
		if k.deleted != "" {
			events, err := look.TellOf(c, k.about(gone), gone.Operation, look.Event(k.deleted))
			if err != nil {
				return err
			}
			ops = append(ops, events...)
		}
		return s.State.Commit(ctx, ops...)
	})
	return gone, err
}

// cancel ends the copying of a snapshot that is deleted.
func (k *Kind) cancel(c front.Call, gone backup.Snapshot) ([]state.Op, error) {
	from, name := look.Locate(gone.Scope, gone.CopyOf, k.ARN)
	number := "0190"
	if from.Region != gone.Region {
		number = "0061"
	}
	told, err := k.tell(c, gone, look.Event(number, name, from.Region))
	return append(told, state.Put(state.OperationCancel(gone.Operation), operation.Wish{By: c.Who.Key, At: c.Now})), err
}
