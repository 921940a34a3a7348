package spare

import (
	"context"
	"errors"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/model/param"
	"howdah/internal/state"
)

// catalogued reports whether the parameters of a version are in the state, or cannot
// be put there now. It puts there what was read before.
func (s *Keeper) catalogued(ctx context.Context, install postgres.Install) bool {
	store := s.Agent.Store
	if store == nil || s.published[install.Full] {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, agent.EtcdTimeout)
	defer cancel()
	key := state.Catalogue(install.Full)
	c, read := s.read[install.Full]
	if !read {
		_, err := state.Get[param.Catalogue](ctx, store, key)
		s.published[install.Full] = err == nil
		return !errors.Is(err, state.ErrNotFound)
	}
	_, err := store.Commit(ctx, state.Swap(key, 0, c))
	if err != nil && !errors.Is(err, state.ErrConflict) {
		s.Agent.Log.Debug("publish parameters", "version", install.Full, "error", err)
		return true
	}
	s.published[install.Full] = true
	delete(s.read, install.Full)
	return true
}

// readCatalogue asks a prepared data directory for the parameters of its version. It
// is published at the next look. Where that does not work databases go on without.
func (s *Keeper) readCatalogue(ctx context.Context, install postgres.Install, dir string) {
	if _, read := s.read[install.Full]; read || s.published[install.Full] {
		return
	}
	modules, err := postgres.Modules(install.Major)
	if err == nil {
		s.read[install.Full], err = postgres.ReadCatalogue(ctx, install, s.User(), dir, modules)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	s.Agent.Log.Error("read parameters: parameter groups of this version cannot be used", "version", install.Full, "error", err)
	delete(s.read, install.Full)
	s.published[install.Full] = true // not again before the agent is restarted
}
