package snapshot

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/option"
	"howdah/internal/aws/wire"
	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/state/format"
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
		v, from, err := k.copied(l.Look, c, in)
		if err == nil {
			err = look.First(copyKey(l, &v, from.Value, in.kmsKey), copyOptions(l, &v, in.optionGroup))
		}
		if err != nil {
			return err
		}
		repository := from.Value.Repository
		if v.Region != from.Value.Region {
			to, ok := l.Looks.CopyRepository()
			if !ok {
				return wire.NewError(api.ErrInvalidParameterCombination,
					"This home has no repository for copies to other regions: make one with `howdah repository add --copies`, or copy within the region %s.", from.Value.Region)
			}
			repository = to.Name
		}
		p, err := k.place(l.Look, c, v, from, repository)
		if err != nil {
			return err
		}
		made = p.Snapshot
		return s.State.Commit(ctx, p.Ops...)
	})
	return made, err
}

// copied is the record of a copy, as far as it does not matter where its data are to be, with the
// snapshot that it is a copy of.
func (k *Kind) copied(l *look.Look, c front.Call, in copying) (backup.Snapshot, Record, error) {
	if text(in.from) == "" {
		return backup.Snapshot{}, Record{}, front.Blank(in.fromParameter)
	}
	r, err := k.FindUsable(l.Source, c.Scope, *in.from, true)
	if err != nil {
		return backup.Snapshot{}, r, err
	}
	from := r.Value
	if from.State != backup.Available {
		return backup.Snapshot{}, r, wire.NewError(k.badState, "Cannot copy the snapshot %s because it is not currently in the available state: it is %s.", from.Name, from.State)
	}
	v := from
	v.Scope, v.Name, v.Automated, v.Shared, v.Operation = c.Scope, wire.Lower(in.to), false, nil, ""
	v.Asked, v.Taken, v.Done, v.First, v.Stored, v.CopyOf = c.Now, c.Now, c.Now, from.Original(), 0, from.ARN(k.ARN, from.Name)
	v.Tags = look.TagsIn(in.tags)
	if wire.Or(in.copyTags, false) && len(in.tags) == 0 {
		v.Tags = from.Tags
	}
	return v, r, look.First(k.checkName(in.toParameter, v.Name), spec.CheckTags(v.Tags), k.Free(l.Source, v.Scope, v.Name), k.Room(l.Source, v.Scope))
}

// Copy is a copy of a snapshot that is about to be made, with the writes that begin it. Whoever asks
// commits them.
type Copy struct {
	Snapshot backup.Snapshot
	// Bytes is what is to be copied. It is 0 if the repository has the data already: then the copy is
	// available at once.
	Bytes int64
	Ops   []state.Op
}

// CopyTo is a copy of a snapshot of the caller's into a repository, in the same account and region.
func (k *Kind) CopyTo(l *look.Look, c front.Call, from, to, repository string) (Copy, error) {
	yes := true
	v, r, err := k.copied(l, c, copying{from: &from, to: &to, fromParameter: "NAME", toParameter: "NEW", copyTags: &yes})
	if err != nil {
		return Copy{}, err
	}
	return k.place(l, c, v, r, repository)
}

// place decides where the data of a copy are to be. Where a repository has them already a copy is
// another record of the same backup, which stays as long as any record needs it. Else the backup is
// copied into a part of the repository that is the copy's own.
func (k *Kind) place(l *look.Look, c front.Call, v backup.Snapshot, r Record, repository string) (Copy, error) {
	from := r.Value
	if err := keepsSecret(l, v, repository); err != nil {
		return Copy{}, err
	}
	held, err := state.Load[backup.Backup](l.Cache, state.Backup(from.Holder(), from.Repository, from.Label))
	if errors.Is(err, state.ErrNotFound) {
		return Copy{}, wire.NewError(k.badState, "The backup of the snapshot %s is not in the repository %s any more.", from.Name, from.Repository)
	}
	if err != nil {
		return Copy{}, err
	}
	// The snapshot is not deleted meanwhile. The backup is written as it is: see Held.
	out := Copy{Snapshot: v, Ops: []state.Op{state.Unchanged(r.Key, r.Revision), Held(held)}}
	if repository != from.Repository {
		twin, ok := twin(l, held.Value, repository)
		if !ok {
			return k.carry(l, c, out, from, held.Value, repository)
		}
		// The backup of the copy is there: nobody needs that of the source.
		out.Ops = []state.Op{state.Unchanged(r.Key, r.Revision), Held(twin)}
		out.Snapshot.Repository, out.Snapshot.Part, out.Snapshot.Label = repository, "", twin.Value.Label
		if backup.IsCopy(twin.Value.Database) {
			out.Snapshot.Part = twin.Value.Database
		}
	}
	began, ended := "0196", "0197"
	if v.Region != from.Region {
		began, ended = "0059", "0060"
	}
	told, err := k.tell(c, v, look.Event(began, from.Name, from.Region), look.Event(ended, from.Name, from.Region))
	out.Ops = append(append(out.Ops, told...), state.Swap(k.Key(v), 0, out.Snapshot))
	return out, err
}

