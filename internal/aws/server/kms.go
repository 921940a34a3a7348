package server

import (
	"cmp"
	"context"
	"encoding/json"
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

// The part of KMS that gives KmsKeyId a meaning: keys that databases' storage is encrypted with.
// Nothing can be encrypted with them by a call.

// kmsService is what package front needs to know of it.
func (s *Server) kmsService() *front.Service {
	return &front.Service{
		Name: "kms", Target: "TrentService",
		Actions: map[string]front.Action{
			"CancelKeyDeletion":   onKMS(s, s.cancelKeyDeletion, s.namedKey),
			"CreateKey":           onKMS(s, s.createKey, everyKey[createKeyInput]),
			"DescribeKey":         onKMS(s, s.describeKey, s.namedKey),
			"DisableKey":          onKMS(s, s.disableKey, s.namedKey),
			"EnableKey":           onKMS(s, s.enableKey, s.namedKey),
			"ListAliases":         onKMS(s, s.listAliases, everyKey[listInput]),
			"ListKeys":            onKMS(s, s.listKeys, everyKey[listInput]),
			"ScheduleKeyDeletion": onKMS(s, s.scheduleKeyDeletion, s.namedKey),
		},
		Refused: func(action string) error {
			return wire.NewError("UnknownOperationException", "The operation %s is not available here.", action)
		},
	}
}

// onKMS makes an action of a handler with typed input and output; resource is what a request
// names, for policies.
func onKMS[In, Out any](s *Server, handler func(context.Context, call, *In) (*Out, error), resource func(call, *In) string) front.Action {
	may := func(ctx context.Context, c call, in *In) error {
		if err := s.fresh(ctx); err != nil {
			return err
		}
		// Keys have no tags that could be looked up: what a policy denies by them it denies of
		// every key, and what it allows by them it allows of none.
		named := resource(c, in)
		return c.May(named, c.Context(nil), named == "*")
	}
	return front.OnJSON(may, func(ctx context.Context, c call, in *In) (any, error) { return handler(ctx, c, in) })
}

func everyKey[In any](call, *In) string { return "*" }

// seconds is a time as KMS writes it.
type seconds time.Time

func (s seconds) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%.3f", float64(time.Time(s).UnixMilli())/1000), nil
}

func (s *seconds) UnmarshalJSON(text []byte) error {
	var number float64
	if err := json.Unmarshal(text, &number); err != nil {
		return err
	}
	*s = seconds(time.UnixMilli(int64(number * 1000)))
	return nil
}

// The window of a deletion, in days.
const leastPending, mostPending = 7, 30

// mostKeys is how many keys that are no service's an account may have in a region.
const mostKeys = 1000

type createKeyInput struct {
	Description           string
	KeyUsage              string
	KeySpec               string
	CustomerMasterKeySpec string
	Origin                string
	CustomKeyStoreId      string
	XksKeyId              string
	Policy                string
	MultiRegion           bool
	Tags                  []struct{ TagKey, TagValue string }
}

type keyInput struct {
	KeyId               string
	PendingWindowInDays *int
}

type listInput struct {
	KeyId  string
	Limit  *int
	Marker string
}

type keyMetadata struct {
	AWSAccountId          string
	KeyId                 string
	Arn                   string
	CreationDate          seconds
	Enabled               bool
	Description           string
	KeyUsage              string
	KeyState              string
	DeletionDate          *seconds `json:",omitempty"`
	Origin                string
	KeyManager            string
	CustomerMasterKeySpec string
	KeySpec               string
	EncryptionAlgorithms  []string
	MultiRegion           bool
}

type keyOutput struct{ KeyMetadata keyMetadata }

type deletionOutput struct {
	KeyId               string
	KeyState            string   `json:",omitempty"`
	DeletionDate        *seconds `json:",omitempty"`
	PendingWindowInDays int      `json:",omitempty"`
}

type keyEntry struct{ KeyId, KeyArn string }

type listKeysOutput struct {
	Keys       []keyEntry
	NextMarker string `json:",omitempty"`
	Truncated  bool
}

