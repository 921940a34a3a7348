package restore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/aws/rds/snapshot"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// choose returns what is to be restored: a snapshot, or a database at a moment.
func choose(l *database.Sight, c front.Call, from string, at admin.RestorePoint) (restore.Choice, error) {
	if at.Snapshot != "" {
		if from != "" || moments(at) > 0 {
			return restore.Choice{}, invalid("A snapshot has the data of one moment.", "give a snapshot, or a database with a moment")
		}
		choice, err := ofSnapshot(l, c, at.Snapshot)
		return choice, hinted(err, at.Snapshot)
	}
	if from == "" {
		return restore.Choice{}, invalid("It is not said what to restore.", "give a snapshot, or a database")
	}
	if at.Live && moments(at) == 1 {
		choice, err := running(l, c, from)
		if err == nil {
			err = spared(c, choice)
		}
		return choice, hinted(err, from)
	}
	target, err := Target(at)
	if err != nil {
		return restore.Choice{}, err
	}
	source, err := Source(l, c, from, target)
	if err != nil {
		return restore.Choice{}, hinted(err, from)
	}
	choice, err := restore.To(l.Looks, source, target)
	if err == nil {
		err = spared(c, choice)
	}
	return choice, hinted(err, from)
}

func invalid(message, hint string) error {
	return admin.NewError(admin.CodeInvalidRequest, message, hint)
}

func moments(at admin.RestorePoint) int {
	n := 0
	for _, given := range []bool{at.Live, at.Time != nil, at.Latest, at.LSN != "", at.Before != ""} {
		if given {
			n++
		}
	}
	return n
}

// Target returns the moment that is asked for.
func Target(at admin.RestorePoint) (restore.Target, error) {
	if moments(at) != 1 {
		return restore.Target{}, invalid("Exactly one moment is to be given.", "give a time, the latest one, an LSN, or a transaction; or clone the database as it runs")
	}
	t := restore.Target{Latest: at.Latest, Before: at.Before}
	if at.Time != nil {
		moment := at.Time.UTC()
		if !moment.Equal(moment.Truncate(time.Microsecond)) {
			return t, invalid("A commit's time has microseconds, and the one that was asked for is finer.", "give six digits after the second at most")
		}
		t.Time = &moment
	}
	if at.Before != "" {
		id, err := strconv.ParseUint(at.Before, 10, 32)
		if err != nil || id < firstTransaction {
			return t, invalid(fmt.Sprintf("%.40q is no id of a transaction.", at.Before), "give its number without the epoch, such as 1234: txid_current() % 2^32")
		}
		t.Before = strconv.FormatUint(id, 10) // PostgreSQL takes what begins with a zero for an octal number
	}
	if at.LSN != "" {
		var err error
		if t.LSN, err = lsn.Parse(at.LSN); err != nil || t.LSN == 0 {
			return t, invalid(fmt.Sprintf("%.40q is no position of WAL.", at.LSN), "give it as pg_current_wal_lsn() does, such as 16/B374D848")
		}
	}
	return t, nil
}

// firstTransaction is the first id that PostgreSQL gives.
const firstTransaction = 3

func ofSnapshot(l *database.Sight, c front.Call, name string) (restore.Choice, error) {
	kind, bare := split(name)
	r, err := snapshot.Instance.FindUsable(l.Looks, c.Scope, bare, false)
	if err != nil || kind == admin.KindCluster {
		of, other := snapshot.Cluster.FindUsable(l.Looks, c.Scope, bare, false)
		if other == nil && kind != admin.KindInstance {
			r, err = of, nil
		} else if kind == admin.KindCluster {
			err = other
		}
	}
	if err == nil {
		err = sparedSnapshot(c, r)
	}
	if err != nil {
		return restore.Choice{}, err
	}
	return restore.Of(l.Looks, r)
}

// split takes the kind from a name that has one. An ARN has none.
func split(name string) (kind, bare string) {
	kind, bare, qualified := strings.Cut(name, "/")
	if !qualified || kind != admin.KindInstance && kind != admin.KindCluster {
		return "", name
	}
	return kind, bare
}

// Source returns the database to restore from: one that lives, or one of that name that lives no more
// and whose automated backups were kept. The latter is taken if the one that lives cannot be restored
// to the moment, such as one from before a rewind.
func Source(l *database.Sight, c front.Call, name string, t restore.Target) (restore.Source, error) {
	kind, bare := split(name)
	bare = strings.ToLower(strings.TrimSpace(bare))
	living, err := living(l, c, kind, bare)
	if err == nil && (t.Time == nil || living.Window.Has(*t.Time)) {
		return living, nil
	}
	kept := retained(l, c, kind, bare)
	for _, s := range kept {
		if t.Time != nil && s.Window.Has(*t.Time) {
			return s, nil
		}
	}
	if e, ok := errors.AsType[*wire.Error](err); err == nil || len(kept) == 0 || ok && e.Code != rds.ErrDBInstanceNotFound {
		return living, err
	}
	return kept[0], nil
}

func living(l *database.Sight, c front.Call, kind, name string) (restore.Source, error) {
	i, v, err := named(l, c, kind, name, "There is no database %.64q, and no automated backups of one were kept.")
	switch {
	case err != nil:
		return restore.Source{}, err
	case v != nil:
		return restore.OfCluster(l.Look, *v)
	}
	return restore.OfInstance(l.Look, *i)
}

