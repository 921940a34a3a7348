package reconcile

import (
	"errors"
	"slices"

	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// fewKeys is up to how many changes of instances it is cheaper to look for each of them
// than to look at all.
const fewKeys = 32

// follow takes over the databases of the world before, with the news of instances and
// layouts. It answers false, with nothing taken over, where an instance has to do with
// others, or nobody can tell: then all databases are found anew.
func (w *world) follow(before *world, n news) bool {
	var gone, made []*database
	var records []state.Record[*spec.Instance]
	slices.Sort(n.instances)
	n.instances = slices.Compact(n.instances)
	if len(n.instances) > fewKeys {
		return false
	}
	for _, key := range n.instances {
		old := w.databaseAt(key)
		r, err := state.View[spec.Instance](w.cache, key)
		switch {
		case old != nil && !w.alone(old), err == nil && (r.Value.Cluster != "" || r.Value.Follows()):
			return false
		case old == nil && !w.free(key), old == nil && err == nil && len(w.followers[r.Value.ResourceID]) > 0:
			return false
		case err == nil:
			records = append(records, r)
		case !errors.Is(err, state.ErrNotFound):
			return false // it is told of there
		}
		if old != nil {
			gone = append(gone, old)
		}
	}
	if len(records) > 0 {
		made = w.remake(before, records)
	}
	w.exchange(gone, made)
	for _, key := range n.layouts {
		if d := w.byID[state.Tail(key, state.LayoutRoot)]; d != nil {
			w.findLayout(d)
		}
	}
	return true
}

// databaseAt is the database of an instance that has one of its own, by its key.
func (w *world) databaseAt(key string) *database {
	at := slices.IndexFunc(w.databases, func(d *database) bool { return d.cluster == nil && d.specs[0].Key == key })
	if at < 0 {
		return nil
	}
	return w.databases[at]
}

// free: no cluster had an instance of this key.
func (w *world) free(key string) bool {
	return !slices.ContainsFunc(w.databases, func(d *database) bool {
		return d.cluster != nil && slices.ContainsFunc(d.specs, func(s state.Record[*spec.Instance]) bool { return s.Key == key })
	})
}

// alone: the database follows none, and none follows it.
func (w *world) alone(d *database) bool {
	return !d.follows() && len(w.followers[d.want.ID]) == 0
}

// remake makes the databases of records.
func (w *world) remake(before *world, records []state.Record[*spec.Instance]) []*database {
	named := w.findNamed()
	var made []*database
	for _, i := range records {
		d := w.ofInstance(before, i, plan.Links{}, named)
		w.compare(d, before.byID[d.want.ID])
		w.findLayout(d)
		made = append(made, d)
	}
	return made
}

// exchange puts databases in the places of others. One that was renamed is both.
func (w *world) exchange(gone, made []*database) {
	for _, d := range gone {
		delete(w.byID, d.want.ID)
	}
	for _, d := range made {
		w.byID[d.want.ID] = d
	}
	for _, d := range gone {
		at := slices.Index(w.databases, d)
		if len(made) > 0 {
			w.databases[at], made = made[0], made[1:]
			continue
		}
		w.databases = slices.Delete(w.databases, at, at+1)
	}
	w.databases = append(w.databases, made...)
}
