package look

import (
	"slices"
	"strings"

	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
)

// InState answers an error unless a status is one of the allowed.
func InState(status string, err error, allowed ...string) error {
	if slices.Contains(allowed, status) {
		return nil
	}
	return err
}

// Usable are the states of a database that may be modified: available, and one
// whose storage is full, since that is how it is mended.
var Usable = []string{plan.Available, plan.StorageFull}

// ClusterState is the error of a cluster in the wrong state.
func ClusterState(c spec.Cluster, status string, expected ...string) error {
	return wire.NewError(rds.ErrInvalidDBClusterState, "DbCluster %s is in %s state but expected it to be one of %s.", c.Name, status, strings.Join(expected, ","))
}

// Status is the status word of an instance.
func (l *Look) Status(i spec.Instance) string { return l.StatusBy(i, l.FactsOf(i)) }

// StatusBy is Status by facts that the caller has already.
func (l *Look) StatusBy(i spec.Instance, f plan.Facts) string {
	if i.Cluster == "" {
		status := f.DatabaseStatus()
		if status == plan.FailingOver {
			return plan.Rebooting // an instance has no such status
		}
		return WhileMoving(i.Moving(), status)
	}
	if _, exists := l.Cluster[i.Cluster]; !exists {
		return plan.Deleting
	}
	return WhileMoving(i.Moving(), f.SeatStatus(SeatOf(f, i), i.Deleting))
}

// ClusterStatus is the status word of a cluster.
func (l *Look) ClusterStatus(c spec.Cluster) string {
	return WhileMoving(c.Moving(), l.FactsOfCluster(c).DatabaseStatus())
}

// WhileMoving is the status of what is being moved: until it is done a database that
// is not reached is not one that fails.
func WhileMoving(moving bool, status string) string {
	if moving && (status == plan.Available || status == plan.Rebooting) {
		return plan.Modifying
	}
	return status
}
