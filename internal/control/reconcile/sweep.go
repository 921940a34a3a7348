package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"

	"howdah/internal/control/plan"
	"howdah/internal/identity/seal"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/view"
)

// sweep removes leftovers: assignments of members that no longer exist, with their reports; tasks
// and results of databases at rest; Patroni's keys of databases that no longer exist; old events
// and post-mortems; and what came too late for what it belongs to. Each removal stands alone.
func (r *Reconciler) sweep(ctx context.Context, w *world) error {
	err := r.remove(ctx, slices.Concat(w.orphanScopes(r.Seals), w.orphanReports(), w.oldEvents(), w.oldPostmortems(), w.lateWords()))
	return errors.Join(err, r.sweepFinished(ctx, w), r.sweepDamaged(ctx, w))
}

// sweepFinished is the part of sweep that removes what ended as it should.
func (r *Reconciler) sweepFinished(ctx context.Context, w *world) error {
	return r.remove(ctx, slices.Concat(w.finishedAssignments(), w.finishedTasks()))
}

func (r *Reconciler) remove(ctx context.Context, ops []state.Op) error {
	_, err := r.Store.CommitEach(ctx, ops)
	return err
}

// sweepDamaged makes hosts clean up after members that are forgotten and whose last assignment
// cannot be read any more. It writes the assignment again, as the order to delete that it must have
// been. That is swept like any other once nothing is left.
func (r *Reconciler) sweepDamaged(ctx context.Context, w *world) error {
	var failed []error
	for _, key := range w.cache.Keys(state.AssignRoot) {
		host, id, _ := strings.Cut(state.Tail(key, state.AssignRoot), "/")
		a, err := state.Load[member.Assignment](w.cache, key)
		if err == nil && a.Value.ID == id || errors.Is(err, state.ErrNotFound) || !w.forgotten(id) {
			continue
		}
		last, _ := view.LastAssigned(w.cache, host, id)
		_, last.Revision, _ = w.cache.Raw(key)
		scope, name, _ := strings.Cut(id, ".")
		order, err := r.assign(host, last.Revision, member.Assignment{
			ID: id, Scope: scope, Name: name, Generation: max(last.Value.Generation, last.Revision) + 1, Want: member.Absent,
		})
		if err == nil {
			_, err = r.Store.Commit(ctx, order)
		}
		if err != nil && !errors.Is(err, state.ErrConflict) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// forgotten reports whether certainly nobody counts on the member. A layout that cannot be read, or
// that is not there although its database is, says nothing.
func (w *world) forgotten(id string) bool {
	scope, name, _ := strings.Cut(id, ".")
	layout, err := state.View[plan.Layout](w.cache, state.Layout(scope))
	if errors.Is(err, state.ErrNotFound) {
		return w.database(scope) == nil
	}
	return err == nil && !has(layout.Value, name) && layout.Value.Next > 0
}

func (w *world) finishedAssignments() []state.Op {
	var ops []state.Op
	for _, a := range state.ViewAll[member.Assignment](w.cache, state.AssignRoot) {
		if a.Value.Want != member.Absent || w.placed(*a.Value) {
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

// placed reports whether a layout still counts on the member. Then the layout must forget it first.
func (w *world) placed(a member.Assignment) bool {
	layout, err := state.View[plan.Layout](w.cache, state.Layout(a.Scope))
	return err == nil && has(layout.Value, a.Name)
}

func has(l *plan.Layout, name string) bool {
	_, ok := find(*l, name)
	return ok
}

// finishedTasks returns the removals of tasks of databases that are at rest or gone. While
// something is going on, the planner knows it by the results. It would wait for a task whose end it
// has not noticed.
func (w *world) finishedTasks() []state.Op {
	var ops []state.Op
	for _, t := range state.ViewAll[member.Task](w.cache, state.TaskRoot) {
		database, _, _ := strings.Cut(t.Value.ID, "/")
		layout, err := state.View[plan.Layout](w.cache, state.Layout(database))
		if err == nil && len(layout.Value.Steps) > 0 {
			continue
		}
		_, _, done := w.cache.Raw(state.Result(t.Value.ID))
		awaited := err == nil && layout.Value.Awaits(t.Value.ID)
		if done && !awaited || w.now.After(t.Value.Deadline) || w.over(database) {
			ops = append(ops, state.Delete(t.Key), state.Delete(state.Result(t.Value.ID)))
		}
	}
	return ops
}

// orphanScopes returns the removals of scopes that a Patroni wrote to after its database was
// deleted, as one on a lost host may when it comes back.
func (w *world) orphanScopes(seals *seal.Assignments) []state.Op {
	known := map[string]bool{}
	for _, d := range w.databases {
		known[d.Want.ID] = true
	}
	for _, a := range state.ViewAll[member.Assignment](w.cache, state.AssignRoot) {
		known[a.Value.Scope] = true
	}
	unknown, all := w.unknown(seals)
	if all {
		return nil
	}
	var ops []state.Op
	for _, scope := range w.cache.Children(patroni.Namespace) {
		if !known[scope] && !unknown[scope] {
			ops = append(ops, state.DeletePrefix(patroni.Prefix(scope)))
		}
	}
	return ops
}

// orphanReports returns the removals of reports of forgotten members. An agent's last word may
// arrive after its member was swept.
func (w *world) orphanReports() []state.Op {
	var ops []state.Op
	for _, key := range w.cache.Keys(state.ReportRoot) {
		host, id, _ := strings.Cut(state.Tail(key, state.ReportRoot), "/")
		if _, _, assigned := w.cache.Raw(state.Assign(host, id)); !assigned && w.forgotten(id) {
			ops = append(ops, state.Delete(key))
		}
	}
	return ops
}

func (w *world) oldEvents() []state.Op {
	var ops []state.Op
	for _, e := range state.ViewAll[event.Event](w.cache, state.EventRoot) {
		if w.now.Sub(e.Value.At) > event.Keep {
			ops = append(ops, state.Delete(e.Key))
		}
	}
	return ops
}
