package database

import (
	"errors"
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/identity/kms"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Encrypt resolves what a request says of a new database's storage, and makes its key where it
// is to be encrypted: with the KMS key that was named, or with the one that accounts have.
func (l *Sight) Encrypt(c front.Call, common *spec.Common, asked *bool, named *string) ([]state.Op, error) {
	if named == nil && !wire.Or(asked, false) {
		return nil, nil
	}
	var key *kms.Record
	if named != nil {
		found, err := l.UsableKey(c.Scope, *named)
		if err != nil {
			return nil, err
		}
		key = &found
	}
	if !wire.Or(asked, false) {
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "KmsKeyId is only valid for encrypted storage: give StorageEncrypted=true too.")
	}
	return l.encryptWith(c, common, key)
}

// EncryptReplica: a replica is encrypted if its source is. In the source's region it has the
// same KMS key; in another one it needs one of there.
func (l *Sight) EncryptReplica(c front.Call, common *spec.Common, from spec.Common, named *string) ([]state.Op, error) {
	if from.StorageKey == "" {
		if named == nil {
			return nil, nil
		}
		if _, err := l.UsableKey(c.Scope, *named); err != nil {
			return nil, err
		}
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "You cannot create an encrypted Read Replica from an unencrypted DB instance.")
	}
	key := kms.ARN(from.Scope, from.StorageKey)
	switch {
	case named == nil && from.Scope != c.Scope:
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "An encrypted Read Replica in another region needs KmsKeyId, a key of the region %s.", c.Region)
	case named != nil:
		given, err := l.UsableKey(c.Scope, *named)
		if err != nil {
			return nil, err
		}
		if from.Scope == c.Scope && given.Value.ID != from.StorageKey {
			return nil, wire.NewError(api.ErrInvalidParameterCombination, "A Read Replica has the KMS key of its source in the same region: leave KmsKeyId away.")
		}
		key = given.Value.ARN()
	}
	found, err := l.UsableKey(c.Scope, key)
	if err != nil {
		return nil, err
	}
	return l.encryptWith(c, common, &found)
}

// EncryptRestored: what was encrypted is encrypted again. key is the id of the KMS key that it had
// in its scope, or "". Another one may be named, also to encrypt what was not.
func (l *Sight) EncryptRestored(c front.Call, common *spec.Common, from spec.Scope, key string, named *string) ([]state.Op, error) {
	if key == "" && named == nil {
		return nil, nil
	}
	name := kms.ARN(from, key)
	if named != nil {
		name = *named
	}
	found, err := l.UsableKey(c.Scope, name)
	if err != nil {
		return nil, err
	}
	return l.encryptWith(c, common, &found)
}

// encryptWith makes the key of a database's storage; nil: with the account's own KMS key.
func (l *Sight) encryptWith(c front.Call, common *spec.Common, key *kms.Record) ([]state.Op, error) {
	if err := look.First(l.CanEncrypt(), l.keepsSecrets()); err != nil {
		return nil, err
	}
	var ops []state.Op
	if key == nil {
		own, more, err := kms.ForService(l.Cache, l.Seal, c.Scope, c.Now)
		if err != nil {
			return nil, err
		}
		key, ops = &own, more
	}
	seal, err := l.Seal()
	if err != nil {
		return nil, err
	}
	storage, err := key.Value.NewStorage(seal, common.ResourceID)
	if errors.Is(err, kms.ErrNotUsable) {
		return nil, notAccessible(key.Value.ARN())
	}
	if err != nil {
		return nil, err
	}
	common.StorageKey = key.Value.ID
	used := key.Value
	used.Uses++ // whoever wants to delete it looks again
	return append(ops, state.Swap(used.Path(), key.Revision, used), state.Swap(state.StorageKey(common.ResourceID), 0, storage)), nil
}

// keepsSecrets refuses encrypted storage where backups of it would lie in the clear: what is shown as
// encrypted is so in each of its snapshots.
func (l *Sight) keepsSecrets() error {
	r, ok := l.Repository()
	if !ok || r.Encrypted() {
		return nil
	}
	return wire.NewError(api.ErrInvalidParameterCombination, "Storage cannot be encrypted: the repository %s, where its backups would go, encrypts nothing. "+
		"Make one that does the default (`howdah repository add NAME … --default`), and try again.", r.Name)
}

// UsableKey finds the KMS key of a name, in the caller's account and region.
func (l *Sight) UsableKey(scope spec.Scope, name string) (kms.Record, error) {
	found, err := kms.Find(l.Cache, scope, name)
	if err != nil || found.Value.Scope != scope || !found.Value.Usable() {
		return found, notAccessible(name)
	}
	return found, nil
}

func notAccessible(name string) error {
	return wire.NewError(rds.ErrKMSKeyNotAccessible, "The specified KMS key [%s] does not exist, is not enabled or you do not have permissions to access it. Give the id or the ARN of an enabled key as KmsKeyId, or %s.", name, kms.ServiceAlias)
}

// CanEncrypt refuses encrypted storage where no host has any, and says why.
func (s *Source) CanEncrypt() error {
	var why []string
	for _, h := range s.Looks.Hosts() {
		if h.WhyPlain == "" {
			return nil
		}
		why = append(why, h.Name+" cannot: "+h.WhyPlain)
	}
	const most = 3
	if more := len(why) - most; more > 0 {
		why = append(why[:most:most], "nor can the other hosts")
	}
	return wire.NewError(api.ErrInvalidParameterCombination,
		"Encryption at rest not supported for this configuration: no host can encrypt storage (%s). Put the directory of a host on a file system that can, or on an encrypted disk.", strings.Join(why, "; "))
}

// EncryptedOut is what is shown of a database's storage: encrypted if it was asked for, and the
// hosts see that it is.
func EncryptedOut(c spec.Common, f plan.Facts) (encrypted *bool, key *string) {
	is := c.StorageKey != "" && !slices.ContainsFunc(f.Layout.Members, func(m plan.Placed) bool {
		r := f.Reports[member.ID(f.Want.ID, m.Name)]
		return (r.Patroni || r.Postgres) && r.Encryption == member.NotEncrypted
	})
	if is {
		key = wire.Some(kms.ARN(c.Scope, c.StorageKey))
	}
	return wire.Some(is), key
}
