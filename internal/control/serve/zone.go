package serve

import (
	"context"
	"errors"

	"howdah/internal/model/zone"
	"howdah/internal/state"
)

// setZone has the home's DNS zone as this control plane was told, and returns it. The state has it, so
// it is the same for all control planes: what the last one that was told says counts. Names, and
// certificates with them, follow by themselves: package view.
func (cfg Config) setZone(ctx context.Context, store *state.Store) (zone.Zone, error) {
	for {
		now, err := state.Get[zone.Setting](ctx, store, state.DNSZone())
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return "", err
		}
		if cfg.Zone == nil || *cfg.Zone == now.Value.Zone {
			return now.Value.Zone, nil
		}
		op := state.Swap(state.DNSZone(), now.Revision, zone.Setting{Zone: *cfg.Zone})
		if *cfg.Zone == "" {
			op = state.Remove(now.Key, now.Revision)
		}
		if _, err := store.Commit(ctx, op); errors.Is(err, state.ErrConflict) {
			continue // another control plane was told at the same time
		} else if err != nil {
			return "", err
		}
		cfg.Log.Info("databases have names in another DNS zone", "zone", string(*cfg.Zone), "before", string(now.Value.Zone))
		return *cfg.Zone, nil
	}
}
