package snapshot

import (
	"context"
	"regexp"
	"slices"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/kms"
	"howdah/internal/model/backup"
	"howdah/internal/state"
)

// restore is the one attribute that a snapshot has: which accounts may restore it.
const restore = "restore"

var accountForm = regexp.MustCompile(`^[0-9]{12}$`)

// describeDBSnapshotAttributes says with whom a DB snapshot is shared.
func (s *service) describeDBSnapshotAttributes(ctx context.Context, c front.Call, in *rds.DescribeDBSnapshotAttributesMessage) (*rds.DescribeDBSnapshotAttributesResult, error) {
	v, err := s.own(ctx, c, Instance, in.DBSnapshotIdentifier)
	if err != nil {
		return nil, err
	}
	return &rds.DescribeDBSnapshotAttributesResult{DBSnapshotAttributesResult: attributesOut(v)}, nil
}

// describeDBClusterSnapshotAttributes says with whom a DB cluster snapshot is shared.
func (s *service) describeDBClusterSnapshotAttributes(ctx context.Context, c front.Call, in *rds.DescribeDBClusterSnapshotAttributesMessage) (*rds.DescribeDBClusterSnapshotAttributesResult, error) {
	v, err := s.own(ctx, c, Cluster, in.DBClusterSnapshotIdentifier)
	if err != nil {
		return nil, err
	}
	return &rds.DescribeDBClusterSnapshotAttributesResult{DBClusterSnapshotAttributesResult: clusterAttributesOut(v)}, nil
}

// modifyDBSnapshotAttribute changes with whom a DB snapshot is shared.
func (s *service) modifyDBSnapshotAttribute(ctx context.Context, c front.Call, in *rds.ModifyDBSnapshotAttributeMessage) (*rds.ModifyDBSnapshotAttributeResult, error) {
	v, err := s.share(ctx, c, Instance, in.DBSnapshotIdentifier, in.AttributeName, in.ValuesToAdd, in.ValuesToRemove)
	if err != nil {
		return nil, err
	}
	return &rds.ModifyDBSnapshotAttributeResult{DBSnapshotAttributesResult: attributesOut(v)}, nil
}

// modifyDBClusterSnapshotAttribute changes with whom a DB cluster snapshot is shared.
func (s *service) modifyDBClusterSnapshotAttribute(ctx context.Context, c front.Call, in *rds.ModifyDBClusterSnapshotAttributeMessage) (*rds.ModifyDBClusterSnapshotAttributeResult, error) {
	v, err := s.share(ctx, c, Cluster, in.DBClusterSnapshotIdentifier, in.AttributeName, in.ValuesToAdd, in.ValuesToRemove)
	if err != nil {
		return nil, err
	}
	return &rds.ModifyDBClusterSnapshotAttributeResult{DBClusterSnapshotAttributesResult: clusterAttributesOut(v)}, nil
}

// own is a snapshot of the caller's as it is now.
func (s *service) own(ctx context.Context, c front.Call, k *Kind, identifier *string) (backup.Snapshot, error) {
	if err := s.State.Fresh(ctx); err != nil {
		return backup.Snapshot{}, err
	}
	r, err := k.Find(s.Looks, c.Scope, text(identifier))
	return r.Value, err
}

func (s *service) share(ctx context.Context, c front.Call, k *Kind, identifier, attribute *string, add, remove []string) (backup.Snapshot, error) {
	return s.change(ctx, c, k, identifier, func(v *backup.Snapshot) ([]state.Op, error) {
		if name := text(attribute); name != restore {
			return nil, wire.NewError(api.ErrInvalidParameterValue, "Invalid AttributeName: %s. The one attribute of a snapshot is restore.", name)
		}
		for _, account := range slices.Concat(add, remove) {
			if account != backup.Everyone && !accountForm.MatchString(account) {
				return nil, wire.NewError(api.ErrInvalidParameterValue, "Invalid account %s: ValuesToAdd and ValuesToRemove take the 12 digits of an account, or all.", account)
			}
		}
		all := slices.Concat(v.Shared, add)
		slices.Sort(all)
		v.Shared = slices.DeleteFunc(slices.Compact(all), func(account string) bool { return slices.Contains(remove, account) })
		return nil, s.mayShare(k, *v)
	})
}

// mayShare refuses to share what the others could not restore.
func (s *service) mayShare(k *Kind, v backup.Snapshot) error {
	if len(v.Shared) == 0 {
		return nil
	}
	switch {
	case v.Automated:
		return wire.NewError(k.badState, "The snapshot %s is automated and cannot be shared: copy it, and share the copy.", v.Name)
	case v.State != backup.Available:
		return wire.NewError(k.badState, "The snapshot %s is not in the available state: it is %s.", v.Name, v.State)
	case len(v.Shared) > look.MaxShared:
		return wire.NewError(rds.ErrSharedSnapshotQuotaExceeded, "A snapshot can be shared with %d accounts at most.", look.MaxShared)
	case v.KMSKey != "" && v.Public():
		return wire.NewError(api.ErrInvalidParameterValue, "The snapshot %s is encrypted and cannot be made public.", v.Name)
	}
	if v.KMSKey == "" {
		return nil
	}
	key, err := state.Load[kms.Key](s.Looks.Cache, state.KMSKey(v.Account, v.Region, v.KMSKey))
	if err == nil && key.Value.Service {
		return wire.NewError(k.badState, "The snapshot %s is encrypted with the default key of RDS and cannot be shared: copy it with a key of your own.", v.Name)
	}
	return nil
}

func attributesOut(v backup.Snapshot) *rds.DBSnapshotAttributesResult {
	return &rds.DBSnapshotAttributesResult{
		DBSnapshotIdentifier: wire.Some(v.Name),
		DBSnapshotAttributes: []rds.DBSnapshotAttribute{{AttributeName: wire.Some(restore), AttributeValues: wire.List(v.Shared)}},
	}
}

func clusterAttributesOut(v backup.Snapshot) *rds.DBClusterSnapshotAttributesResult {
	return &rds.DBClusterSnapshotAttributesResult{
		DBClusterSnapshotIdentifier: wire.Some(v.Name),
		DBClusterSnapshotAttributes: []rds.DBClusterSnapshotAttribute{{AttributeName: wire.Some(restore), AttributeValues: wire.List(v.Shared)}},
	}
}