type aliasEntry struct {
	AliasName       string
	AliasArn        string
	TargetKeyId     string   `json:",omitempty"`
	CreationDate    *seconds `json:",omitempty"`
	LastUpdatedDate *seconds `json:",omitempty"`
}

type listAliasesOutput struct {
	Aliases   []aliasEntry
	Truncated bool
}

// namedKey is the ARN of the key that a request names.
func (s *Server) namedKey(c call, in *keyInput) string {
	if found, err := s.findKey(c.Scope, in.KeyId); err == nil {
		return found.Value.ARN()
	}
	return kms.ARN(c.Scope, in.KeyId)
}

func kmsKeyOut(k kms.Key) *keyOutput {
	out := keyMetadata{
		AWSAccountId: k.Account, KeyId: k.ID, Arn: k.ARN(), CreationDate: seconds(k.Created), Enabled: k.Usable(), Description: k.Description,
		KeyUsage: "ENCRYPT_DECRYPT", KeyState: keyState(k), Origin: "AWS_KMS", KeyManager: "CUSTOMER",
		CustomerMasterKeySpec: "SYMMETRIC_DEFAULT", KeySpec: "SYMMETRIC_DEFAULT", EncryptionAlgorithms: []string{"SYMMETRIC_DEFAULT"},
	}
	if k.Service {
		out.KeyManager = "AWS"
	}
	if !k.DeleteAt.IsZero() {
		out.DeletionDate = some(seconds(k.DeleteAt))
	}
	return &keyOutput{out}
}

func keyState(k kms.Key) string {
	switch {
	case !k.DeleteAt.IsZero():
		return "PendingDeletion"
	case k.Disabled:
		return "Disabled"
	}
	return "Enabled"
}

func (s *Server) createKey(ctx context.Context, c call, in *createKeyInput) (*keyOutput, error) {
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
	seal, err := s.Home.SealKey()
	if err != nil {
		return nil, err
	}
	key, err := kms.New(seal, c.Scope, c.Now)
	if err != nil {
		return nil, err
	}
	key.Description, key.Tags = in.Description, tags
	return kmsKeyOut(key), s.commit(ctx, state.Swap(keyOfKMS(key), 0, key))
}

// describeKey makes the key of the service's alias if there is none yet, as KMS does.
func (s *Server) describeKey(ctx context.Context, c call, in *keyInput) (out *keyOutput, err error) {
	err = s.retry(ctx, func() error {
		found, err := s.theKey(c, in.KeyId)
		if _, _, alias, _ := kms.Parse(in.KeyId, c.Scope); err != nil && alias == kms.ServiceAlias {
			var ops []state.Op
			if found, ops, err = s.look(c.Account).serviceKey(c); err == nil {
				err = s.commit(ctx, append(ops, state.Swap(keyOfKMS(found.Value), found.Revision, found.Value))...)
			}
		}
		out = kmsKeyOut(found.Value)
		return err
	})
	return out, err
}

// theKey finds the key that a request names, in the caller's account and region.
func (s *Server) theKey(c call, name string) (kmsRecord, error) {
	if name == "" {
		return kmsRecord{}, wire.NewError("ValidationException", "1 validation error detected: Value null at 'keyId' failed to satisfy constraint: Member must not be null")
	}
	found, err := s.findKey(c.Scope, name)
	if errors.Is(err, state.ErrNotFound) || err == nil && found.Value.Scope != c.Scope {
		return kmsRecord{}, wire.NewError("NotFoundException", "Key '%s' does not exist", kms.ARN(c.Scope, strings.TrimPrefix(name, "arn:aws:kms:")))
	}
	return found, err
}

// changeKey changes a key that users made.
func (s *Server) changeKey(ctx context.Context, c call, in *keyInput, change func(*kms.Key) error) (changed kms.Key, err error) {
	err = s.retry(ctx, func() error {
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
		return s.commit(ctx, state.Swap(found.Key, found.Revision, changed))
	})
	return changed, err
}

// inUse refuses to take a key away while databases cannot be opened without it.
func (s *Server) inUse(k kms.Key) error {
	users := s.usersOf(k)
	if len(users) == 0 {
		return nil
	}
	return wire.NewError("KMSInvalidStateException", "%s is in use: the storage of %s is encrypted with it. Delete these databases first.", k.ARN(), strings.Join(users[:min(len(users), 10)], ", "))
}

