package view

import (
	"maps"
	"slices"

	"howdah/internal/model/backup"
	"howdah/internal/state"
)

// archives is where the WAL of databases goes. Nothing in it is altered.
type archives struct {
	version int64 // when a repository changed last: see state.Cache.Changes
	seen    int64 // see state.Cache.Since
	// names has the repositories that there are, and usual is the one of databases that say nothing
	// else; "": there is none.
	names []string
	usual string
	// own has what databases say, by resource id. It has none of those that say what is usual.
	own map[string]chosen
}

// chosen is what the automated backups of a database say.
type chosen struct{ first, second string }

// as returns the archives as they are now. moved says that they are others for some database.
// Records of automated backups come with every new database, and seldom say anything new.
func (a archives) as(cache *state.Cache) (next archives, moved bool) {
	next = a
	if next.version = cache.Changes(state.RepositoryRoot); next.version != a.version || a.version == 0 {
		next.names, next.usual = nil, ""
		for _, r := range state.ViewAll[backup.Repository](cache, state.RepositoryRoot) {
			next.names = append(next.names, r.Value.Name)
			if r.Value.Default {
				next.usual = r.Value.Name
			}
		}
	}
	keys, now, complete := cache.Since(a.seen, state.AutomatedRoot)
	next.seen = now
	switch {
	case !complete || next.usual != a.usual:
		next.own, keys = map[string]chosen{}, cache.Keys(state.AutomatedRoot)
	case len(keys) > 0:
		next.own = maps.Clone(a.own)
	}
	for _, key := range keys {
		id := state.Tail(key, state.AutomatedRoot)
		delete(next.own, id)
		r, err := state.View[backup.Automated](cache, key)
		if err == nil && (r.Value.Second != "" || r.Value.Repository != next.usual) {
			next.own[id] = chosen{r.Value.Repository, r.Value.Second}
		}
	}
	moved = next.usual != a.usual || !slices.Equal(next.names, a.names) || !maps.Equal(next.own, a.own)
	return next, moved
}

// of returns the repositories that the WAL of a database goes to: that of its backups, and that of
// their copies.
func (a archives) of(database string) []string {
	own, ok := a.own[database]
	if !ok || !slices.Contains(a.names, own.first) {
		own.first = a.usual
	}
	var all []string
	for _, name := range []string{own.first, own.second} {
		if slices.Contains(a.names, name) && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
