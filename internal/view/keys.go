package view

import (
	"slices"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// keys is what is known of keys of members' own, for the plan of a database.
func (b Basis) keys() plan.Keys {
	w, id := b.Wanted, b.Want.ID
	without := slices.ContainsFunc(b.Layout.Members, func(m plan.Placed) bool { return !m.OwnKey })
	k := plan.Keys{
		Authority: w.parts.authority, Everywhere: w.parts.ownKeys,
		Admitted: without && b.admits(id, &b.Layout), FollowersOwn: b.Layout.OnlyOwnKeys || b.allOwn(),
	}
	for at, n := w.source(b.Database), 0; at != nil && n <= len(w.databases); at, n = w.source(at), n+1 {
		l := layoutOf(w.cache, at.Want.ID)
		k.Admitted = k.Admitted && b.admits(at.Want.ID, l)
		k.SourceOnly = k.SourceOnly || l.OnlyOwnKeys
	}
	return k
}

// layoutOf is an empty one where it is not there, or cannot be read.
func layoutOf(cache *state.Cache, database string) *plan.Layout {
	r, err := state.View[plan.Layout](cache, state.Layout(database))
	if err != nil {
		return &plan.Layout{}
	}
	return r.Value
}

// admits: members of a database take those of this one by keys of their own. Who is
// stopped, or on a lost host, takes its newest settings over before it serves again.
func (b Basis) admits(database string, l *plan.Layout) bool {
	for _, m := range l.Members {
		if m.Leaving || m.Stopped || !b.host(m.Host).Alive {
			continue
		}
		told, _ := LastAssigned(b.Wanted.cache, m.Host, member.ID(database, m.Name))
		if told.Value.Keys == nil || !slices.Contains(told.Value.Keys.Admits, b.Want.ID) {
			return false
		}
		runs, ok := patroni.FindMember(b.Wanted.cache.Raw, database, m.Name)
		if ok && runs.Generation() < told.Value.Generation {
			return false
		}
	}
	return true
}

// allOwn: all members of databases below this one show keys of their own.
func (b Basis) allOwn() bool {
	for _, id := range b.Want.Admits {
		if id == b.Want.ID || b.Wanted.byID[id] == nil {
			continue
		}
		for _, m := range layoutOf(b.Wanted.cache, id).Members {
			report, err := state.View[member.Report](b.Wanted.cache, state.Report(m.Host, member.ID(id, m.Name)))
			if !m.OwnKey || m.Served && (err != nil || !report.Value.OwnKey) {
				return false
			}
		}
	}
	return true
}
