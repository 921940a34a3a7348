// Package snapshot is the part of RDS about snapshots: DB snapshots, and DB cluster snapshots. Both
// are the same thing here, and only differ in names: see Kind. An action that makes a snapshot
// writes its record together with the operation that makes it; package control/backup carries that
// out. Actions of other parts, which delete or stop a database with a snapshot, begin one by Take.
package snapshot

import (
	"strings"

	"howdah/api/rds"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/backup"
	"howdah/internal/model/event"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Kind is what the two kinds of snapshots differ in.
type Kind struct {
	// ARN is their type in ARNs, Source that in events, of their databases OfSource.
	ARN              string
	Source, ofSource event.SourceType
	// parameter names a snapshot in requests. longest is how long a name may be.
	parameter string
	longest   int
	// What errors call it, and their codes.
	word                              string
	notFound, exists, badState, badOf string
	// key is where a record belongs, root where all of them are.
	key  func(account, region, name string) string
	root string
	// creating and deleted are events; deleted is "" where RDS has none.
	creating, deleted string
}

// The kinds.
var (
	Instance = &Kind{
		ARN: "snapshot", Source: event.Snapshot, ofSource: event.Instance, parameter: "DBSnapshotIdentifier", longest: 255,
		word: "DBSnapshot", notFound: rds.ErrDBSnapshotNotFound, exists: rds.ErrDBSnapshotAlreadyExists,
		badState: rds.ErrInvalidDBSnapshotState, badOf: rds.ErrInvalidDBInstanceState,
		key: state.Snapshot, root: state.SnapshotRoot, creating: "0040", deleted: "0041",
	}
	Cluster = &Kind{
		ARN: "cluster-snapshot", Source: event.ClusterSnapshot, ofSource: event.Cluster, parameter: "DBClusterSnapshotIdentifier", longest: 63,
		word: "DBClusterSnapshot", notFound: rds.ErrDBClusterSnapshotNotFound, exists: rds.ErrDBClusterSnapshotAlreadyExists,
		badState: rds.ErrInvalidDBClusterSnapshotState, badOf: rds.ErrInvalidDBClusterState,
		key: state.ClusterSnapshot, root: state.ClusterSnapshotRoot, creating: "0074",
	}
)

// Record is the record of a snapshot.
type Record = state.Record[backup.Snapshot]

// Key is where the record of a snapshot is.
func (k *Kind) Key(s backup.Snapshot) string { return k.key(s.Account, s.Region, s.Name) }

// Find finds a snapshot of the caller's region, by name or ARN.
func (k *Kind) Find(l *look.Source, scope spec.Scope, identifier string) (Record, error) {
	r, name, ok := look.FindNamed[backup.Snapshot](l, scope, identifier, k.ARN, k.key)
	if !ok {
		return r, k.missing(name)
	}
	return r, nil
}

// FindUsable finds a snapshot that may be restored in this scope, or copied to it: one of the
// caller's, or one that is shared with the caller, by its ARN. anywhere allows other regions, too.
func (k *Kind) FindUsable(l *look.Source, scope spec.Scope, identifier string, anywhere bool) (Record, error) {
	in, name := look.Locate(scope, identifier, k.ARN)
	if name == "" || in.Region != scope.Region && !anywhere {
		return Record{}, k.missing(name)
	}
	r, err := state.Load[backup.Snapshot](l.Cache, k.key(in.Account, in.Region, name))
	if err != nil || in.Account != scope.Account && !r.Value.SharedWith(scope.Account) {
		return Record{}, k.missing(name)
	}
	return r, nil
}

func (k *Kind) missing(name string) error {
	return look.OrBlank(name, k.parameter, wire.NewError(k.notFound, "%s not found: %s", k.word, name))
}

// in are the snapshots of a region, by name.
func (k *Kind) in(l *look.Source, scope spec.Scope) []state.Record[*backup.Snapshot] {
	return state.ViewAll[backup.Snapshot](l.Cache, k.key(scope.Account, scope.Region, ""))
}

// Free refuses a name that is taken.
func (k *Kind) Free(l *look.Source, scope spec.Scope, name string) error {
	if _, _, taken := l.Cache.Raw(k.key(scope.Account, scope.Region, name)); taken {
		return wire.NewError(k.exists, "Cannot create the snapshot because a snapshot with the identifier %s already exists.", name)
	}
	return nil
}

// Room refuses one manual snapshot more than an account may have in a region.
func (k *Kind) Room(l *look.Source, scope spec.Scope) error {
	manual := 0
	for _, r := range k.in(l, scope) {
		if !r.Value.Automated {
			manual++
		}
	}
	if manual < look.MaxSnapshots {
		return nil
	}
	return wire.NewError(rds.ErrSnapshotQuotaExceeded, "Cannot create more than %d manual snapshots: delete one that is not needed.", look.MaxSnapshots)
}

// checkName checks the name of a new snapshot, in lower case.
func (k *Kind) checkName(parameter, name string) error {
	if strings.TrimSpace(name) == "" {
		return look.OrBlank("", parameter, nil)
	}
	return spec.CheckLongName(parameter, name, k.longest)
}

// ofARN is the type of its databases in ARNs.
func (k *Kind) ofARN() string { return event.ARNKind(k.ofSource) }

// about is the source of events of a snapshot.
func (k *Kind) about(s backup.Snapshot) event.Source {
	return event.Source{Scope: s.Scope, Type: k.Source, Name: s.Name}
}

// Tagged is a snapshot, by its ARN, with its tags.
func (k *Kind) Tagged(l *look.Look, scope spec.Scope, arn string) (look.Tagged, error) {
	r, err := k.Find(l.Source, scope, arn)
	return look.Tagged{Tags: r.Value.Tags, Put: func(tags []spec.Tag) state.Op {
		s := r.Value
		s.Tags = tags
		return state.Swap(r.Key, r.Revision, s)
	}}, err
}
