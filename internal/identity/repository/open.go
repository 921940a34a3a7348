package repository

import (
	"context"

	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// Open returns what opens a repository for a database as Access does, from what the state has. It
// returns state.ErrNotFound if there is no such repository. seal returns the home's key.
func Open(ctx context.Context, store *state.Store, seal func() ([]byte, error), name, database string) (member.Repository, error) {
	r, err := state.Get[backup.Repository](ctx, store, state.Repository(name))
	if err != nil {
		return member.Repository{}, err
	}
	with, err := seal()
	if err != nil {
		return member.Repository{}, err
	}
	s, err := NewSealer(with)
	if err != nil {
		return member.Repository{}, err
	}
	return s.Access(r.Value, database)
}
