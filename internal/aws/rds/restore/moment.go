package restore

import (
	"fmt"
	"slices"
	"time"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/snapshot"
	"howdah/internal/aws/wire"
	"howdah/internal/model/backup"
	"howdah/internal/model/lsn"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Source is a database with automated backups: one that lives, or one that was deleted and whose
// backups were kept.
type Source struct {
	Instance *spec.Instance
	Cluster  *spec.Cluster
	Window   Window
	// Repository has the backups.
	Repository string
	// Gone says that the database is no more.
	Gone bool
}

func (s Source) common() spec.Common {
	if s.Cluster != nil {
		return s.Cluster.Common
	}
	return s.Instance.Common
}

// OfInstance is an instance that lives.
func OfInstance(l *look.Look, i spec.Instance) (Source, error) {
	switch {
	case i.Cluster != "":
		return Source{}, wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s is a member of a DB cluster: restore the cluster, by RestoreDBClusterToPointInTime.", i.Name)
	case i.Follows():
		return Source{}, wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s is a read replica: restore its source, which has the same data.", i.Name)
	}
	s := Source{Instance: &i, Window: WindowOf(l.Source, i.Common, l.FactsOf(i)), Repository: l.RepositoryOf(i.ResourceID)}
	return s, enabled(i.Common)
}

// OfCluster is a cluster that lives.
func OfCluster(l *look.Look, c spec.Cluster) (Source, error) {
	s := Source{Cluster: &c, Window: WindowOf(l.Source, c.Common, l.FactsOfCluster(c)), Repository: l.RepositoryOf(c.ResourceID)}
	return s, enabled(c.Common)
}

func enabled(c spec.Common) error {
	if c.BackupRetention > 0 {
		return nil
	}
	return wire.NewError(rds.ErrPointInTimeRestoreNotEnabled, "%s has no automated backups: its BackupRetentionPeriod is 0.", c.Name)
}

// OfRetained is a database that was deleted.
func OfRetained(l *look.Source, a backup.Automated) Source {
	return Source{Instance: a.Instance, Cluster: a.Cluster, Window: WindowOfRetained(l, a), Repository: a.Repository, Gone: true}
}

// Target is what to restore: exactly one of its fields is set.
type Target struct {
	// Time is a moment: everything that was committed by then, and nothing later.
	Time *time.Time
	// Latest is all that can be restored.
	Latest bool
	// LSN is a place in WAL: everything up to it. Before is the id of a transaction: everything
	// before it. The API of RDS has neither.
	LSN    lsn.LSN
	Before string
}

// TargetOf is what a request of RDS asks for. parameter is the one with the time.
func TargetOf(at *time.Time, latest *bool, parameter string) (Target, error) {
	newest := wire.Or(latest, false)
	switch {
	case at != nil && newest:
		return Target{}, wire.NewError(api.ErrInvalidParameterCombination, "You can't specify both %s and UseLatestRestorableTime.", parameter)
	case at == nil && !newest:
		return Target{}, wire.NewError(api.ErrInvalidParameterCombination, "You must specify either %s or UseLatestRestorableTime.", parameter)
	}
	return Target{Time: at, Latest: newest}, nil
}

// To is the choice for a target of a database: the newest backup from before it.
func To(l *look.Source, s Source, t Target) (Choice, error) {
	if err := s.allows(t); err != nil {
		return Choice{}, err
	}
	of := s.common()
	all := backups(l, of.ResourceID, s.Repository)
	base, ok := s.base(plain(all), t)
	if !ok {
		return Choice{}, wire.NewError(rds.ErrInvalidRestore, "%s cannot be restored to that: no whole backup is from before then, or WAL of that time was given up before it could be archived. Choose another time %s.",
			of.Name, s.Window)
	}
	at := slices.IndexFunc(all, func(r state.Record[backup.Backup]) bool { return r.Value.Label == base.Label })
	origin := spec.Origin{
		Database: of.ResourceID, Repository: s.Repository, Label: base.Label, Newest: t.Latest, Before: t.Before, From: of.Name,
	}
	// Of a database that is no more nobody commits after the end of its newest backup, and PostgreSQL
	// needs to see that to stop there.
	if end := s.Gone && base.Stop.Equal(s.Window.Latest); t.Time != nil && !(end && t.Time.Equal(base.Stop)) {
		origin.Until = t.Time.UTC()
	}
	if t.LSN != 0 {
		origin.LSN = t.LSN.String()
	}
	return Choice{Origin: origin, Instance: s.Instance, Cluster: s.Cluster, Unchanged: []state.Op{snapshot.Held(all[at])}}, Can(l)
}

// base is the backup to begin with.
func (s Source) base(all []backup.Backup, t Target) (backup.Backup, bool) {
	switch {
	case t.Time != nil:
		return backup.Base(all, *t.Time)
	case t.Before != "": // nobody knows when that was
		return backup.Base(all, s.Window.Earliest)
	case t.LSN == 0:
		return backup.Base(all, s.Window.Latest)
	}
	var newest backup.Backup
	for _, b := range all {
		// One that its own moment can be restored from is sound, and has its WAL.
		if own, ok := backup.Base(all, b.Stop); ok && own.Label == b.Label && b.StopLSN <= t.LSN && b.Stop.After(newest.Stop) {
			newest = b
		}
	}
	return newest, newest.Label != ""
}

// allows refuses what is outside of the window.
func (s Source) allows(t Target) error {
	of, w := s.common(), s.Window
	if w.Latest.IsZero() {
		return wire.NewError(rds.ErrInvalidRestore, "%s cannot be restored to a point in time yet: its first automated backup is not done, or its archive is not there.", of.Name)
	}
	switch {
	case w.End != 0 && t.LSN > w.End:
		return wire.NewError(api.ErrInvalidParameterValue, "%s cannot be restored to the position %s: its WAL is safe until %s, which is of %s.", of.Name, t.LSN, w.End, stamp(w.Latest))
	case t.Time == nil:
		return nil
	case t.Time.After(w.Latest):
		return wire.NewError(api.ErrInvalidParameterValue, "The specified instance cannot be restored to a time later than %s: %s can be restored to a time %s.", stamp(w.Latest), of.Name, w)
	case t.Time.Before(w.Earliest):
		return wire.NewError(api.ErrInvalidParameterValue, "The specified instance cannot be restored to a time earlier than %s: %s can be restored to a time %s.", stamp(w.Earliest), of.Name, w)
	}
	return nil
}

// String says a window in words.
func (w Window) String() string {
	if w.Latest.IsZero() {
		return "no time at all"
	}
	return fmt.Sprintf("from %s to %s", stamp(w.Earliest), stamp(w.Latest))
}
