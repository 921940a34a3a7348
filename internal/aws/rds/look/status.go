package look

import (
	"cmp"
	"slices"
	"strings"

	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/view"
)

// Usable are the states of a database that may be modified: available, and one
// whose storage is full, since that is how it is mended.
var Usable = []string{plan.Available, plan.StorageFull}

// ClusterState is the error of a cluster in the wrong state.
func ClusterState(c spec.Cluster, status string, expected ...string) error {
	return wire.NewError(rds.ErrInvalidDBClusterState, "DbCluster %s is in %s state but expected it to be one of %s.", c.Name, status, strings.Join(expected, ","))
}

// May answers an error where a deed to an instance's database cannot be done now. It is refused if
// the instance has none of the allowed states, which are Usable where none are given, and another
// one if an operation excludes the deed.
func (l *Look) May(deed operation.Deed, i spec.Instance, refused error, allowed ...string) error {
	if len(allowed) == 0 {
		allowed = Usable
	}
	if !slices.Contains(allowed, l.Status(i)) {
		return refused
	}
	return l.Excluded(deed, DatabaseOf(i), rds.ErrInvalidDBInstanceState)
}

// MayCluster is May of a usable cluster.
func (l *Look) MayCluster(deed operation.Deed, c spec.Cluster) error {
	if status := l.ClusterStatus(c); !slices.Contains(Usable, status) {
		return ClusterState(c, status, plan.Available)
	}
	return l.Excluded(deed, c.ResourceID, rds.ErrInvalidDBClusterState)
}

// Excluded is an error, of this code, where an operation under way excludes a deed to a database.
func (l *Look) Excluded(deed operation.Deed, database, code string) error {
	o, excluded := view.Excluding(l.Cache, database, deed)
	if !excluded {
		return nil
	}
	return wire.NewError(code, "The operation %s (%s) of %s is under way, and excludes a %s until it has ended.", o.ID, o.Kind, o.About.Name, deed)
}

// DatabaseOf is the resource id of the database that an instance is, or is a part of.
func DatabaseOf(i spec.Instance) string { return cmp.Or(i.Cluster, i.ResourceID) }

// Status is the status word of an instance.
func (l *Look) Status(i spec.Instance) string { return l.StatusBy(i, l.FactsOf(i)) }

// StatusBy is Status by facts that the caller has already.
func (l *Look) StatusBy(i spec.Instance, f plan.Facts) string {
	if i.Cluster == "" {
		status := f.DatabaseStatus()
		if status == plan.FailingOver {
			status = plan.Rebooting // an instance has no such status
		}
		return shown(i.Common, i.Moving(), status)
	}
	c, exists := l.Cluster[i.Cluster]
	if !exists || i.Auto && c.Going() {
		return plan.Deleting
	}
	return shown(i.Common, i.Moving(), f.SeatStatus(SeatOf(f, i), i.Deleting))
}

// ClusterStatus is the status word of a cluster.
func (l *Look) ClusterStatus(c spec.Cluster) string {
	return l.ClusterStatusBy(c, l.FactsOfCluster(c))
}

// ClusterStatusBy is ClusterStatus by facts that the caller has already.
func (l *Look) ClusterStatusBy(c spec.Cluster, f plan.Facts) string {
	return shown(c.Common, c.Moving(), f.DatabaseStatus())
}

// shown is the status of what waits for a snapshot before it is deleted or stopped, of what an
// operation has closed, and of what is being moved: until that is done a database that is not reached
// is not one that fails.
func shown(c spec.Common, moving bool, status string) string {
	switch {
	case c.Going():
		return plan.Deleting
	case c.StopAfter != "":
		return plan.Stopping
	case c.ClosedBy != "":
		return plan.Modifying
	case moving && (status == plan.Available || status == plan.Rebooting):
		return plan.Modifying
	}
	return status
}
