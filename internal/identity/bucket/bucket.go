// Package bucket has the secrets of roles that let databases into buckets of S3 servers. They are in
// the state, sealed with a key that all control planes have and no host (home.SealKey). A host gets
// one for as long as an export or import of one of its databases lasts; no database ever sees one.
package bucket

import (
	"context"
	"crypto/cipher"
	"errors"
	"fmt"

	"howdah/internal/identity/seal"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Sealer seals the secrets of roles and opens them.
type Sealer struct{ aead cipher.AEAD }

// NewSealer returns a sealer with the home's key.
func NewSealer(key []byte) (*Sealer, error) {
	aead, err := seal.New(key)
	return &Sealer{aead}, err
}

// Seal returns the record with a secret. All other fields must be set before, as what is sealed opens
// for them alone.
func (s *Sealer) Seal(r spec.BucketRole, secret string) spec.BucketRole {
	r.Secret = s.aead.Seal(nil, nil, []byte(secret), bound(r))
	return r
}

// Access returns what lets a database into the bucket of a role.
func (s *Sealer) Access(r spec.BucketRole) (member.Bucket, error) {
	secret, err := s.aead.Open(nil, nil, r.Secret, bound(r))
	if err != nil {
		return member.Bucket{}, fmt.Errorf("open the secret of role %s: %w", r.Name, err)
	}
	return member.Bucket{
		Role: r.Name, Endpoint: r.Endpoint, Region: r.Region, Bucket: r.Bucket, Prefix: r.Prefix, CA: r.CA, AccessKey: r.AccessKey, Secret: string(secret),
	}, nil
}

// bound returns whose the role is, and where its secret logs in. So whoever can write the state cannot
// have it sent to another server, or give it to another account.
func bound(r spec.BucketRole) []byte {
	return fmt.Appendf(nil, "bucket role %q %q %q %q %q %q %q", r.Account, r.Name, r.Endpoint, r.Bucket, r.Prefix, r.AccessKey, r.CA)
}

// Open returns what lets a database into the bucket for a feature, or member.ErrNoRole. seal returns the home's
// key.
func Open(ctx context.Context, store *state.Store, seal func() ([]byte, error), of spec.Common, feature string) (member.Bucket, error) {
	name := of.RoleFor(feature)
	if name == "" {
		return member.Bucket{}, fmt.Errorf("%w: %s has none for %s: associate one, as with AddRoleToDBInstance or AddRoleToDBCluster", member.ErrNoRole, of.Name, feature)
	}
	r, err := state.Get[spec.BucketRole](ctx, store, state.BucketRole(of.Account, name))
	if errors.Is(err, state.ErrNotFound) {
		return member.Bucket{}, fmt.Errorf("%w: the role %s leads to no bucket: the operator makes it by `howdah role add`", member.ErrNoRole, name)
	}
	if err != nil {
		return member.Bucket{}, err
	}
	with, err := seal()
	if err != nil {
		return member.Bucket{}, err
	}
	s, err := NewSealer(with)
	if err != nil {
		return member.Bucket{}, err
	}
	return s.Access(r.Value)
}
