package view

import (
	"maps"
	"slices"
	"strings"

	"howdah/internal/model/regain"
	"howdah/internal/state"
)

// heard is what one host has said that it has, read once: what is concluded from it is about one
// moment, and hosts change it at any.
type heard struct {
	holding regain.Holding
	read    bool                   // whether the holding could be read
	copies  map[string]regain.Copy // by the ids of members: all that could be read
}

// hear reads what hosts have said since a home was restored, by host. What one of them writes that
// nobody can read holds up no other one.
func hear(cache *state.Cache) map[string]*heard {
	all := map[string]*heard{}
	for _, key := range cache.Keys(state.HoldingRoot) {
		host, id, isCopy := strings.Cut(state.Tail(key, state.HoldingRoot), "/")
		h := all[host]
		if h == nil {
			h = &heard{copies: map[string]regain.Copy{}}
			all[host] = h
		}
		if !isCopy {
			holding, err := state.Load[regain.Holding](cache, key)
			h.holding, h.read = holding.Value, err == nil
		} else if c, err := state.Load[regain.Copy](cache, key); err == nil {
			h.copies[id] = c.Value
		}
	}
	return all
}

// listed are the members of which the host lists a copy that is there. It is whole if every copy
// is there that the host lists. Otherwise the host is about to say anew what it has, or said what
// nobody can read.
func (h *heard) listed() (ids []string, whole bool) {
	whole = h.read
	for _, id := range h.holding.Members {
		if c, there := h.copies[id]; there && c.Home == h.holding.Home {
			ids = append(ids, id)
		} else {
			whole = false
		}
	}
	return ids, whole
}

// Told are the copies that hosts have told of since the restoration with this id, as they said
// it, also those that they do not list: Founded says what of it is believed.
func Told(cache *state.Cache, id string) (copies []regain.Copy) {
	all := hear(cache)
	for _, host := range slices.Sorted(maps.Keys(all)) {
		for _, member := range slices.Sorted(maps.Keys(all[host].copies)) {
			if c := all[host].copies[member]; c.Home == id {
				copies = append(copies, c)
			}
		}
	}
	return copies
}

// Missing are the hosts that did not say all that they have since a home was restored.
func Missing(cache *state.Cache, home regain.Home) []string { return missing(cache, home, hear(cache)) }

func missing(cache *state.Cache, home regain.Home, all map[string]*heard) []string {
	said := map[string]regain.Holding{}
	for host, h := range all {
		if _, whole := h.listed(); whole {
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
		ids, _ := all[host].listed()
		for _, id := range ids {
			c := all[host].copies[id]
			if of, _, _ := strings.Cut(id, "."); database != "" && of != database || c.Home != home.Value.ID {
				continue
			}
			if founded, ok := h.Founded(host, id, c); ok {
				copies = append(copies, founded)
			}
		}
	}
	return copies, missing(h.Cache, home.Value, all), nil
}
