package edge

import (
	"howdah/internal/model/route"
	"howdah/internal/state"
	"howdah/internal/state/format"
)

// newer returns an error if the home's records are of a newer release than this edge.
func (e *Edge) newer() error { return format.Heard(e.cache).Check(e.Version) }

// readRoutes returns the routes that this edge leads. While the records are of a newer release, it
// returns the routes that it read last, and the edge goes on leading them to whoever is primary.
func (e *Edge) readRoutes() []route.Route {
	if err := e.newer(); err != nil {
		if !e.frozen {
			e.frozen = true
			e.Log.Error("endpoints stay as they are", "error", err)
		}
		return e.read
	}
	e.read, e.frozen = nil, false
	for _, r := range state.LoadAll[route.Route](e.cache, state.RouteRoot) {
		e.read = append(e.read, r.Value)
	}
	return e.read
}
