package reconcile

import (
	"strings"

	"howdah/internal/failover/fence"
	"howdah/internal/failover/postmortem"
	"howdah/internal/state"
)

// oldPostmortems returns the removals of post-mortems beyond the newest of each database. Those of
// databases that no longer exist are removed once they are old.
func (w *world) oldPostmortems() []state.Op {
	byDatabase := map[string][]state.Record[*postmortem.Record]{}
	for _, r := range state.ViewAll[postmortem.Record](w.cache, state.FailoverRoot) {
		id, _, _ := strings.Cut(state.Tail(r.Key, state.FailoverRoot), "/")
		byDatabase[id] = append(byDatabase[id], r) // the oldest first: keys sort by time
	}
	var ops []state.Op
	for id, all := range byDatabase {
		for i, r := range all {
			old := w.now.Sub(r.Value.Recorded) > postmortem.Keep
			if i < len(all)-postmortem.Most || old && w.database(id) == nil {
				ops = append(ops, state.Delete(r.Key))
			}
		}
	}
	return ops
}

// lateWords returns the removals of answers to cases that are closed, and of what hosts and edges
// saw of databases that no longer exist. The writers may have been away when all else was removed.
func (w *world) lateWords() []state.Op {
	open := map[string]bool{}
	for _, c := range state.ViewAll[fence.Case](w.cache, state.FenceRoot) {
		open[c.Value.ID] = true
	}
	var ops []state.Op
	for _, root := range []string{state.WitnessRoot, state.CutRoot} {
		for _, key := range w.cache.Keys(root) {
			if id, _, _ := strings.Cut(state.Tail(key, root), "/"); !open[id] {
				ops = append(ops, state.Delete(key))
			}
		}
	}
	// The death of a member that has left its database counts for as long as /sync may name it.
	for _, root := range []string{state.ResultRoot, state.DeathRoot} {
		for _, key := range w.cache.Keys(root) {
			if database, _, _ := strings.Cut(state.Tail(key, root), "/"); w.over(database) {
				ops = append(ops, state.Delete(key))
			}
		}
	}
	for _, key := range w.cache.Keys(state.SwitchRoot) {
		if _, database, _ := strings.Cut(state.Tail(key, state.SwitchRoot), "/"); w.over(database) {
			ops = append(ops, state.Delete(key))
		}
	}
	for _, key := range w.cache.Keys(state.WayRoot) {
		route, _, _ := strings.Cut(state.Tail(key, state.WayRoot), "/")
		if _, _, known := w.cache.Raw(state.Route(route)); !known {
			ops = append(ops, state.Delete(key))
		}
	}
	return ops
}

// over reports whether a database is not wanted, and nothing is known of where it was.
func (w *world) over(id string) bool {
	_, _, placed := w.cache.Raw(state.Layout(id))
	return w.database(id) == nil && !placed
}
