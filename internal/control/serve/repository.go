package serve

import (
	"context"

	"howdah/internal/identity/repository"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// opener returns what tells hosts how to get to repositories.
func (cfg Config) opener(store *state.Store) func(ctx context.Context, name, database string) (member.Repository, error) {
	return func(ctx context.Context, name, database string) (member.Repository, error) {
		return repository.Open(ctx, store, cfg.Home.SealKey, name, database)
	}
}
