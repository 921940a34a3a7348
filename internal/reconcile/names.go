package reconcile

import (
	"howdah/internal/edge/seen"
	"howdah/internal/hostapi"
	"howdah/internal/member"
	"howdah/internal/state"
)

// parts is what all parts of the home have in common.
type parts struct {
	version int64 // when one of them changed last: see state.Cache.Changes
	// ownNames: they know members by names that no other database has. One of an older
	// release, also one that is away just now, would not find them: an edge would lead
	// nobody there.
	ownNames bool
}

// as answers the parts as they are now.
func (p parts) as(cache *state.Cache) parts {
	now := cache.Changes(state.HostRoot, state.EdgeRoot, state.ControlRoot)
	if now == p.version && now != 0 {
		return p
	}
	return parts{version: now, ownNames: allOf(cache, state.HostRoot, func(h *member.Host) bool { return h.OwnNames }) &&
		allOf(cache, state.EdgeRoot, func(e *seen.Status) bool { return e.OwnNames }) &&
		allOf(cache, state.ControlRoot, func(c *hostapi.ControlMember) bool { return c.OwnNames })}
}

// allOf: all records below a root are such ones. One that cannot be read is none.
func allOf[T any](cache *state.Cache, root string, such func(*T) bool) bool {
	records := state.ViewAll[T](cache, root)
	for _, r := range records {
		if !such(r.Value) {
			return false
		}
	}
	return len(records) == len(cache.Keys(root))
}