// keepsSecret refuses a copy that would be shown as encrypted, and lie in the clear.
func keepsSecret(l *look.Look, v backup.Snapshot, repository string) error {
	to, err := state.Load[backup.Repository](l.Cache, state.Repository(repository))
	if v.KMSKey == "" || err != nil || to.Value.Encrypted() {
		return nil //nolint:nilerr // that there is none is said later
	}
	return wire.NewError(api.ErrInvalidParameterCombination,
		"The copy cannot be encrypted: the repository %s, where its data would lie, encrypts nothing. Leave KmsKeyId away, or copy into a repository that does.", repository)
}

// twin is the backup in a repository that has the same data as another one.
func twin(l *look.Look, of backup.Backup, repository string) (state.Record[backup.Backup], bool) {
	var all []*backup.Backup
	for _, r := range state.ViewAll[backup.Backup](l.Cache, state.BackupRoot) {
		all = append(all, r.Value)
	}
	found, ok := backup.Twin(all, of, repository)
	if !ok {
		return state.Record[backup.Backup]{}, false
	}
	r, err := state.Load[backup.Backup](l.Cache, state.Backup(found.Database, found.Repository, found.Label))
	return r, err == nil
}

// copyFormat is the format of the home's records from which on every part knows of copies.
const copyFormat = 2

// carry begins the operation that copies a backup into another repository.
func (k *Kind) carry(l *look.Look, c front.Call, out Copy, from backup.Snapshot, held backup.Backup, repository string) (Copy, error) {
	source, err := state.Load[backup.Repository](l.Cache, state.Repository(from.Repository))
	if err != nil {
		return out, wire.NewError(k.badState, "The repository %s, which has the snapshot %s, is not known any more.", from.Repository, from.Name)
	}
	target, err := state.Load[backup.Repository](l.Cache, state.Repository(repository))
	switch {
	case err != nil:
		return out, wire.NewError(api.ErrInvalidParameterValue, "There is no repository %.64q: see `howdah repository list`.", repository)
	case source.Value.Encrypted() != target.Value.Encrypted():
		return out, wire.NewError(api.ErrInvalidParameterCombination,
			"One of the repositories %s and %s is encrypted, and the other one is not. A copy has the files as they are: add a repository that is alike.", from.Repository, repository)
	case damage(l, held) != "":
		return out, wire.NewError(k.badState, "The backup of the snapshot %s is damaged: %s. Copy another one.", from.Name, damage(l, held))
	case format.Heard(l.Cache).Format < copyFormat:
		return out, wire.NewError(k.badState,
			"Nothing can be copied to another repository before every part of this home runs this release: see `howdah status`, upgrade what is older, and try again.")
	}
	v := &out.Snapshot
	v.State, v.Operation, v.Done, v.Label = backup.Copying, newOperation(v.Name), time.Time{}, ""
	v.Repository, v.Part = repository, newPart()
	about := operation.About{Scope: v.Scope, Type: k.ofSource, Name: from.Common().Name, Database: v.Part}
	begin, err := begin(l, c, v.Operation, backup.Copy, about, backup.CopyArgs{
		Snapshot: k.Key(*v), Repository: repository, Source: backup.PartRef{Database: from.Holder(), Repository: from.Repository}, Label: from.Label,
		From: from.Name, Region: from.Region,
	})
	if err != nil {
		return out, err
	}
	started := "0196"
	if v.Region != from.Region {
		started = "0059"
	}
	told, err := k.tell(c, *v, look.Event(started, from.Name, from.Region))
	// A repository is not removed while something is copied into it.
	out.Ops = append(append(out.Ops, told...), begin, state.Swap(k.Key(*v), 0, *v), state.Unchanged(target.Key, target.Revision))
	out.Bytes = stored(l, held)
	return out, err
}

// damage is what is wrong with a backup, also if it is with one that it needs: in the part of a copy
// nobody would know.
func damage(l *look.Look, b backup.Backup) string {
	var all []backup.Backup
	for _, r := range state.ViewAll[backup.Backup](l.Cache, state.BackupPrefix(b.Database)+b.Repository+"/") {
		all = append(all, *r.Value)
	}
	return backup.Damage(all, b)
}

// stored is what a backup takes in its repository, with all that it needs.
func stored(l *look.Look, b backup.Backup) int64 {
	all := b.Stored
	for _, label := range b.Needs {
		if r, err := state.View[backup.Backup](l.Cache, state.Backup(b.Database, b.Repository, label)); err == nil {
			all += r.Value.Stored
		}
	}
	return all
}

// newPart is a name for the part of a copy, which no other one has.
func newPart() string {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("snapshot: no randomness: " + err.Error())
	}
	return backup.CopyPart + hex.EncodeToString(b[:])
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
