// Package rewind begins the operation that gives a DB instance the data of an earlier moment in its
// place. RDS has no such action: the admin API asks for it. Package control/rewind carries it out.
//
// Invariant: the operation, the snapshot that is made first, and the hidden instance that takes the
// place are made in one transaction, or none is.
package rewind

import (
	"errors"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/instance"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/aws/rds/snapshot"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// Wish is what is asked for.
type Wish struct {
	From restore.Choice
	// ID is that of the operation, Snapshot the name of the snapshot that is made first, and To what is
	// gone back to, in words.
	ID, Snapshot, To string
}

// Begun is an operation that is about to begin.
type Begun struct {
	Operation operation.Record
	// Beside is the hidden instance, and Hosts are where its members would be placed now.
	Beside spec.Instance
	Hosts  []string
}

// Begin returns the operation for an instance, with the writes that begin it.
func Begin(l *database.Sight, c front.Call, of state.Record[spec.Instance], w Wish) (Begun, []state.Op, error) {
	if err := May(l, of.Value); err != nil {
		return Begun{}, nil, err
	}
	beside, ops, err := instance.Beside(l, c, of.Value, w.From, w.ID)
	if err != nil {
		return Begun{}, nil, err
	}
	hosts, err := l.WhereTo(beside.Common, plan.ForInstance(beside, plan.Links{Groups: l.Groups}))
	if err != nil {
		return Begun{}, nil, err
	}
	shot, more, err := snapshot.Take(l.Look, c, snapshot.Wish{Name: w.Snapshot, Parameter: "snapshot", Operation: backup.Take, Instance: &of.Value})
	if err != nil {
		return Begun{}, nil, err
	}
	key := look.InstanceKey(beside)
	about := operation.About{Scope: of.Value.Scope, Type: event.Instance, Name: of.Value.Name, Database: of.Value.ResourceID}
	r, err := operation.New(w.ID, backup.Rewind, about, backup.RewindArgs{
		Snapshot: state.Snapshot(shot.Account, shot.Region, shot.Name), Key: key, Database: beside.ResourceID, To: w.To,
	}, c.Now)
	if err != nil {
		return Begun{}, nil, err
	}
	begin, err := view.Begin(l.Cache, r)
	if errors.Is(err, operation.ErrTooMany) {
		return Begun{}, nil, wire.NewError(api.ErrThrottlingException, "Too many operations are under way (%s): see `howdah operations list`, and try again when some have ended.", err)
	}
	if err != nil {
		return Begun{}, nil, err
	}
	told, err := look.Tell(c, event.Instance, of.Value.Common, look.Event("H017", w.To, shot.Name))
	if err != nil {
		return Begun{}, nil, err
	}
	ops = append(append(append(ops, more...), told...), begin, state.Swap(key, 0, beside))
	// Whoever is about to change or delete the instance looks again.
	return Begun{r, beside, hosts}, append(ops, state.Swap(of.Key, of.Revision, of.Value)), nil
}

// May refuses an instance whose data cannot be exchanged now.
func May(l *database.Sight, i spec.Instance) error {
	if i.Cluster != "" {
		name := "NAME"
		if r, found := l.ClusterRecord(i.Cluster); found {
			name = r.Value.Name
		}
		return wire.NewError(rds.ErrInvalidDBInstanceState, "%s is an instance of a DB cluster, which cannot go back in its place yet: restore the cluster beside it (howdah db restore NEW --from cluster/%s --to TIME), and have clients use that.", i.Name, name)
	}
	if i.Follows() {
		return wire.NewError(rds.ErrInvalidDBInstanceState, "%s is a read replica, and has the data of its source: go back with the source, after its replicas were promoted or deleted.", i.Name)
	}
	if followers := l.Followers[i.ResourceID]; len(followers) > 0 {
		var names []string
		for _, f := range followers {
			names = append(names, f.Value.Name)
		}
		return wire.NewError(rds.ErrInvalidDBInstanceState, "%s has read replicas (%s), which would go on with the data of now: promote them (howdah db promote NAME) or delete them first, and make new ones after it has gone back.",
			i.Name, strings.Join(names, ", "))
	}
	if err := look.First(l.Excluded(operation.Change, i.ResourceID, rds.ErrInvalidDBInstanceState), l.Excluded(operation.Delete, i.ResourceID, rds.ErrInvalidDBInstanceState)); err != nil {
		return err
	}
	return snapshot.MayInstance(l.Look, i)
}
