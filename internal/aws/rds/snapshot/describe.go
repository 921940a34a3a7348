package snapshot

import (
	"context"
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/backup"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// The types of snapshots that a caller can ask for. The last one is of AWS Backup: there are none.
const (
	manual    = "manual"
	automated = "automated"
	shared    = "shared"
	public    = "public"
	ofBackup  = "awsbackup"
)

// question is what a caller wants to see.
type question struct {
	name, of, database                 *string // of the snapshot; name and resource id of its database
	kind                               *string
	shared, public                     *bool
	filters                            []rds.Filter
	size                               *int32
	marker                             *string
	nameFilter, ofFilter, sourceFilter string
}

// describeDBSnapshots lists DB snapshots.
func (s *service) describeDBSnapshots(ctx context.Context, c front.Call, in *rds.DescribeDBSnapshotsMessage) (*rds.DBSnapshotMessage, error) {
	found, marker, err := s.describe(ctx, c, Instance, question{
		in.DBSnapshotIdentifier, in.DBInstanceIdentifier, in.DbiResourceId, in.SnapshotType, in.IncludeShared, in.IncludePublic, in.Filters, in.MaxRecords, in.Marker,
		"db-snapshot-id", "db-instance-id", "dbi-resource-id",
	})
	if err != nil {
		return nil, err
	}
	out := &rds.DBSnapshotMessage{Marker: marker, DBSnapshots: []rds.DBSnapshot{}}
	for _, v := range found {
		shown := instanceOut(s.Looks, v)
		shown.SnapshotType = wire.Some(typeFor(c.Scope, v))
		out.DBSnapshots = append(out.DBSnapshots, *shown)
	}
	return out, nil
}

// describeDBClusterSnapshots lists DB cluster snapshots.
func (s *service) describeDBClusterSnapshots(ctx context.Context, c front.Call, in *rds.DescribeDBClusterSnapshotsMessage) (*rds.DBClusterSnapshotMessage, error) {
	found, marker, err := s.describe(ctx, c, Cluster, question{
		in.DBClusterSnapshotIdentifier, in.DBClusterIdentifier, in.DbClusterResourceId, in.SnapshotType, in.IncludeShared, in.IncludePublic, in.Filters, in.MaxRecords, in.Marker,
		"db-cluster-snapshot-id", "db-cluster-id", "db-cluster-resource-id",
	})
	if err != nil {
		return nil, err
	}
	out := &rds.DBClusterSnapshotMessage{Marker: marker, DBClusterSnapshots: []rds.DBClusterSnapshot{}}
	for _, v := range found {
		shown := clusterOut(s.Looks, v)
		shown.SnapshotType = wire.Some(typeFor(c.Scope, v))
		out.DBClusterSnapshots = append(out.DBClusterSnapshots, *shown)
	}
	return out, nil
}

func (s *service) describe(ctx context.Context, c front.Call, k *Kind, q question) ([]*backup.Snapshot, *string, error) {
	if err := s.State.Fresh(ctx); err != nil {
		return nil, nil, err
	}
	filters, err := look.ReadFilters(q.filters, q.nameFilter, q.ofFilter, q.sourceFilter, "snapshot-type", "engine")
	if err != nil {
		return nil, nil, err
	}
	if err := q.check(); err != nil {
		return nil, nil, err
	}
	all, err := s.asked(c.Scope, k, q)
	if err != nil {
		return nil, nil, err
	}
	all = slices.DeleteFunc(all, func(v *backup.Snapshot) bool {
		return !q.wants(c.Scope, v) || !filters.MatchBy(func(name string) []string { return q.attribute(c.Scope, k, v, name) })
	})
	return page.Of(all, func(v *backup.Snapshot) string { return sortKey(c.Scope, v) }, q.size, q.marker)
}

func (q question) check() error {
	if kind := wire.Or(q.kind, manual); !slices.Contains([]string{manual, automated, shared, public, ofBackup}, kind) {
		return wire.NewError(api.ErrInvalidParameterValue, "Invalid snapshot type: %s. Valid values are automated, manual, shared, public and awsbackup.", kind)
	}
	return nil
}

// asked are the snapshots that a question may be about: the caller's, the one that it names, and
// those of others that the caller may see, if it asks for these.
func (s *service) asked(scope spec.Scope, k *Kind, q question) ([]*backup.Snapshot, error) {
	if q.name != nil {
		r, err := k.FindUsable(s.Looks, scope, *q.name, false)
		if err != nil {
			return nil, err
		}
		return []*backup.Snapshot{&r.Value}, nil
	}
	var all []*backup.Snapshot
	for _, r := range k.in(s.Looks, scope) {
		all = append(all, r.Value)
	}
	if !wire.Or(q.shared, false) && !wire.Or(q.public, false) && q.kind == nil {
		return all, nil
	}
	for _, r := range state.ViewAll[backup.Snapshot](s.Looks.Cache, k.root) {
		if v := r.Value; v.Account != scope.Account && v.Region == scope.Region && v.SharedWith(scope.Account) {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b *backup.Snapshot) int { return strings.Compare(sortKey(scope, a), sortKey(scope, b)) })
	return all, nil
}

// sortKey puts the caller's own first, by name.
func sortKey(scope spec.Scope, v *backup.Snapshot) string {
	if v.Scope == scope {
		return "0/" + v.Name
	}
	return "1/" + v.Account + "/" + v.Name
}

// wants: it is of a type, and of the database, that was asked for.
func (q question) wants(scope spec.Scope, v *backup.Snapshot) bool {
	if q.of != nil && wire.Lower(q.of) != v.Common().Name || q.database != nil && *q.database != v.Database {
		return false
	}
	if q.kind == nil && q.name != nil {
		return true
	}
	own, everyone := v.Account == scope.Account, v.Public()
	switch wire.Or(q.kind, "") {
	case manual, automated:
		if own {
			return typeOf(v) == *q.kind
		}
	case shared:
		return !own && slices.Contains(v.Shared, scope.Account)
	case public:
		return everyone
	case ofBackup:
		return false
	}
	return own || everyone && wire.Or(q.public, false) || slices.Contains(v.Shared, scope.Account) && wire.Or(q.shared, false)
}

// attribute is what a filter compares.
func (q question) attribute(scope spec.Scope, k *Kind, v *backup.Snapshot, filter string) []string {
	of := v.Common()
	switch filter {
	case q.nameFilter:
		return []string{v.Name, v.ARN(k.ARN, v.Name)}
	case q.ofFilter:
		return []string{of.Name, of.ARN(k.ofARN(), of.Name)}
	case q.sourceFilter:
		return []string{v.Database}
	case "snapshot-type":
		return []string{typeFor(scope, v)}
	}
	return []string{of.Engine}
}

// typeFor is the type of a snapshot for somebody in a scope.
func typeFor(scope spec.Scope, v *backup.Snapshot) string {
	switch {
	case v.Account == scope.Account:
		return typeOf(v)
	case v.Public():
		return public
	}
	return shared
}
