package server

import (
	"context"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/plan"
	"howdah/internal/reconcile"
	"howdah/internal/spec"
	"howdah/internal/state"
	"howdah/internal/wire"
)

// instance finds an instance by name or ARN.
func (s *Server) instance(scope spec.Scope, identifier string) (state.Record[spec.Instance], error) {
	name := nameOf(identifier, "db")
	record, err := state.Load[spec.Instance](s.Cache, state.Instance(scope.Account, scope.Region, name))
	if err != nil {
		return record, wire.NewError(rds.ErrDBInstanceNotFound, "DBInstance %s not found.", name)
	}
	return record, nil
}

// nameOf is the name in an ARN of a kind, or the identifier itself, in lower case.
func nameOf(identifier, kind string) string {
	identifier = strings.ToLower(strings.TrimSpace(identifier))
	if parts := strings.Split(identifier, ":"); len(parts) == 7 && parts[0] == "arn" && parts[5] == kind {
		return parts[6]
	}
	return identifier
}

// deleteDBInstance marks an instance as being deleted: from the answer on its
// status is "deleting", and it cannot be taken back.
func (s *Server) deleteDBInstance(ctx context.Context, c call, in *rds.DeleteDBInstanceMessage) (*rds.DeleteDBInstanceResult, error) {
	var deleted spec.Instance
	err := s.retry(ctx, func() error {
		record, err := s.instance(c.Scope, or(in.DBInstanceIdentifier, ""))
		if err != nil {
			return err
		}
		i := record.Value
		if err := s.mayDelete(i, in); err != nil {
			return err
		}
		i.Deleting = true
		i.Generation++
		deleted = i
		ops := []state.Op{state.Swap(record.Key, record.Revision, i)}
		for _, follower := range s.followers(i.ResourceID) {
			promoted := follower.Value
			promoted.Promoted = true
			promoted.Generation++
			ops = append(ops, state.Swap(follower.Key, follower.Revision, promoted))
		}
		return s.commit(ctx, ops...)
	})
	if err != nil {
		return nil, err
	}
	return &rds.DeleteDBInstanceResult{DBInstance: s.instanceOut(deleted)}, nil
}

// followers of a database go on as databases of their own when it is deleted.
func (s *Server) followers(resourceID string) []state.Record[spec.Instance] {
	var all []state.Record[spec.Instance]
	for _, i := range state.LoadAll[spec.Instance](s.Cache, state.InstanceRoot) {
		if i.Value.Follows() && i.Value.Source == resourceID && !i.Value.Deleting {
			all = append(all, i)
		}
	}
	return all
}

// mayDelete asks for the explicit word that the data may go: in this version that
// is SkipFinalSnapshot, since there are no snapshots yet.
func (s *Server) mayDelete(i spec.Instance, in *rds.DeleteDBInstanceMessage) error {
	switch {
	case i.DeletionProtection:
		return wire.NewError(api.ErrInvalidParameterCombination, "Cannot delete protected DB Instance, please disable deletion protection and try again.")
	case i.Deleting:
		return wire.NewError(rds.ErrInvalidDBInstanceState, "Instance %s is already being deleted.", i.Name)
	case i.Auto:
		return wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s belongs to a Multi-AZ DB cluster: delete the cluster.", i.Name)
	}
	if i.Cluster != "" || i.Follows() {
		// Nothing is lost: the cluster, or the source, has the data.
		if in.FinalDBSnapshotIdentifier != nil {
			return wire.NewError(api.ErrInvalidParameterCombination, "FinalDBSnapshotIdentifier can not be specified when deleting a cluster or replica instance.")
		}
		return nil
	}
	return finalSnapshot(or(in.SkipFinalSnapshot, false), in.FinalDBSnapshotIdentifier, "FinalDBSnapshotIdentifier")
}

func finalSnapshot(skip bool, name *string, parameter string) error {
	switch {
	case skip && name != nil:
		return wire.NewError(api.ErrInvalidParameterCombination, "%s can not be specified when SkipFinalSnapshot is specified.", parameter)
	case name != nil:
		return wire.NewError(api.ErrInvalidParameterCombination, "Snapshots are not available in this version of Howdah: save the data with pg_dump, and delete with SkipFinalSnapshot.")
	case !skip:
		return wire.NewError(api.ErrInvalidParameterCombination, "%s is required unless SkipFinalSnapshot is specified.", parameter)
	}
	return nil
}

// hosts are the places that a new database could go to now.
func (s *Server) hosts() []plan.Host {
	return reconcile.Hosts(s.Cache, s.now())
}
