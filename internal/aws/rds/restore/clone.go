package restore

import (
	"cmp"
	"slices"

	"howdah/api/rds"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
	"howdah/internal/model/topic"
	"howdah/internal/state"
)

// CloneOfInstance is the choice of an instance as it is when its files are copied.
func CloneOfInstance(l *look.Look, i spec.Instance) (Choice, error) {
	switch status := l.Status(i); {
	case i.Cluster != "":
		return Choice{}, wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s is a member of a DB cluster: clone the cluster.", i.Name)
	case i.Follows():
		return Choice{}, wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s is a read replica: clone its source, which has the same data.", i.Name)
	case !slices.Contains(look.Usable, status):
		return Choice{}, wire.NewError(rds.ErrInvalidDBInstanceState, "Cannot clone the DB instance %s because it is not currently in the available state: it is %s.", i.Name, status)
	}
	record, err := l.FindInstance(i.Scope, i.Name)
	if err != nil {
		return Choice{}, err
	}
	return Choice{Origin: liveOrigin(i.Common), Instance: &i, Unchanged: []state.Op{state.Unchanged(record.Key, record.Revision)}}, Can(l.Source)
}

// CloneOfCluster is the choice of a cluster as it is when its files are copied. From then on it has a
// clone group, which its clone has, too.
func CloneOfCluster(l *look.Look, c spec.Cluster) (Choice, error) {
	switch status := l.ClusterStatus(c); {
	case !slices.Contains(look.Usable, status):
		return Choice{}, look.ClusterState(c, status, look.Usable...)
	case len(l.InstancesOf(c.ResourceID)) == 0:
		return Choice{}, wire.NewError(rds.ErrInvalidDBClusterState, "The DB cluster %s has no DB instance that could be cloned: add one first.", c.Name)
	}
	record, found := l.ClusterRecord(c.ResourceID)
	if !found {
		return Choice{}, wire.NewError(rds.ErrDBClusterNotFound, "DBCluster %s not found.", c.Name)
	}
	choice := Choice{
		Origin: liveOrigin(c.Common), Cluster: &c,
		CloneGroup: cmp.Or(c.CloneGroup, topic.StableID("clone group", c.ResourceID)),
	}
	joined := record.Value
	joined.CloneGroup = choice.CloneGroup
	choice.Unchanged = []state.Op{state.Swap(record.Key, record.Revision, joined)}
	return choice, Can(l.Source)
}

func liveOrigin(of spec.Common) spec.Origin {
	return spec.Origin{Live: true, Database: of.ResourceID, From: of.Name}
}
