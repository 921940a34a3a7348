package reconcile

import (
	"reflect"
	"slices"

	"howdah/internal/control/plan"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// routes returns the writes for endpoints of a database whose records must change.
func (w *world) routes(d *database, layout plan.Layout) []state.Op {
	var ops []state.Op
	wanted := map[string]bool{}
	for _, want := range w.basis(d).Routes(layout) {
		wanted[want.ID] = true
		last, err := state.Load[route.Route](w.cache, state.Route(want.ID))
		if err != nil || !reflect.DeepEqual(last.Value, want) {
			ops = append(ops, state.Put(state.Route(want.ID), want))
		}
	}
	for _, id := range w.routesOf(d.Want.ID) {
		if !wanted[id] {
			ops = append(ops, state.Delete(state.Route(id)))
		}
	}
	return ops
}

// routed knows the routes that databases have, and follows changes. Otherwise a round that makes
// many databases would list the routes of all of them for each.
type routed struct {
	seen int64               // see state.Cache.Since
	of   map[string]string   // the database of a route
	ids  map[string][]string // the routes of a database
}

func (r *routed) follow(cache *state.Cache) {
	keys, now, complete := cache.Since(r.seen, state.RouteRoot)
	r.seen = now
	if !complete {
		r.of, r.ids = map[string]string{}, map[string][]string{}
		keys = cache.Keys(state.RouteRoot)
	}
	for _, key := range keys {
		id := state.Tail(key, state.RouteRoot)
		if database, known := r.of[id]; known {
			r.ids[database] = slices.DeleteFunc(r.ids[database], func(i string) bool { return i == id })
			delete(r.of, id)
			if len(r.ids[database]) == 0 {
				delete(r.ids, database)
			}
		}
		if last, err := state.View[route.Route](cache, key); err == nil {
			r.of[id] = last.Value.Database
			r.ids[last.Value.Database] = append(r.ids[last.Value.Database], id)
		}
	}
}

// routesOf returns the ids of a database's routes.
func (w *world) routesOf(databaseID string) []string {
	w.routed.follow(w.cache)
	return w.routed.ids[databaseID]
}

// departed removes the records of a cluster's instances and custom endpoints that are deleted, once
// nothing of them is left.
func (w *world) departed(d *database, layout plan.Layout) ([]state.Op, error) {
	if d.Cluster == nil {
		return nil, nil
	}
	var ops []state.Op
	var notes []note
	for _, s := range d.Specs {
		if !s.Value.Deleting || w.occupied(d, layout, s.Value.ResourceID) {
			continue
		}
		src, _ := d.seatSource(s.Value.ResourceID)
		notes = append(notes, note{src, "0003", nil}, note{src, "0385", nil})
		ops = append(ops, state.Remove(s.Key, s.Revision), state.Delete(state.Address(s.Value.Address)))
		ops = append(ops, released(s.Value.Former)...)
	}
	ops = append(ops, w.endpointsGo(d, func(e spec.Endpoint) bool { return e.Deleting })...)
	events, err := puts(d, notes, w.now)
	return append(ops, events...), err
}

// endpointsGo returns the removal of those custom endpoints of a cluster that go now.
func (w *world) endpointsGo(d *database, now func(spec.Endpoint) bool) (ops []state.Op) {
	for _, e := range state.LoadAll[spec.Endpoint](w.cache, state.EndpointRoot) {
		if e.Value.Cluster == d.Want.ID && now(e.Value) {
			ops = append(ops, state.Remove(e.Key, e.Revision), state.Delete(state.Address(e.Value.Address)))
			ops = append(ops, released(e.Value.Former)...)
		}
	}
	return ops
}

// occupied reports whether a member has the seat and is more than a copy that is only kept.
func (w *world) occupied(d *database, layout plan.Layout, seat string) bool {
	for _, m := range layout.Members {
		kept := m.Going == plan.Surplus && m.Stopped && len(d.Want.Seats) == 0
		if m.Seat == seat && !kept {
			return true
		}
	}
	return false
}
