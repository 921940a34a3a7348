package kms

import (
	"context"

	"howdah/internal/state"
)

// Open returns the key of a member's directory as ForMember does, from what the state has.
func Open(ctx context.Context, store *state.Store, seal func() ([]byte, error), database, member string) ([]byte, error) {
	storage, err := state.Get[Storage](ctx, store, state.StorageKey(database))
	if err != nil {
		return nil, err
	}
	s := storage.Value
	key, err := state.Get[Key](ctx, store, state.KMSKey(s.Account, s.Region, s.Key))
	if err != nil {
		return nil, err
	}
	with, err := seal()
	if err != nil {
		return nil, err
	}
	return s.ForMember(with, key.Value, member)
}
