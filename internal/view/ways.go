// Package view is what several parts of a control plane derive from the mirrored state
// alone: the API for what it shows, reconcile for what it decides. Records is what users made,
// Wanted the databases that follow from it, and Basis.Input all that the planner decides by. What
// is handed out is shared, and never altered: a change makes another one.
package view

import (
	"net"

	"howdah/internal/edge/seen"
	"howdah/internal/model/route"
	"howdah/internal/state"
)

// Ways are the addresses that edges lead the clients of these routes to, by seat;
// those of the writer are under "". An edge that does not run does not count: its machine
// may be gone, or have forgotten the way; nor does one that still serves another listen
// address than the route's; nor one that did not say that it runs after the revision
// since.
func Ways(cache *state.Cache, routes []route.Route, since int64) map[string][]string {
	ways := map[string][]string{}
	for _, r := range routes {
		seat, ok := r.Seat()
		if !ok {
			continue
		}
		for _, way := range state.LoadAll[route.Way](cache, state.WayPrefix(r.ID)) {
			if way.Value.Listen == r.Listen && saidSo(cache, way.Value.Edge, since) {
				ways[seat] = append(ways[seat], way.Value.Targets...)
			}
		}
	}
	return ways
}

// Moved reports whether an endpoint with this route is served at its new address: the
// route has it, and no edge that runs is at another one.
func Moved(cache *state.Cache, id, address string) bool {
	r, err := state.Load[route.Route](cache, state.Route(id))
	if err != nil {
		return false
	}
	if now, _, err := net.SplitHostPort(r.Value.Listen); err != nil || now != address {
		return false
	}
	for _, way := range state.LoadAll[route.Way](cache, state.WayPrefix(id)) {
		if runs(cache, way.Value.Edge) && way.Value.Listen != r.Value.Listen {
			return false
		}
	}
	return true
}

// Edgeless answers of hosts whether clients would find no primary there: addresses move with
// the edges of hosts, and neither one of that host runs, nor one that serves all hosts.
func Edgeless(cache *state.Cache) func(host string) bool {
	moving, served := false, map[string]bool{}
	for _, e := range state.ViewAll[seen.Status](cache, state.EdgeRoot) {
		moving = moving || e.Value.Own != ""
		if runs(cache, e.Value.Name) {
			served[e.Value.Own] = true
		}
	}
	return func(host string) bool { return moving && !served[""] && !served[host] }
}

// runs: the edge was heard within the lease of its key.
func runs(cache *state.Cache, edge string) bool {
	_, _, found := cache.Raw(state.Runs(edge))
	return found
}

func saidSo(cache *state.Cache, edge string, since int64) bool {
	_, revision, found := cache.Raw(state.Runs(edge))
	return found && revision > since
}
