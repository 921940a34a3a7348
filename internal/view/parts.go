package view

import (
	"howdah/internal/edge/seen"
	"howdah/internal/identity/authority"
	"howdah/internal/identity/certs"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// parts is what all parts of the home have in common.
type parts struct {
	version int64 // when one of them changed last: see state.Cache.Changes
	// ownNames: they know members by names that no other database has. One of an older
	// release, also one that is away just now, would not find them: an edge would lead
	// nobody there.
	ownNames bool
	// authority is the fingerprint of the authority of members, where all control planes
	// have gates for them; "": not all. ownKeys: all hosts can give members keys of their own.
	authority string
	ownKeys   bool
}

// controlPlane is what counts here of what a control plane says of itself.
type controlPlane struct {
	OwnNames bool   `json:"own_names"`
	Gate     string `json:"gate"`
}

// as answers the parts as they are now.
func (p parts) as(cache *state.Cache) parts {
	now := cache.Changes(state.HostRoot, state.EdgeRoot, state.ControlRoot)
	if now == p.version && now != 0 {
		return p
	}
	p = parts{
		version: now,
		ownNames: allOf(cache, state.HostRoot, func(h *member.Host) bool { return h.OwnNames }) &&
			allOf(cache, state.EdgeRoot, func(e *seen.Status) bool { return e.OwnNames }) &&
			allOf(cache, state.ControlRoot, func(c *controlPlane) bool { return c.OwnNames }),
		ownKeys: allOf(cache, state.HostRoot, func(h *member.Host) bool { return h.OwnKeys }),
	}
	if allOf(cache, state.ControlRoot, func(c *controlPlane) bool { return c.Gate != "" }) {
		p.authority = membersAuthority(cache)
	}
	return p
}

// membersAuthority is the fingerprint of the authority of members. The control plane makes
// it before it says that it has a gate.
func membersAuthority(cache *state.Cache) string {
	r, err := state.Load[authority.Record](cache, state.MembersAuthority)
	if err != nil {
		return ""
	}
	cert, err := certs.Pair{CertPEM: r.Value.Cert}.Leaf()
	if err != nil {
		return ""
	}
	return certs.Fingerprint(cert)
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
