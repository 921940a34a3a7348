package reconcile

import (
	"context"
	"slices"
	"strings"

	"howdah/internal/engine/patroni"
	"howdah/internal/event"
	"howdah/internal/member"
	"howdah/internal/plan"
	"howdah/internal/state"
)

// batch keeps transactions below etcd's limit of 128 operations.
const batch = 100

// sweep removes what is left over: assignments of members that are gone, with
// their reports; tasks and results of databases at rest; Patroni's keys of
// databases that are no more; and old events. Each removal stands alone.
func (r *Reconciler) sweep(ctx context.Context, w *world) error {
	ops := slices.Concat(w.finishedAssignments(), w.finishedTasks(), w.orphanScopes(), w.oldEvents())
	for chunk := range slices.Chunk(ops, batch) {
		if _, err := r.Store.Commit(ctx, chunk...); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) finishedAssignments() []state.Op {
	var ops []state.Op
	for _, a := range state.LoadAll[member.Assignment](w.cache, state.AssignRoot) {
		if a.Value.Want != member.Absent || w.placed(a.Value) {
			continue
		}
		host, _, _ := strings.Cut(state.Tail(a.Key, state.AssignRoot), "/")
		report, err := state.Load[member.Report](w.cache, state.Report(host, a.Value.ID))
		if err == nil && report.Value.Gone {
			ops = append(ops, state.Delete(a.Key), state.Delete(report.Key))
		}
	}
	return ops
}

// placed: a layout still counts on the member; it must be forgotten there first.
func (w *world) placed(a member.Assignment) bool {
	layout, ok := w.layouts[a.Scope]
	return ok && slices.ContainsFunc(layout.Value.Members, func(m plan.Placed) bool { return m.Name == a.Name })
}

// finishedTasks are tasks of databases that are at rest or gone. While something
// is going on their results are what the planner knows it by.
func (w *world) finishedTasks() []state.Op {
	var ops []state.Op
	for _, t := range state.LoadAll[member.Task](w.cache, state.TaskRoot) {
		database, _, _ := strings.Cut(t.Value.ID, "/")
		if layout, ok := w.layouts[database]; ok && len(layout.Value.Steps) > 0 {
			continue
		}
		_, _, done := w.cache.Raw(state.Result(t.Value.ID))
		if done || w.now.After(t.Value.Deadline) {
			ops = append(ops, state.Delete(t.Key), state.Delete(state.Result(t.Value.ID)))
		}
	}
	return ops
}

// orphanScopes are those that a Patroni wrote to after its database was deleted,
// as one on a lost host may when it comes back.
func (w *world) orphanScopes() []state.Op {
	known := map[string]bool{}
	for _, d := range w.databases {
		known[d.want.ID] = true
	}
	for _, a := range state.LoadAll[member.Assignment](w.cache, state.AssignRoot) {
		known[a.Value.Scope] = true
	}
	var ops []state.Op
	for _, scope := range w.cache.Children(patroni.Namespace) {
		if !known[scope] {
			ops = append(ops, state.DeletePrefix(patroni.Prefix(scope)))
		}
	}
	return ops
}

func (w *world) oldEvents() []state.Op {
	var ops []state.Op
	for _, e := range state.LoadAll[event.Event](w.cache, state.EventRoot) {
		if w.now.Sub(e.Value.At) > event.Keep {
			ops = append(ops, state.Delete(e.Key))
		}
	}
	return ops
}
