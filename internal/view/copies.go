package view

import (
	"errors"
	"slices"
	"strings"

	"howdah/internal/model/regain"
	"howdah/internal/state"
)

// Told are the copies that hosts have told of since the restoration with this id, as they said
// it: Founded says what of it is believed.
func Told(cache *state.Cache, id string) (copies []regain.Copy) {
	for _, key := range cache.Keys(state.HoldingRoot) {
		if !strings.Contains(state.Tail(key, state.HoldingRoot), "/") {
			continue
		}
		if c, err := state.Load[regain.Copy](cache, key); err == nil && c.Value.Home == id {
			copies = append(copies, c.Value)
		}
	}
	return copies
}

// Missing are the hosts that did not say all that they have since a home was restored.
func Missing(cache *state.Cache, home regain.Home) ([]string, error) {
	said := map[string]regain.Holding{}
	for _, key := range cache.Keys(state.HoldingRoot) {
		host := state.Tail(key, state.HoldingRoot)
		if strings.Contains(host, "/") {
			continue
		}
		holding, err := state.Load[regain.Holding](cache, key)
		if err != nil {
			return nil, err
		}
		_, whole, err := copiesOf(cache, host, holding.Value)
		if err != nil {
			return nil, err
		}
		if whole {
			said[host] = holding.Value
		}
	}
	return regain.Missing(home, cache.Names(state.HostRoot), said, cache.Names(state.GoneRoot)), nil
}

// copiesOf are those that a host lists. Not whole: it is about to say it anew, and these are the
// ones before.
func copiesOf(cache *state.Cache, host string, holding regain.Holding) (copies []state.Record[regain.Copy], whole bool, err error) {
	for _, id := range holding.Members {
		c, err := state.Load[regain.Copy](cache, state.HeldCopy(host, id))
		if errors.Is(err, state.ErrNotFound) || err == nil && c.Value.Home != holding.Home {
			return copies, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		copies = append(copies, c)
	}
	return copies, true, nil
}

// Copies are what hosts said they have since the home was restored, each with the ground on which
// it is believed, and missing those that did not say it.
func (h Held) Copies() (copies []regain.Copy, missing []string, err error) {
	home, err := state.Load[regain.Home](h.Cache, state.Restored())
	if err != nil {
		return nil, nil, err
	}
	if missing, err = Missing(h.Cache, home.Value); err != nil {
		return nil, nil, err
	}
	for _, holding := range state.LoadAll[regain.Holding](h.Cache, state.HoldingRoot) {
		host := state.Tail(holding.Key, state.HoldingRoot)
		if strings.Contains(host, "/") {
			continue
		}
		listed, _, err := copiesOf(h.Cache, host, holding.Value)
		if err != nil {
			return nil, nil, err
		}
		for _, c := range listed {
			if founded, ok := h.Founded(host, strings.TrimPrefix(c.Key, state.HoldingPrefix(host)), c.Value); ok {
				copies = append(copies, founded)
			}
		}
	}
	copies = slices.DeleteFunc(copies, func(c regain.Copy) bool { return c.Home != home.Value.ID })
	return copies, missing, nil
}
