package view

import (
	"maps"
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

// heard is what one host has said that it has, read once: what is concluded from it is about one
// moment, and hosts change it at any.
type heard struct {
	holding regain.Holding
	copies  []state.Record[regain.Copy]
	// whole reports whether every copy is there that the host lists. Otherwise it is about to say
	// anew what it has, or said what nobody can read.
	whole bool
}

// hear reads what hosts have said since a home was restored, by host. What one of them writes that
// nobody can read holds up no other one.
func hear(cache *state.Cache) map[string]heard {
	all := map[string]heard{}
	for _, key := range cache.Keys(state.HoldingRoot) {
		host := state.Tail(key, state.HoldingRoot)
		if strings.Contains(host, "/") {
			continue
		}
		holding, err := state.Load[regain.Holding](cache, key)
		h := heard{holding: holding.Value, whole: err == nil}
		for _, id := range holding.Value.Members {
			c, err := state.Load[regain.Copy](cache, state.HeldCopy(host, id))
			if err != nil || c.Value.Home != holding.Value.Home {
				h.whole = false
				continue
			}
			h.copies = append(h.copies, c)
		}
		all[host] = h
	}
	return all
}

// Missing are the hosts that did not say all that they have since a home was restored.
func Missing(cache *state.Cache, home regain.Home) []string { return missing(cache, home, hear(cache)) }

func missing(cache *state.Cache, home regain.Home, all map[string]heard) []string {
	said := map[string]regain.Holding{}
	for host, h := range all {
		if h.whole {
			said[host] = h.holding
		}
	}
	return regain.Missing(home, cache.Names(state.HostRoot), said, cache.Names(state.GoneRoot))
}

// Copies are what hosts said they have of a database since the home was restored, each with the
// ground on which it is believed, and the hosts that did not say all they have. "" stands for every
// database.
func (h Held) Copies(database string) (copies []regain.Copy, silent []string, err error) {
	home, err := state.Load[regain.Home](h.Cache, state.Restored())
	if err != nil {
		return nil, nil, err
	}
	all := hear(h.Cache)
	for _, host := range slices.Sorted(maps.Keys(all)) {
		for _, c := range all[host].copies {
			id := strings.TrimPrefix(c.Key, state.HoldingPrefix(host))
			if of, _, _ := strings.Cut(id, "."); database != "" && of != database || c.Value.Home != home.Value.ID {
				continue
			}
			if founded, ok := h.Founded(host, id, c.Value); ok {
				copies = append(copies, founded)
			}
		}
	}
	return copies, missing(h.Cache, home.Value, all), nil
}
