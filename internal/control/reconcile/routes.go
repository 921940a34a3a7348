package reconcile

import (
	"fmt"
	"reflect"
	"slices"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// routes are the endpoints of a database whose record must change.
func (w *world) routes(d *database, layout plan.Layout) []state.Op {
	var ops []state.Op
	wanted := map[string]bool{}
	for _, want := range w.wantedRoutes(d, layout) {
		wanted[want.ID] = true
		last, err := state.Load[route.Route](w.cache, state.Route(want.ID))
		if err != nil || !reflect.DeepEqual(last.Value, want) {
			ops = append(ops, state.Put(state.Route(want.ID), want))
		}
	}
	for _, id := range w.routesOf(d.want.ID) {
		if !wanted[id] {
			ops = append(ops, state.Delete(state.Route(id)))
		}
	}
	return ops
}

// routed knows the routes that databases have. It follows what changes: a round that
// makes many databases would otherwise list those of all for each of them.
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

// routesOf are the ids of the routes that a database has.
func (w *world) routesOf(databaseID string) []string {
	w.routed.follow(w.cache)
	return w.routed.ids[databaseID]
}

func (w *world) wantedRoutes(d *database, layout plan.Layout) []route.Route {
	if d.want.State == member.Absent {
		return nil
	}
	base := route.Route{Database: d.want.ID, Follows: d.want.Upstream != nil, Members: []route.Member{}, Allow: w.passing(d)}
	for _, m := range layout.Members {
		if !m.Leaving {
			base.Members = append(base.Members, route.Member{
				Name: m.Name, Seat: m.Seat, Host: m.Host, Address: m.Listen(),
			})
		}
	}
	if d.cluster == nil {
		i := d.specs[0].Value
		return []route.Route{with(base, i.ResourceID, route.Leader, w.listen(d, i.ResourceID, i.Address, i.Former), i.Port)}
	}
	return w.clusterRoutes(d, base)
}

func (w *world) clusterRoutes(d *database, base route.Route) []route.Route {
	c := d.cluster.Value
	all := []route.Route{
		with(base, route.Writer(c.ResourceID), route.Leader, w.listen(d, route.Writer(c.ResourceID), c.Address, c.Former), c.Port),
		with(base, route.Reader(c.ResourceID), route.Readers, w.listen(d, route.Reader(c.ResourceID), c.ReaderAddress, c.ReaderFormer), c.Port),
	}
	for _, s := range d.specs {
		if s.Value.Deleting {
			continue
		}
		r := with(base, s.Value.ResourceID, route.Seats, w.listen(d, s.Value.ResourceID, s.Value.Address, s.Value.Former), c.Port)
		r.Seats = []string{s.Value.ResourceID}
		all = append(all, r)
	}
	for _, e := range d.custom {
		if !e.Deleting {
			r := with(base, e.ResourceID, route.Seats, w.listen(d, e.ResourceID, e.Address, e.Former), c.Port)
			r.Seats, r.ReadersOnly = e.Seats(shared(d.specs))
			all = append(all, r)
		}
	}
	return all
}

func with(base route.Route, id string, kind route.Kind, address string, port int) route.Route {
	base.ID, base.Kind, base.Listen = id, kind, fmt.Sprintf("%s:%d", address, port)
	return base
}

// departed removes the records of a cluster's instances and custom endpoints that
// are deleted and of which nothing is left.
func (w *world) departed(d *database, layout plan.Layout) ([]state.Op, error) {
	if d.cluster == nil {
		return nil, nil
	}
	var ops []state.Op
	var notes []note
	for _, s := range d.specs {
		if !s.Value.Deleting || w.occupied(d, layout, s.Value.ResourceID) {
			continue
		}
		src, _ := d.seatSource(s.Value.ResourceID)
		notes = append(notes, note{src, "0003", nil}, note{src, "0385", nil})
		ops = append(ops, state.Remove(s.Key, s.Revision), state.Delete(state.Address(s.Value.Address)))
		ops = append(ops, released(s.Value.Former)...)
	}
	for _, e := range state.LoadAll[spec.Endpoint](w.cache, state.EndpointRoot) {
		if e.Value.Cluster == d.want.ID && e.Value.Deleting {
			ops = append(ops, state.Remove(e.Key, e.Revision), state.Delete(state.Address(e.Value.Address)))
			ops = append(ops, released(e.Value.Former)...)
		}
	}
	events, err := puts(d, notes, w.now)
	return append(ops, events...), err
}

// occupied: a member has the seat and is more than a copy that is only kept.
func (w *world) occupied(d *database, layout plan.Layout, seat string) bool {
	for _, m := range layout.Members {
		kept := m.Going == plan.Surplus && m.Stopped && len(d.want.Seats) == 0
		if m.Seat == seat && !kept {
			return true
		}
	}
	return false
}
