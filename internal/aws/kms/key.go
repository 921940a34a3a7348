package kms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/kms"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// These bound the waiting time before a deletion, in days.
const leastPending, mostPending = 7, 30

// mostKeys is how many keys an account may have in a region, without those of services.
const mostKeys = 1000

func keyState(k kms.Key) string {
	switch {
	case !k.DeleteAt.IsZero():
		return "PendingDeletion"
	case k.Disabled:
		return "Disabled"
	}
	return "Enabled"
}

func (s *service) createKey(ctx context.Context, c front.Call, in *createKeyInput) (*keyOutput, error) {
	for name, odd := range map[string]bool{
		"KeyUsage": cmp.Or(in.KeyUsage, "ENCRYPT_DECRYPT") != "ENCRYPT_DECRYPT", "KeySpec": cmp.Or(in.KeySpec, "SYMMETRIC_DEFAULT") != "SYMMETRIC_DEFAULT",
		"CustomerMasterKeySpec": cmp.Or(in.CustomerMasterKeySpec, "SYMMETRIC_DEFAULT") != "SYMMETRIC_DEFAULT", "Origin": cmp.Or(in.Origin, "AWS_KMS") != "AWS_KMS",
		"CustomKeyStoreId": in.CustomKeyStoreId != "", "XksKeyId": in.XksKeyId != "", "Policy": in.Policy != "", "MultiRegion": in.MultiRegion,
	} {
		if odd {
			return nil, wire.NewError("UnsupportedOperationException", "This value of %s is not available: keys are symmetric, made here, for one region, and limited by the policies of access keys.", name)
		}
	}
	if len(in.Description) > 8192 {
		return nil, wire.NewError("ValidationException", "Description must have length less than or equal to 8192.")
	}
	var tags []spec.Tag
	for _, t := range in.Tags {
		tags = append(tags, spec.Tag{Key: t.TagKey, Value: t.TagValue})
	}
	if err := spec.CheckTags(tags); err != nil {
		return nil, wire.NewError("TagException", "%s", err)
	}
	if own := s.keysIn(c.Scope); len(own) > mostKeys {
		return nil, wire.NewError("LimitExceededException", "The account has %d keys in this region.", len(own))
	}
	seal, err := s.seal()
	if err != nil {
		return nil, err
	}
	key, err := kms.New(seal, c.Scope, c.Now)
	if err != nil {
		return nil, err
	}
	key.Description, key.Tags = in.Description, tags
	return keyOut(key), s.Commit(ctx, state.Swap(key.Path(), 0, key))
}

// describeKey makes the key of the service's alias if there is none yet, as KMS does.
func (s *service) describeKey(ctx context.Context, c front.Call, in *keyInput) (out *keyOutput, err error) {
	err = s.Retry(ctx, func() error {
		found, err := s.theKey(c, in.KeyId)
		if _, _, alias, _ := kms.Parse(in.KeyId, c.Scope); err != nil && alias == kms.ServiceAlias {
			var ops []state.Op
			if found, ops, err = kms.ForService(s.Cache, s.seal, c.Scope, c.Now); err == nil {
				err = s.Commit(ctx, append(ops, state.Swap(found.Value.Path(), found.Revision, found.Value))...)
			}
		}
		out = keyOut(found.Value)
		return err
	})
	return out, err
}

// theKey returns the key that a request names, in the caller's account and region.
func (s *service) theKey(c front.Call, name string) (kms.Record, error) {
	if name == "" {
		return kms.Record{}, wire.NewError("ValidationException", "1 validation error detected: Value null at 'keyId' failed to satisfy constraint: Member must not be null")
	}
	found, err := kms.Find(s.Cache, c.Scope, name)
	if errors.Is(err, state.ErrNotFound) || err == nil && found.Value.Scope != c.Scope {
		return kms.Record{}, wire.NewError("NotFoundException", "Key '%s' does not exist", kms.ARN(c.Scope, strings.TrimPrefix(name, "arn:aws:kms:")))
	}
	return found, err
}

// changeKey changes a key that users made.
func (s *service) changeKey(ctx context.Context, c front.Call, in *keyInput, change func(*kms.Key) error) (changed kms.Key, err error) {
	err = s.Retry(ctx, func() error {
		found, err := s.theKey(c, in.KeyId)
		if err != nil {
			return err
		}
		changed = found.Value
		if strings.Contains(in.KeyId, "alias/") {
			return wire.NewError("InvalidArnException", "An alias cannot be used here: name the key by its id or its ARN.")
		}
		if changed.Service {
			return wire.NewError("AccessDeniedException", "The key %s is the one of %s: it cannot be changed.", changed.ARN(), kms.ServiceAlias)
		}
		if err := change(&changed); err != nil {
			return err
		}
		return s.Commit(ctx, state.Swap(found.Key, found.Revision, changed))
	})
	return changed, err
}

// inUse refuses to take a key away while databases cannot be opened without it.
func (s *service) inUse(k kms.Key) error {
	users := usersOf(s.Cache, k)
	if len(users) == 0 {
		return nil
	}
	return wire.NewError("KMSInvalidStateException", "%s is in use: the storage of %s is encrypted with it. Delete these databases first.", k.ARN(), strings.Join(users[:min(len(users), 10)], ", "))
}

// usersOf returns the resource ids of the databases whose keys this key opens.
func usersOf(cache *state.Cache, k kms.Key) []string {
	var users []string
	for _, r := range state.ViewAll[kms.Storage](cache, state.StorageKeyRoot) {
		if r.Value.Scope == k.Scope && r.Value.Key == k.ID {
			users = append(users, r.Value.Database)
		}
	}
	slices.Sort(users)
	return users
}

