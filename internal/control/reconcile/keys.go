package reconcile

import (
	"slices"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// keys is what is known of keys of members' own, for the plan of a database.
func (w *world) keys(d *database) plan.Keys {
	l := d.layout.Value
	without := slices.ContainsFunc(l.Members, func(m plan.Placed) bool { return !m.OwnKey })
	k := plan.Keys{
		Authority: w.parts.authority, Everywhere: w.parts.ownKeys,
		Admitted: without && w.admits(d, d), FollowersOwn: l.OnlyOwnKeys || w.allOwn(d),
	}
	for at, n := w.source(d), 0; at != nil && n <= len(w.databases); at, n = w.source(at), n+1 {
		k.Admitted = k.Admitted && w.admits(at, d)
		k.SourceOnly = k.SourceOnly || at.layout.Value.OnlyOwnKeys
	}
	return k
}

// source is the database that one follows; nil if it follows none.
func (w *world) source(d *database) *database {
	if d.want.Upstream == nil || len(d.specs) == 0 {
		return nil
	}
	return w.byID[d.specs[0].Value.Source]
}

// admits: members of a database take those of another one by keys of their own. Who is
// stopped, or on a lost host, takes its newest settings over before it serves again.
func (w *world) admits(d, whom *database) bool {
	for _, m := range d.layout.Value.Members {
		id := member.ID(d.want.ID, m.Name)
		if m.Leaving || m.Stopped || !w.alive(m.Host) {
			continue
		}
		told, _ := w.lastAssigned(m.Host, id)
		if told.Value.Keys == nil || !slices.Contains(told.Value.Keys.Admits, whom.want.ID) {
			return false
		}
		runs, ok := patroni.FindMember(w.cache.Raw, d.want.ID, m.Name)
		if ok && runs.Generation() < told.Value.Generation {
			return false
		}
	}
	return true
}

// allOwn: all members of databases below one show keys of their own.
func (w *world) allOwn(d *database) bool {
	for _, id := range d.want.Admits {
		below := w.byID[id]
		if below == nil || below == d {
			continue
		}
		for _, m := range below.layout.Value.Members {
			report, err := state.Load[member.Report](w.cache, state.Report(m.Host, member.ID(id, m.Name)))
			if !m.OwnKey || m.Served && (err != nil || !report.Value.OwnKey) {
				return false
			}
		}
	}
	return true
}
