package cluster

import (
	"context"
	"slices"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/automated"
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

// deleteDBCluster marks a cluster as being deleted. Its instances must be deleted
// before, but for those that a Multi-AZ DB cluster made itself. Custom endpoints
// go with the cluster: at once, or after its final snapshot.
func (s *service) deleteDBCluster(ctx context.Context, c front.Call, in *rds.DeleteDBClusterMessage) (*rds.DeleteDBClusterResult, error) {
	cluster, err := s.Change(ctx, c, in.DBClusterIdentifier, func(l *database.Sight, cluster *spec.Cluster) ([]state.Op, error) {
		if err := mayDelete(l, *cluster, in); err != nil {
			return nil, err
		}
		ops, err := l.LetGo(cluster.Common, in.FinalDBSnapshotIdentifier != nil)
		if err != nil {
			return nil, err
		}
		if in.FinalDBSnapshotIdentifier == nil {
			ops = append(ops, removeEndpoints(l, *cluster)...)
		}
		last, err := end(l, c, cluster, in)
		return append(ops, last...), err
	})
	if err != nil {
		return nil, err
	}
	return &rds.DeleteDBClusterResult{DBCluster: cluster}, nil
}

// removeEndpoints removes the custom endpoints of a cluster. Those of one that has a final snapshot
// made go with its record.
func removeEndpoints(l *database.Sight, c spec.Cluster) (ops []state.Op) {
	for _, e := range l.EndpointsOf(c.ResourceID) {
		ops = append(ops, state.Remove(e.Key, e.Revision), state.Delete(state.Address(e.Value.Address)))
		for _, a := range e.Value.Former {
			ops = append(ops, state.Delete(state.Address(a)))
		}
	}
	return ops
}

// end has a cluster deleted, at once or after its final snapshot.
func end(l *database.Sight, c front.Call, cluster *spec.Cluster, in *rds.DeleteDBClusterMessage) ([]state.Op, error) {
	drop := wire.Or(in.DeleteAutomatedBackups, true)
	if in.FinalDBSnapshotIdentifier == nil {
		cluster.Deleting = true
		if drop {
			return nil, nil
		}
		return automated.Retain(l.Look, c, nil, cluster)
	}
	if err := snapshot.MayCluster(l.Look, *cluster); err != nil {
		return nil, err
	}
	made, ops, err := snapshot.Take(l.Look, c, snapshot.Wish{
		Name: *in.FinalDBSnapshotIdentifier, Parameter: "FinalDBSnapshotIdentifier", Operation: backup.Final, DropAutomated: drop, Cluster: cluster,
	})
	cluster.Final = made.Name
	return ops, err
}

func mayDelete(l *database.Sight, c spec.Cluster, in *rds.DeleteDBClusterMessage) error {
	status := l.ClusterStatus(c)
	switch {
	case c.Going():
		return look.ClusterState(c, status, plan.Available)
	case c.DeletionProtection:
		return wire.NewError(api.ErrInvalidParameterCombination, "Cannot delete protected Cluster, please disable deletion protection and try again.")
	case status == plan.StoppedWord || status == plan.Stopping:
		return look.ClusterState(c, status, plan.Available)
	}
	for _, i := range l.InstancesOf(c.ResourceID) {
		if !i.Deleting && !i.Auto {
			return wire.NewError(rds.ErrInvalidDBClusterState, "Cluster cannot be deleted, it still contains DB instances in non-deleting state.")
		}
	}
	if err := l.Excluded(operation.Delete, c.ResourceID, rds.ErrInvalidDBClusterState); err != nil {
		return err
	}
	return database.FinalSnapshot(wire.Or(in.SkipFinalSnapshot, false), in.FinalDBSnapshotIdentifier, "FinalDBSnapshotIdentifier")
}

// failoverDBCluster makes a reader the writer: the one that was asked for, or the
// first in the order of promotion.
func (s *service) failoverDBCluster(ctx context.Context, c front.Call, in *rds.FailoverDBClusterMessage) (*rds.FailoverDBClusterResult, error) {
	cluster, err := s.Change(ctx, c, in.DBClusterIdentifier, func(l *database.Sight, cluster *spec.Cluster) ([]state.Op, error) {
		if err := l.MayCluster(operation.Failover, *cluster); err != nil {
			return nil, err
		}
		facts := l.FactsOfCluster(*cluster)
		target := ""
		if in.TargetDBInstanceIdentifier != nil {
			i, err := targetOf(l, *cluster, facts, *in.TargetDBInstanceIdentifier)
			if err != nil {
				return nil, err
			}
			target = i.ResourceID
		}
		if len(promotable(l, facts, target)) == 0 {
			return nil, wire.NewError(rds.ErrInvalidDBClusterState, "The DB cluster %s has no reader that could take over now.", cluster.Name)
		}
		cluster.Failover++
		cluster.FailoverTarget = target
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	return &rds.FailoverDBClusterResult{DBCluster: cluster}, nil
}

// targetOf is the reader that shall become the writer.
func targetOf(l *database.Sight, c spec.Cluster, facts plan.Facts, identifier string) (spec.Instance, error) {
	record, err := l.FindInstance(c.Scope, identifier)
	if err != nil {
		return spec.Instance{}, wire.NewError(rds.ErrDBInstanceNotFound, "DBInstance %s not found: the TargetDBInstanceIdentifier is that of an instance of the DB cluster.", identifier)
	}
	i := record.Value
	_, ready, _ := facts.Member(i.ResourceID)
	switch {
	case i.Cluster != c.ResourceID:
		return i, wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s is not in the DB cluster %s.", i.Name, c.Name)
	case i.ResourceID == writer(l, c, facts):
		return i, wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s is already the writer of the DB cluster %s.", i.Name, c.Name)
	case !ready:
		return i, wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s is not in the available state: it is %s.", i.Name, l.Status(i))
	case spec.Setting(i.Tags, spec.Promotable) == "false":
		return i, wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s must not become the writer: its tag %s says so.", i.Name, spec.Promotable)
	}
	return i, nil
}

// promotable are the members that could take over now and may, of one seat or all.
func promotable(l *database.Sight, facts plan.Facts, seat string) []plan.Placed {
	barred := map[string]bool{}
	for _, s := range facts.Want.Seats {
		barred[s.Key] = s.NoFailover
	}
	return slices.DeleteFunc(l.Candidates(facts), func(m plan.Placed) bool { return barred[m.Seat] || seat != "" && m.Seat != seat })
}

// rebootDBCluster restarts all instances of a Multi-AZ DB cluster, one by one.
func (s *service) rebootDBCluster(ctx context.Context, c front.Call, in *rds.RebootDBClusterMessage) (*rds.RebootDBClusterResult, error) {
	cluster, err := s.Change(ctx, c, in.DBClusterIdentifier, func(l *database.Sight, cluster *spec.Cluster) ([]state.Op, error) {
		if !cluster.MultiAZ() {
			return nil, wire.NewError(api.ErrInvalidParameterCombination, "RebootDBCluster is only valid for Multi-AZ DB clusters: reboot the instances of %s.", cluster.Name)
		}
		if err := l.MayCluster(operation.Restart, *cluster); err != nil {
			return nil, err
		}
		var ops []state.Op
		for _, r := range l.MembersOf(cluster.ResourceID) {
			i := r.Value
			group.Take(l.Look, &i)
			i.Reboot++
			i.Generation++
			ops = append(ops, state.Swap(r.Key, r.Revision, i))
		}
		look.Begin(&cluster.Common, plan.Rebooting, nil)
		return ops, nil
	})
	if err != nil {
		return nil, err
	}
	return &rds.RebootDBClusterResult{DBCluster: cluster}, nil
}

// stopDBCluster ends the processes of all instances; data and endpoints stay.
func (s *service) stopDBCluster(ctx context.Context, c front.Call, in *rds.StopDBClusterMessage) (*rds.StopDBClusterResult, error) {
	cluster, err := s.Change(ctx, c, in.DBClusterIdentifier, func(l *database.Sight, cluster *spec.Cluster) ([]state.Op, error) {
		if err := l.MayCluster(operation.Restart, *cluster); err != nil {
			return nil, err
		}
		for _, i := range l.InstancesOf(cluster.ResourceID) {
			if word := l.Status(i); word != plan.Available && word != plan.StorageFull {
				return nil, wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s of the DB cluster %s is not in the available state: it is %s.", i.Name, cluster.Name, word)
			}
		}
		if len(l.Followers[cluster.ResourceID]) > 0 {
			return nil, wire.NewError(rds.ErrInvalidDBClusterState, "The DB cluster %s has read replicas: it cannot be stopped.", cluster.Name)
		}
		cluster.Stopped = true
		look.Begin(&cluster.Common, plan.Stopping, nil, "0150")
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	return &rds.StopDBClusterResult{DBCluster: cluster}, nil
}

// startDBCluster starts a stopped cluster.
func (s *service) startDBCluster(ctx context.Context, c front.Call, in *rds.StartDBClusterMessage) (*rds.StartDBClusterResult, error) {
	cluster, err := s.Change(ctx, c, in.DBClusterIdentifier, func(l *database.Sight, cluster *spec.Cluster) ([]state.Op, error) {
		status := l.ClusterStatus(*cluster)
		// RDS names a second state, which nothing here can be in.
		err := look.ClusterState(*cluster, status, plan.StoppedWord, "inaccessible-encryption-credentials-recoverable")
		if status != plan.StoppedWord {
			return nil, err
		}
		if err := l.Excluded(operation.Restart, cluster.ResourceID, rds.ErrInvalidDBClusterState); err != nil {
			return nil, err
		}
		cluster.Stopped = false
		var ops []state.Op
		for _, r := range l.MembersOf(cluster.ResourceID) {
			i := r.Value
			group.Take(l.Look, &i)
			ops = append(ops, state.Swap(r.Key, r.Revision, i))
		}
		look.Begin(&cluster.Common, plan.Starting, nil, "0151")
		return ops, nil
	})
	if err != nil {
		return nil, err
	}
	return &rds.StartDBClusterResult{DBCluster: cluster}, nil
}
