package snapshot

import (
	"context"
	"errors"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/option"
	"howdah/internal/aws/wire"
	"howdah/internal/model/backup"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// copying is what a caller wants to have copied.
type copying struct {
	from, to            *string
	fromParameter       string
	toParameter         string
	kmsKey, optionGroup *string
	tags                []rds.Tag
	copyTags            *bool
}

// copyDBSnapshot copies a DB snapshot.
func (s *service) copyDBSnapshot(ctx context.Context, c front.Call, in *rds.CopyDBSnapshotMessage) (*rds.CopyDBSnapshotResult, error) {
	err := look.RefuseAsked(map[string]bool{
		"TargetCustomAvailabilityZone": in.TargetCustomAvailabilityZone != nil, "SnapshotTarget": wire.Or(in.SnapshotTarget, "region") != "region",
		"CopyOptionGroup": wire.Or(in.CopyOptionGroup, false), "SnapshotAvailabilityZone": in.SnapshotAvailabilityZone != nil,
		"TagSpecifications": len(in.TagSpecifications) > 0,
	})
	if err != nil {
		return nil, err
	}
	made, err := s.copy(ctx, c, Instance, copying{
		from: in.SourceDBSnapshotIdentifier, to: in.TargetDBSnapshotIdentifier, fromParameter: "SourceDBSnapshotIdentifier", toParameter: "TargetDBSnapshotIdentifier",
		kmsKey: in.KmsKeyId, optionGroup: in.OptionGroupName, tags: in.Tags, copyTags: in.CopyTags,
	})
	if err != nil {
		return nil, err
	}
	return &rds.CopyDBSnapshotResult{DBSnapshot: s.instanceOut(made)}, nil
}

// copyDBClusterSnapshot copies a DB cluster snapshot.
func (s *service) copyDBClusterSnapshot(ctx context.Context, c front.Call, in *rds.CopyDBClusterSnapshotMessage) (*rds.CopyDBClusterSnapshotResult, error) {
	made, err := s.copy(ctx, c, Cluster, copying{
		from: in.SourceDBClusterSnapshotIdentifier, to: in.TargetDBClusterSnapshotIdentifier, fromParameter: "SourceDBClusterSnapshotIdentifier",
		toParameter: "TargetDBClusterSnapshotIdentifier", kmsKey: in.KmsKeyId, tags: in.Tags, copyTags: in.CopyTags,
	})
	if err != nil {
		return nil, err
	}
	return &rds.CopyDBClusterSnapshotResult{DBClusterSnapshot: s.clusterOut(made)}, nil
}

func (s *service) copy(ctx context.Context, c front.Call, k *Kind, in copying) (made backup.Snapshot, err error) {
	err = s.State.Retry(ctx, func() error {
		l := s.Of(c.Account)
		v, ops, err := k.copy(l, c, in)
		if err != nil {
			return err
		}
		made = v
		return s.State.Commit(ctx, append(ops, state.Swap(k.Key(v), 0, v))...)
	})
	return made, err
}

// copy is the record of a copy, with what else is to be written. In the same region a copy is
// another record of the same backup, which stays as long as any record needs it. In another region
// the backup is copied into the home's repository for copies.
func (k *Kind) copy(l *database.Sight, c front.Call, in copying) (backup.Snapshot, []state.Op, error) {
	if text(in.from) == "" {
		return backup.Snapshot{}, nil, front.Blank(in.fromParameter)
	}
	r, err := k.FindUsable(l.Looks, c.Scope, *in.from, true)
	if err != nil {
		return backup.Snapshot{}, nil, err
	}
	from := r.Value
	if from.State != backup.Available {
		return backup.Snapshot{}, nil, wire.NewError(k.badState, "Cannot copy the snapshot %s because it is not currently in the available state: it is %s.", from.Name, from.State)
	}
	v := from
	v.Scope, v.Name, v.Automated, v.Shared, v.Operation = c.Scope, wire.Lower(in.to), false, nil, ""
	v.Asked, v.Taken, v.Done, v.First, v.Stored, v.CopyOf = c.Now, c.Now, c.Now, from.Original(), 0, from.ARN(k.ARN, from.Name)
	v.Tags = look.TagsIn(in.tags)
	if wire.Or(in.copyTags, false) && len(in.tags) == 0 {
		v.Tags = from.Tags
	}
	err = look.First(k.checkName(in.toParameter, v.Name), spec.CheckTags(v.Tags), k.Free(l.Looks, v.Scope, v.Name), k.Room(l.Looks, v.Scope),
		copyKey(l, &v, from, in.kmsKey), copyOptions(l, &v, in.optionGroup))
	if err != nil {
		return v, nil, err
	}
	held, err := state.Load[backup.Backup](l.Cache, state.Backup(from.Database, from.Repository, from.Label))
	if errors.Is(err, state.ErrNotFound) {
		return v, nil, wire.NewError(k.badState, "The backup of the snapshot %s is not in the repository %s any more.", from.Name, from.Repository)
	}
	if err != nil {
		return v, nil, err
	}
	ops, err := k.place(l, c, v, from)
	// It is not deleted meanwhile. The backup is written as it is: see Held.
	return v, append(ops, state.Unchanged(r.Key, r.Revision), Held(held)), err
}

// place decides where the data of a copy are to be.
func (k *Kind) place(l *database.Sight, c front.Call, v, from backup.Snapshot) ([]state.Op, error) {
	if v.Region == from.Region {
		return k.tell(c, v, look.Event("0196", from.Name, v.Region), look.Event("0197", from.Name, v.Region))
	}
	to, ok := l.Looks.CopyRepository()
	if !ok {
		return nil, wire.NewError(api.ErrInvalidParameterCombination,
			"This home has no repository for copies to other regions: make one with `howdah repository add --copies`, or copy within the region %s.", from.Region)
	}
	if to.Name == from.Repository {
		return k.tell(c, v, look.Event("0059", from.Name, from.Region), look.Event("0060", from.Name, from.Region))
	}
	return nil, wire.NewError(api.ErrInvalidParameterCombination,
		"The snapshot %s is in the repository %s, and copies for other regions go to the repository %s. A snapshot is not copied from one repository to another: "+
			"copy it within the region %s, or have the automated backups of %s copied, by StartDBInstanceAutomatedBackupsReplication.",
		from.Name, from.Repository, to.Name, from.Region, from.Common().Name)
}

// tell raises events of a copy. RDS has none for clusters.
func (k *Kind) tell(c front.Call, v backup.Snapshot, all ...look.Told) ([]state.Op, error) {
	if k == Cluster {
		return nil, nil
	}
	return look.TellOf(c, k.about(v), v.Name, all...)
}

// Held writes the record of a backup as it is, in the transaction that begins to use it. Whoever was
// about to remove the record, because nobody used it, looks again.
func Held(b state.Record[backup.Backup]) state.Op { return state.Swap(b.Key, b.Revision, b.Value) }

// copyKey is the KMS key of a copy: that of the snapshot, unless another one is asked for. Of an
// encrypted snapshot of another account or region, one has to be.
func copyKey(l *database.Sight, v *backup.Snapshot, from backup.Snapshot, named *string) error {
	if named == nil {
		if from.KMSKey != "" && from.Scope != v.Scope {
			return wire.NewError(api.ErrInvalidParameterCombination, "The snapshot %s is encrypted: give KmsKeyId, a key of this account and of the region %s.", from.Name, v.Region)
		}
		return nil
	}
	key, err := l.UsableKey(v.Scope, *named)
	if err != nil {
		return err
	}
	v.KMSKey = key.Value.ID
	keep(v, func(c *spec.Common) { c.StorageKey = v.KMSKey })
	return nil
}

// copyOptions has a copy belong to another option group.
func copyOptions(l *database.Sight, v *backup.Snapshot, name *string) error {
	if name == nil {
		return nil
	}
	i := *v.Instance
	i.Scope, i.OptionGroup = v.Scope, *name
	v.Instance = &i
	return option.Check(l.Look, &i.OptionGroup, i.Common)
}

// keep changes what a snapshot keeps of its database.
func keep(v *backup.Snapshot, change func(*spec.Common)) {
	if v.Cluster != nil {
		c := *v.Cluster
		change(&c.Common)
		v.Cluster = &c
		return
	}
	i := *v.Instance
	change(&i.Common)
	v.Instance = &i
}