// usersOf are the resource ids of the databases whose key opens by this one.
func (s *Server) usersOf(k kms.Key) []string {
	var users []string
	for _, r := range state.ViewAll[kms.Storage](s.Cache, state.StorageKeyRoot) {
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

func (s *Server) scheduleKeyDeletion(ctx context.Context, c call, in *keyInput) (*deletionOutput, error) {
	days := or(in.PendingWindowInDays, mostPending)
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
	return &deletionOutput{KeyId: k.ARN(), KeyState: keyState(k), DeletionDate: some(seconds(k.DeleteAt)), PendingWindowInDays: days}, nil
}

// cancelKeyDeletion leaves the key disabled, as KMS does.
func (s *Server) cancelKeyDeletion(ctx context.Context, c call, in *keyInput) (*deletionOutput, error) {
	k, err := s.changeKey(ctx, c, in, func(k *kms.Key) error {
		if k.DeleteAt.IsZero() {
			return wrongState(*k)
		}
		k.DeleteAt, k.Disabled = time.Time{}, true
		return nil
	})
	return &deletionOutput{KeyId: k.ARN()}, err
}

func (s *Server) disableKey(ctx context.Context, c call, in *keyInput) (*void, error) {
	return s.switchKey(ctx, c, in, true)
}

func (s *Server) enableKey(ctx context.Context, c call, in *keyInput) (*void, error) {
	return s.switchKey(ctx, c, in, false)
}

func (s *Server) switchKey(ctx context.Context, c call, in *keyInput, off bool) (*void, error) {
	_, err := s.changeKey(ctx, c, in, func(k *kms.Key) error {
		if !k.DeleteAt.IsZero() {
			return wrongState(*k)
		}
		if k.Disabled = off; off {
			return s.inUse(*k)
		}
		return nil
	})
	return &void{}, err
}

// keysIn are the keys of an account in a region, by id.
func (s *Server) keysIn(scope spec.Scope) []kmsRecord {
	return state.LoadAll[kms.Key](s.Cache, state.KMSKey(scope.Account, scope.Region, ""))
}

// limitOf is how many entries a page may have.
func limitOf(in *listInput, most int) (int, error) {
	limit := or(in.Limit, 100)
	if limit < 1 || limit > most {
		return 0, wire.NewError("ValidationException", "Limit must be between 1 and %d.", most)
	}
	return limit, nil
}

func (s *Server) listKeys(_ context.Context, c call, in *listInput) (*listKeysOutput, error) {
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

// listAliases has the service's alias also before it has a key, as KMS does.
func (s *Server) listAliases(_ context.Context, c call, in *listInput) (*listAliasesOutput, error) {
	if _, err := limitOf(in, 100); err != nil {
		return nil, err
	}
	out := &listAliasesOutput{Aliases: []aliasEntry{}}
	entry := aliasEntry{AliasName: kms.ServiceAlias, AliasArn: kms.AliasARN(c.Scope, kms.ServiceAlias)}
	alias, err := state.Load[kms.Alias](s.Cache, state.KMSAlias(c.Account, c.Region, kms.ServiceAlias))
	if err == nil {
		entry.TargetKeyId = alias.Value.Key
		entry.CreationDate, entry.LastUpdatedDate = some(seconds(alias.Value.Created)), some(seconds(alias.Value.Created))
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

// deleteKeys deletes the keys whose time has come. No database is made with such a one.
func (s *Server) deleteKeys(ctx context.Context) error {
	var failed []error
	for _, r := range state.LoadAll[kms.Key](s.Cache, state.KMSKeyRoot) {
		k := r.Value
		if k.DeleteAt.IsZero() || s.now().Before(k.DeleteAt) || len(s.usersOf(k)) > 0 {
			continue
		}
		if err := s.commit(ctx, state.Remove(r.Key, r.Revision)); err != nil && !errors.Is(err, state.ErrConflict) {
			failed = append(failed, fmt.Errorf("delete key %s: %w", k.ARN(), err))
		}
	}
	return errors.Join(failed...)
}