func wrongState(k kms.Key) error {
	return wire.NewError("KMSInvalidStateException", "%s is %s.", k.ARN(), map[string]string{"PendingDeletion": "pending deletion", "Disabled": "disabled", "Enabled": "not pending deletion"}[keyState(k)])
}

func (s *service) scheduleKeyDeletion(ctx context.Context, c front.Call, in *keyInput) (*deletionOutput, error) {
	days := wire.Or(in.PendingWindowInDays, mostPending)
	if days < leastPending || days > mostPending {
		return nil, wire.NewError("ValidationException", "PendingWindowInDays must be between %d and %d.", leastPending, mostPending)
	}
	k, err := s.changeKey(ctx, c, in, func(k *kms.Key) error {
		if !k.DeleteAt.IsZero() {
			return wrongState(*k)
		}
		k.DeleteAt = c.Now.Add(time.Duration(days) * 24 * time.Hour)
		return s.inUse(*k)
	})
	if err != nil {
		return nil, err
	}
	return &deletionOutput{KeyId: k.ARN(), KeyState: keyState(k), DeletionDate: wire.Some(seconds(k.DeleteAt)), PendingWindowInDays: days}, nil
}

// cancelKeyDeletion leaves the key disabled, as KMS does.
func (s *service) cancelKeyDeletion(ctx context.Context, c front.Call, in *keyInput) (*deletionOutput, error) {
	k, err := s.changeKey(ctx, c, in, func(k *kms.Key) error {
		if k.DeleteAt.IsZero() {
			return wrongState(*k)
		}
		k.DeleteAt, k.Disabled = time.Time{}, true
		return nil
	})
	return &deletionOutput{KeyId: k.ARN()}, err
}

func (s *service) disableKey(ctx context.Context, c front.Call, in *keyInput) (*front.Void, error) {
	return s.switchKey(ctx, c, in, true)
}

func (s *service) enableKey(ctx context.Context, c front.Call, in *keyInput) (*front.Void, error) {
	return s.switchKey(ctx, c, in, false)
}

func (s *service) switchKey(ctx context.Context, c front.Call, in *keyInput, off bool) (*front.Void, error) {
	_, err := s.changeKey(ctx, c, in, func(k *kms.Key) error {
		if !k.DeleteAt.IsZero() {
			return wrongState(*k)
		}
		if k.Disabled = off; off {
			return s.inUse(*k)
		}
		return nil
	})
	return &front.Void{}, err
}

// keysIn returns the keys of an account in a region, by id.
func (s *service) keysIn(scope spec.Scope) []kms.Record {
	return state.LoadAll[kms.Key](s.Cache, state.KMSKey(scope.Account, scope.Region, ""))
}

// limitOf returns how many entries a page may have.
func limitOf(in *listInput, most int) (int, error) {
	limit := wire.Or(in.Limit, 100)
	if limit < 1 || limit > most {
		return 0, wire.NewError("ValidationException", "Limit must be between 1 and %d.", most)
	}
	return limit, nil
}

func (s *service) listKeys(_ context.Context, c front.Call, in *listInput) (*listKeysOutput, error) {
	limit, err := limitOf(in, 1000)
	if err != nil {
		return nil, err
	}
	out := &listKeysOutput{Keys: []keyEntry{}}
	for _, r := range s.keysIn(c.Scope) {
		if r.Value.ID <= in.Marker {
			continue
		}
		if len(out.Keys) == limit {
			out.Truncated, out.NextMarker = true, out.Keys[limit-1].KeyId
			break
		}
		out.Keys = append(out.Keys, keyEntry{r.Value.ID, r.Value.ARN()})
	}
	return out, nil
}

// listAliases also lists the service's alias before it has a key, as KMS does.
func (s *service) listAliases(_ context.Context, c front.Call, in *listInput) (*listAliasesOutput, error) {
	if _, err := limitOf(in, 100); err != nil {
		return nil, err
	}
	out := &listAliasesOutput{Aliases: []aliasEntry{}}
	entry := aliasEntry{AliasName: kms.ServiceAlias, AliasArn: kms.AliasARN(c.Scope, kms.ServiceAlias)}
	alias, err := state.Load[kms.Alias](s.Cache, state.KMSAlias(c.Account, c.Region, kms.ServiceAlias))
	if err == nil {
		entry.TargetKeyId = alias.Value.Key
		entry.CreationDate, entry.LastUpdatedDate = wire.Some(seconds(alias.Value.Created)), wire.Some(seconds(alias.Value.Created))
	}
	if in.KeyId != "" {
		key, err := s.theKey(c, in.KeyId)
		if err != nil {
			return nil, err
		}
		if key.Value.ID != entry.TargetKeyId {
			return out, nil
		}
	}
	out.Aliases = append(out.Aliases, entry)
	return out, nil
}

// DeleteKeys deletes the keys whose time has come. No database is made with such a key.
func DeleteKeys(ctx context.Context, client *state.Client, now time.Time) error {
	var failed []error
	for _, r := range state.LoadAll[kms.Key](client.Cache, state.KMSKeyRoot) {
		k := r.Value
		if k.DeleteAt.IsZero() || now.Before(k.DeleteAt) || len(usersOf(client.Cache, k)) > 0 {
			continue
		}
		if err := client.Commit(ctx, state.Remove(r.Key, r.Revision)); err != nil && !errors.Is(err, state.ErrConflict) {
			failed = append(failed, fmt.Errorf("delete key %s: %w", k.ARN(), err))
		}
	}
	return errors.Join(failed...)
}