// running is the choice of a database as it runs.
func running(l *database.Sight, c front.Call, from string) (restore.Choice, error) {
	kind, bare := split(from)
	i, v, err := named(l, c, kind, strings.ToLower(strings.TrimSpace(bare)), "There is no database %.64q that could be cloned.")
	switch {
	case err != nil:
		return restore.Choice{}, err
	case v != nil:
		return restore.CloneOfCluster(l.Look, *v)
	}
	return restore.CloneOfInstance(l.Look, *i)
}

// named is the instance or the cluster of a name, or of a resource id, that lives. none is the error's
// text if there is none.
func named(l *database.Sight, c front.Call, kind, name, none string) (*spec.Instance, *spec.Cluster, error) {
	for _, r := range l.InstancesIn(c.Scope) {
		if i := r.Value; kind != admin.KindCluster && !i.Deleting && (i.Name == name || strings.EqualFold(i.ResourceID, name)) {
			return i, nil, nil
		}
	}
	for _, r := range l.Clusters {
		if v := r.Value; kind != admin.KindInstance && v.Scope == c.Scope && !v.Deleting && (v.Name == name || strings.EqualFold(v.ResourceID, name)) {
			return nil, &v, nil
		}
	}
	return nil, nil, wire.NewError(rds.ErrDBInstanceNotFound, none, name).WithHint("see `howdah db list` and `howdah backup list`")
}

// retained are those of a name that live no more, the newest first.
func retained(l *database.Sight, c front.Call, kind, name string) []restore.Source {
	var all []backup.Automated
	for _, r := range state.LoadAll[backup.Automated](l.Cache, state.AutomatedRoot) {
		a := r.Value
		is := admin.KindInstance
		if a.Cluster != nil {
			is = admin.KindCluster
		}
		if a.Retained && a.Scope == c.Scope && (kind == "" || kind == is) && (a.Name == name || strings.EqualFold(a.Database, name)) {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b backup.Automated) int {
		return cmp.Or(b.Deleted.Compare(a.Deleted), strings.Compare(a.Database, b.Database))
	})
	var sources []restore.Source
	for _, a := range all {
		sources = append(sources, restore.OfRetained(l.Source.Looks, a))
	}
	return sources
}

// hints has what to do about errors of RDS.
var hints = map[string]string{
	rds.ErrDBInstanceAlreadyExists:        "choose another name",
	rds.ErrDBClusterAlreadyExists:         "choose another name",
	rds.ErrDBSnapshotNotFound:             "see `howdah snapshot list`",
	rds.ErrDBClusterSnapshotNotFound:      "see `howdah snapshot list`",
	rds.ErrPointInTimeRestoreNotEnabled:   "restore a snapshot: howdah snapshot list",
	rds.ErrInsufficientDBInstanceCapacity: "choose a smaller class, or add a host",
	rds.ErrInvalidDBSnapshotState:         "wait until it is available",
	rds.ErrInvalidDBClusterSnapshotState:  "wait until it is available",
}

// hinted gives an error of RDS a hint, if it has none.
func hinted(err error, name string) error {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok || e.Hint != "" {
		return err
	}
	if hint, known := hints[e.Code]; known {
		return e.WithHint(hint)
	}
	if e.Code == rds.ErrInvalidRestore || strings.Contains(e.Message, "be restored to") {
		return e.WithHint("howdah backup show " + name + " says what can be restored")
	}
	return err
}

// planOf says what a choice begins with.
func planOf(l *database.Sight, from restore.Choice, in admin.RestoreRequest) admin.RestorePlan {
	of := from.Common()
	if from.Live {
		return admin.RestorePlan{
			Name: wire.Lower(&in.Name), From: of.Name, FromID: from.Database, Live: true, Size: sizeOf(l, from), DryRun: in.DryRun, Hosts: []string{},
		}
	}
	p := admin.RestorePlan{
		Name: wire.Lower(&in.Name), From: of.Name, FromID: from.Database, Repository: from.Repository, Label: from.Label,
		Until: from.Until, Latest: from.Newest, LSN: from.LSN, Before: from.Before, DryRun: in.DryRun, Hosts: []string{},
	}
	if r, err := state.View[backup.Backup](l.Cache, state.Backup(from.Database, from.Repository, from.Label)); err == nil {
		p.BackupKind, p.Taken, p.Size = string(r.Value.Kind), r.Value.Stop, r.Value.Size
	}
	if !p.Latest && p.Until.IsZero() && p.LSN == "" && p.Before == "" {
		p.Until = p.Taken
	}
	return p
}

// sizeOf is how much a clone copies at most: what the primary has, with all of its WAL.
func sizeOf(l *database.Sight, from restore.Choice) int64 {
	f := l.Looks.Facts(plan.Database{ID: from.Database})
	m, _ := f.Primary()
	return f.Reports[member.ID(from.Database, m.Name)].StorageBytes
}

// thin reports whether a clone takes no room on the host that makes it.
func thin(l *database.Sight, hosts []string) bool {
	return slices.ContainsFunc(l.Looks.Hosts(), func(h plan.Host) bool { return len(hosts) > 0 && h.Name == hosts[0] && h.Shares })
}
