package server

import (
	"errors"
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/identity/kms"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// encrypt resolves what a request says of a new database's storage, and makes its key where it
// is to be encrypted: with the KMS key that was named, or with the one that accounts have.
func (l *look) encrypt(c call, common *spec.Common, asked *bool, named *string) ([]state.Op, error) {
	if named == nil && !or(asked, false) {
		return nil, nil
	}
	var key *kmsRecord
	if named != nil {
		found, err := l.usableKey(c.Scope, *named)
		if err != nil {
			return nil, err
		}
		key = &found
	}
	if !or(asked, false) {
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "KmsKeyId is only valid for encrypted storage: give StorageEncrypted=true too.")
	}
	return l.encryptWith(c, common, key)
}

// encryptReplica: a replica is encrypted if its source is. In the source's region it has the
// same KMS key; in another one it needs one of there.
func (l *look) encryptReplica(c call, common *spec.Common, from spec.Common, named *string) ([]state.Op, error) {
	if from.StorageKey == "" {
		if named == nil {
			return nil, nil
		}
		if _, err := l.usableKey(c.Scope, *named); err != nil {
			return nil, err
		}
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "You cannot create an encrypted Read Replica from an unencrypted DB instance.")
	}
	key := kms.ARN(from.Scope, from.StorageKey)
	switch {
	case named == nil && from.Scope != c.Scope:
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "An encrypted Read Replica in another region needs KmsKeyId, a key of the region %s.", c.Region)
	case named != nil:
		given, err := l.usableKey(c.Scope, *named)
		if err != nil {
			return nil, err
		}
		if from.Scope == c.Scope && given.Value.ID != from.StorageKey {
			return nil, wire.NewError(api.ErrInvalidParameterCombination, "A Read Replica has the KMS key of its source in the same region: leave KmsKeyId away.")
		}
		key = given.Value.ARN()
	}
	found, err := l.usableKey(c.Scope, key)
	if err != nil {
		return nil, err
	}
	return l.encryptWith(c, common, &found)
}

// kmsRecord is a KMS key as it is kept; of a new one the revision is 0.
type kmsRecord = state.Record[kms.Key]

// encryptWith makes the key of a database's storage; nil: with the account's own KMS key.
func (l *look) encryptWith(c call, common *spec.Common, key *kmsRecord) ([]state.Op, error) {
	if err := l.canEncrypt(); err != nil {
		return nil, err
	}
	var ops []state.Op
	if key == nil {
		own, more, err := l.serviceKey(c)
		if err != nil {
			return nil, err
		}
		key, ops = &own, more
	}
	seal, err := l.Home.SealKey()
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
	return append(ops, state.Swap(keyOfKMS(used), key.Revision, used), state.Swap(state.StorageKey(common.ResourceID), 0, storage)), nil
}

func keyOfKMS(k kms.Key) string { return state.KMSKey(k.Account, k.Region, k.ID) }

// serviceKey is the key that the account's databases in a region have unless another one is
// named. The first one makes it.
func (l *look) serviceKey(c call) (kmsRecord, []state.Op, error) {
	name := state.KMSAlias(c.Account, c.Region, kms.ServiceAlias)
	alias, err := state.Load[kms.Alias](l.Cache, name)
	if err == nil {
		found, err := state.Load[kms.Key](l.Cache, state.KMSKey(c.Account, c.Region, alias.Value.Key))
		return found, nil, err
	}
	if !errors.Is(err, state.ErrNotFound) {
		return kmsRecord{}, nil, err
	}
	seal, err := l.Home.SealKey()
	if err != nil {
		return kmsRecord{}, nil, err
	}
	key, err := kms.New(seal, c.Scope, c.Now)
	key.Service, key.Description = true, "Default key that protects my RDS database volumes when no other key is defined"
	return kmsRecord{Value: key}, []state.Op{state.Swap(name, 0, kms.Alias{Key: key.ID, Created: c.Now})}, err
}

// usableKey finds the KMS key of a name, in the caller's account and region.
func (l *look) usableKey(scope spec.Scope, name string) (kmsRecord, error) {
	found, err := l.findKey(scope, name)
	if err != nil || found.Value.Scope != scope || !found.Value.Usable() {
		return found, notAccessible(name)
	}
	return found, nil
}

// findKey finds the KMS key of a name: state.ErrNotFound where there is none.
func (s *Server) findKey(scope spec.Scope, name string) (kmsRecord, error) {
	at, id, alias, ok := kms.Parse(name, scope)
	if !ok || at.Account != scope.Account {
		return kmsRecord{}, state.ErrNotFound
	}
	if alias != "" {
		found, err := state.Load[kms.Alias](s.Cache, state.KMSAlias(at.Account, at.Region, alias))
		if err != nil {
			return kmsRecord{}, err
		}
		id = found.Value.Key
	}
	return state.Load[kms.Key](s.Cache, state.KMSKey(at.Account, at.Region, id))
}

func notAccessible(name string) error {
	return wire.NewError(rds.ErrKMSKeyNotAccessible, "The specified KMS key [%s] does not exist, is not enabled or you do not have permissions to access it. Give the id or the ARN of an enabled key as KmsKeyId, or %s.", name, kms.ServiceAlias)
}

// canEncrypt refuses encrypted storage where no host has any, and says why.
func (s *Server) canEncrypt() error {
	var why []string
	for _, h := range s.hosts() {
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

// encryptedOut is what is shown of a database's storage: encrypted if it was asked for, and the
// hosts see that it is.
func encryptedOut(c spec.Common, f plan.Facts) (encrypted *bool, key *string) {
	is := c.StorageKey != "" && !slices.ContainsFunc(f.Layout.Members, func(m plan.Placed) bool {
		r := f.Reports[member.ID(f.Want.ID, m.Name)]
		return (r.Patroni || r.Postgres) && r.Encryption == member.NotEncrypted
	})
	if is {
		key = some(kms.ARN(c.Scope, c.StorageKey))
	}
	return some(is), key
}
