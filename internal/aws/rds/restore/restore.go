// Package restore decides what a restored database is made of: the snapshot that was named, or for a
// moment the backup to begin with. It knows which moments can be restored. A restored database is a
// new one whose record says so (spec.Origin): packages instance and cluster make it, as they make
// others.
package restore

import (
	"errors"
	"time"

	"howdah/api/rds"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/snapshot"
	"howdah/internal/aws/wire"
	"howdah/internal/model/backup"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/state/format"
)

// Choice is what a new database is to be made of.
type Choice struct {
	spec.Origin
	// Instance or Cluster is the database as it was.
	Instance *spec.Instance
	Cluster  *spec.Cluster
	// Unchanged are the conditions that what was chosen is still there, and stays.
	Unchanged []state.Op
	// CloneGroup is that of a cluster's clone, or "".
	CloneGroup string
}

// Common is the part that instances and clusters have alike.
func (c Choice) Common() spec.Common {
	if c.Cluster != nil {
		return c.Cluster.Common
	}
	return c.Instance.Common
}

// firstFormat is the format of records from which on all parts of a home know restored databases.
const firstFormat = 2

// Can refuses restores while some part of the home is of a release that would begin a restored
// database empty.
func Can(l *look.Source) error {
	if format.Heard(l.Cache).Format >= firstFormat {
		return nil
	}
	return wire.NewError(rds.ErrInvalidRestore, "Nothing can be restored before every part of this home runs this release: see `howdah status`, upgrade the hosts, control planes and edges that are older, and try again.")
}

// Of is the choice of a snapshot: the data that it has.
func Of(l *look.Source, r snapshot.Record) (Choice, error) {
	s := r.Value
	if s.State != backup.Available {
		code := rds.ErrInvalidDBSnapshotState
		if s.Cluster != nil {
			code = rds.ErrInvalidDBClusterSnapshotState
		}
		return Choice{}, wire.NewError(code, "Cannot restore the snapshot %s because it is not currently in the available state: it is %s.", s.Name, s.State)
	}
	held, err := state.Load[backup.Backup](l.Cache, state.Backup(s.Holder(), s.Repository, s.Label))
	switch {
	case errors.Is(err, state.ErrNotFound):
		return Choice{}, wire.NewError(rds.ErrInvalidRestore, "The backup of the snapshot %s is not in the repository %s any more.", s.Name, s.Repository)
	case err != nil:
		return Choice{}, err
	case held.Value.Damaged != "":
		return Choice{}, wire.NewError(rds.ErrInvalidRestore, "The backup of the snapshot %s is damaged: %s. Restore another one.", s.Name, held.Value.Damaged)
	}
	return Choice{
		Origin:   spec.Origin{Database: s.Holder(), Repository: s.Repository, Label: s.Label, From: s.Name, Snapshot: true},
		Instance: s.Instance, Cluster: s.Cluster, Unchanged: []state.Op{state.Unchanged(r.Key, r.Revision), snapshot.Held(held)},
	}, Can(l)
}

// backups are those of a database in a repository, by label.
func backups(l *look.Source, database, repository string) []state.Record[backup.Backup] {
	return state.LoadAll[backup.Backup](l.Cache, state.BackupPrefix(database)+repository+"/")
}

// plain are the backups without what the state knows of their records.
func plain(all []state.Record[backup.Backup]) []backup.Backup {
	values := make([]backup.Backup, len(all))
	for n, r := range all {
		values[n] = r.Value
	}
	return values
}

// stamp is a moment as messages have it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
