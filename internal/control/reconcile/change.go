package reconcile

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// changes returns the writes that carry a decision out. It returns none if all is as decided. The
// layout is swapped, so that of two deciders one fails.
func (r *Reconciler) changes(w *world, d *database, out plan.Output) ([]state.Op, error) {
	if out.Gone {
		return r.farewell(w, d)
	}
	var ops []state.Op
	if !reflect.DeepEqual(out.Layout, d.layout.Value) {
		ops = append(ops, state.Swap(state.Layout(d.Want.ID), d.layout.Revision, out.Layout))
		events, err := eventsBetween(d, d.layout.Value, out, w.now)
		if err != nil {
			return nil, err
		}
		ops = append(ops, events...)
	}
	assigned, err := r.assignments(w, d, out.Layout)
	if err != nil {
		return nil, err
	}
	ops = append(ops, assigned...)
	config, err := w.clusterConfig(d, out.Layout)
	if err != nil {
		return nil, err
	}
	ops = append(ops, config...)
	ops = append(ops, w.tasks(out.Tasks)...)
	if out.Rebirth {
		key := patroni.InitializeKey(d.Want.ID)
		_, revision, _ := w.cache.Raw(key)
		ops = append(ops, state.Remove(key, revision), state.Unchanged(patroni.LeaderKey(d.Want.ID), 0))
	}
	ops = append(ops, w.routes(d, out.Layout)...)
	notices, err := w.notices(d, out)
	if err != nil {
		return nil, err
	}
	departed, err := w.departed(d, out.Layout)
	ops = slices.Concat(ops, notices, departed)
	if len(ops) > 0 && d.layout.Revision > 0 {
		// All of it follows from this layout, also if the layout stays as it is.
		ops = append(ops, state.Unchanged(state.Layout(d.Want.ID), d.layout.Revision))
	}
	return ops, err
}

// assignments returns the writes for members whose wanted state differs from the last assignment.
// It also seals, under the same generation, what a control plane of an older release wrote. The
// member is then to run as before, and its agent only has to keep the new text.
func (r *Reconciler) assignments(w *world, d *database, layout plan.Layout) ([]state.Op, error) {
	var ops []state.Op
	for _, m := range layout.Members {
		id := member.ID(d.Want.ID, m.Name)
		want := plan.Assign(d.Want, layout, m, w.memoryOf(m.Host))
		last := d.assigned[id]
		want.Generation = last.Value.Generation
		if last.Revision == 0 || !want.Same(last.Value.Unsealed()) {
			want.Generation++
		} else if text, _, _ := w.cache.Raw(last.Key); r.sealed(m.Host, text) {
			continue
		}
		op, err := r.assign(m.Host, last.Revision, want)
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	return ops, nil
}

// sealed reports whether the text has our seal for a host.
func (r *Reconciler) sealed(host string, text []byte) bool {
	_, right := r.Seals.Open(host, text)
	return right
}

// assign returns the write of an assignment to a host, under our seal. Nothing else writes
// assignments.
func (r *Reconciler) assign(host string, revision int64, a member.Assignment) (state.Op, error) {
	sealed, err := r.Seals.Seal(host, a)
	return state.Swap(state.Assign(host, a.ID), revision, sealed), err
}

// clusterConfig writes the configuration that all members share to Patroni's own key, as patronictl
// edit-config does. When Patroni bootstraps, it writes the same content itself.
func (w *world) clusterConfig(d *database, layout plan.Layout) ([]state.Op, error) {
	if len(layout.Members) == 0 || d.Want.State == member.Absent {
		return nil, nil
	}
	cluster := plan.ClusterConfig(d.Want, layout)
	text, err := cluster.Document()
	if err != nil {
		return nil, err
	}
	key := patroni.ConfigKey(d.Want.ID)
	current, revision, _ := w.cache.Raw(key)
	if sameJSON(current, text) {
		return nil, nil
	}
	return []state.Op{state.Swap(key, revision, json.RawMessage(text))}, nil
}

func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}

// tasks returns the tasks that were not asked for yet. A task stays until its result is swept.
func (w *world) tasks(wanted []member.Task) []state.Op {
	var ops []state.Op
	for _, t := range wanted {
		key := state.Task(t.Host, t.ID)
		if _, _, known := w.cache.Raw(key); !known {
			ops = append(ops, state.Swap(key, 0, t))
		}
	}
	return ops
}

// farewell removes the records of a deleted database, its spec last. Its backups, and what says how
// long they are kept, stay: package control/backup sees to them. A crash before that leaves a
// database that is still being deleted.
func (r *Reconciler) farewell(w *world, d *database) ([]state.Op, error) {
	ops, err := deletionEvents(d, w.now)
	if err != nil {
		return nil, err
	}
	if d.layout.Revision > 0 {
		ops = append(ops, state.Remove(state.Layout(d.Want.ID), d.layout.Revision))
	}
	ops = append(ops, state.DeletePrefix(patroni.Prefix(d.Want.ID)), state.DeletePrefix(state.ResultRoot+d.Want.ID+"/"),
		state.Delete(state.Lead(d.Want.ID)), state.Delete(state.Timeline(d.Want.ID)), state.Delete(state.Notice(d.Want.ID)), state.Delete(state.Drill(d.Want.ID)), state.Delete(state.Secret(d.Want.ID)), state.Delete(state.StorageKey(d.Want.ID)))
	for _, s := range d.Specs {
		ops = append(ops, state.Remove(s.Key, s.Revision))
	}
	for _, a := range d.Addresses() {
		ops = append(ops, state.Delete(state.Address(a)))
	}
	if d.Cluster != nil {
		ops = append(ops, state.Remove(d.Cluster.Key, d.Cluster.Revision))
		ops = append(ops, w.endpointsGo(d, func(spec.Endpoint) bool { return true })...)
	}
	for _, id := range w.routesOf(d.Want.ID) {
		ops = append(ops, state.Delete(state.Route(id)))
	}
	return append(ops, w.partsStay(d)...), nil
}

// partsStay has package control/backup know of what a deleted database leaves in repositories. That of one
// that was deleted soon after its WAL began to go there is not known yet, and would stay for ever.
func (w *world) partsStay(d *database) (ops []state.Op) {
	if d.Want.Archive == nil {
		return nil
	}
	src := d.source()
	about := operation.About{Scope: src.Scope, Type: src.Type, Name: src.Name, Database: d.Want.ID}
	for _, repository := range d.Want.Archive.Repositories {
		key := state.BackupPart(d.Want.ID, repository)
		if _, _, known := w.cache.Raw(key); !known {
			ops = append(ops, state.Swap(key, 0, backup.Part{About: about, Repository: repository}))
		}
	}
	return ops
}
