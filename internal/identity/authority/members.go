package authority

import (
	"context"
	"errors"
	"fmt"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/identity/seal"
	"howdah/internal/state"
)

// members is the name under which the authority of members is kept and bound.
const members = "members"

// Members returns the authority that signs the certificates of members. Members show these to the
// gate before etcd and to other members, and to no one else. No other authority signs it, so
// neither etcd nor what hosts talk to trusts it: a member's key opens nothing there. The first call
// makes it.
func Members(ctx context.Context, store *state.Store, sealKey []byte, now time.Time) (*certs.CA, error) {
	for {
		r, err := state.Get[Record](ctx, store, state.MembersAuthority)
		if err == nil {
			return r.Value.openMembers(sealKey)
		}
		if !errors.Is(err, state.ErrNotFound) {
			return nil, err
		}
		fresh, err := newMembers(sealKey, now)
		if err != nil {
			return nil, err
		}
		if _, err := store.Commit(ctx, state.Swap(state.MembersAuthority, 0, fresh)); err != nil && !errors.Is(err, state.ErrConflict) {
			return nil, err
		}
		// Somebody else may have been first. The next round reads what there is.
	}
}

func newMembers(sealKey []byte, now time.Time) (Record, error) {
	ca, err := certs.New("Howdah members")
	if err != nil {
		return Record{}, err
	}
	return sealed(Record{ID: members, Created: now}, ca, sealKey)
}

func (r Record) openMembers(sealKey []byte) (*certs.CA, error) {
	aead, err := seal.New(sealKey)
	if err != nil {
		return nil, err
	}
	key, err := aead.Open(nil, nil, r.Sealed, r.bound())
	if err != nil || r.ID != members {
		return nil, fmt.Errorf("open the authority of members: %w", errors.Join(err, ErrUnknown))
	}
	return certs.ParseCA(r.Cert, key)
}
