package reconcile

import (
	"fmt"
	"reflect"
	"slices"

	"howdah/internal/member"
	"howdah/internal/plan"
	"howdah/internal/route"
	"howdah/internal/spec"
	"howdah/internal/state"
)

// writerSuffix ends the id of a cluster's writer route.
const writerSuffix = "-writer"

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

func (w *world) routesOf(databaseID string) []string {
	var ids []string
	for _, r := range state.LoadAll[route.Route](w.cache, state.RouteRoot) {
		if r.Value.Database == databaseID {
			ids = append(ids, r.Value.ID)
		}
	}
	return ids
}

func (w *world) wantedRoutes(d *database, layout plan.Layout) []route.Route {
	if d.want.State == member.Absent {
		return nil
	}
	base := route.Route{Database: d.want.ID, Follows: d.want.Upstream != nil, Members: []route.Member{}}
	for _, m := range layout.Members {
		if !m.Leaving {
			base.Members = append(base.Members, route.Member{
				Name: m.Name, Seat: m.Seat, Host: m.Host, Address: m.Listen(),
			})
		}
	}
	if d.cluster == nil {
		i := d.specs[0].Value
		return []route.Route{with(base, i.ResourceID, route.Leader, i.Address, i.Port)}
	}
	return w.clusterRoutes(d, base)
}

func (w *world) clusterRoutes(d *database, base route.Route) []route.Route {
	c := d.cluster.Value
	all := []route.Route{
		with(base, c.ResourceID+writerSuffix, route.Leader, c.Address, c.Port),
		with(base, c.ResourceID+"-reader", route.Readers, c.ReaderAddress, c.Port),
	}
	for _, s := range d.specs {
		if s.Value.Deleting {
			continue
		}
		r := with(base, s.Value.ResourceID, route.Seats, s.Value.Address, c.Port)
		r.Seats = []string{s.Value.ResourceID}
		all = append(all, r)
	}
	for _, e := range state.LoadAll[spec.Endpoint](w.cache, state.EndpointRoot) {
		if e.Value.Cluster == c.ResourceID && !e.Value.Deleting {
			all = append(all, custom(base, e.Value, c, values(d.specs)))
		}
	}
	return all
}

func with(base route.Route, id string, kind route.Kind, address string, port int) route.Route {
	base.ID, base.Kind, base.Listen = id, kind, fmt.Sprintf("%s:%d", address, port)
	return base
}

// custom is the route of a custom endpoint.
func custom(base route.Route, e spec.Endpoint, c spec.Cluster, instances []spec.Instance) route.Route {
	r := with(base, e.ResourceID, route.Seats, e.Address, c.Port)
	r.Seats, r.ReadersOnly = EndpointSeats(e, instances)
	return r
}

// EndpointSeats resolves the lists of a custom endpoint of a cluster with these
// instances: a static one names its instances, an exclusion list takes all others.
func EndpointSeats(e spec.Endpoint, instances []spec.Instance) (seats []string, readersOnly bool) {
	for _, i := range instances {
		listed := slices.Contains(e.Static, i.ResourceID)
		if len(e.Static) == 0 {
			listed = !slices.Contains(e.Excluded, i.ResourceID)
		}
		if listed && !i.Deleting {
			seats = append(seats, i.ResourceID)
		}
	}
	return seats, e.Type == "READER"
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
		notes = append(notes, note{src, "0003", nil})
		ops = append(ops, state.Remove(s.Key, s.Revision), state.Delete(state.Address(s.Value.Address)))
	}
	for _, e := range state.LoadAll[spec.Endpoint](w.cache, state.EndpointRoot) {
		if e.Value.Cluster == d.want.ID && e.Value.Deleting {
			ops = append(ops, state.Remove(e.Key, e.Revision), state.Delete(state.Address(e.Value.Address)))
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
