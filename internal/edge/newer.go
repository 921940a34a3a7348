package edge

import (
	"howdah/internal/model/route"
	"howdah/internal/state"
	"howdah/internal/state/format"
)

// newer says that the home's records are of a newer release than this edge; nil: they are not.
func (e *Edge) newer() error { return format.Heard(e.cache).Check(e.Version) }

// readRoutes are the routes, as long as this edge reads all that they say. What it led before it
// leads on, to whoever is primary.
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
