package reconcile

import (
	"howdah/internal/route"
	"howdah/internal/state"
)

// Ways are the addresses that edges lead the clients of these routes to, by seat;
// those of the writer are under "". An edge that still serves another listen
// address than the route's does not count.
func Ways(cache *state.Cache, routes []route.Route) map[string][]string {
	ways := map[string][]string{}
	for _, r := range routes {
		seat, ok := r.Seat()
		if !ok {
			continue
		}
		for _, way := range state.LoadAll[route.Way](cache, state.WayPrefix(r.ID)) {
			if way.Value.Listen == r.Listen {
				ways[seat] = append(ways[seat], way.Value.Targets...)
			}
		}
	}
	return ways
}
