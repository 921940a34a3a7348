package reconcile

import (
	"maps"
	"slices"
)

// wakeSources adds the databases that others of a set follow. Where the followers are decides who
// may pass to their sources.
func (w *world) wakeSources(ids map[string]bool) {
	for _, id := range slices.Collect(maps.Keys(ids)) {
		if d := w.byID[id]; d != nil {
			if source, ok := d.Upstream(); ok {
				ids[source] = true
			}
		}
	}
}
