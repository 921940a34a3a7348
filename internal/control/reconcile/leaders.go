package reconcile

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/edge/seen"
	"howdah/internal/failover/fence"
	"howdah/internal/failover/postmortem"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// followLeader notices that another member leads, and keeps the post-mortem of that failover up to
// date while facts come in.
func (r *Reconciler) followLeader(ctx context.Context, w *world, d *database) error {
	key := patroni.LeaderKey(d.Want.ID)
	value, taken, _ := w.cache.Raw(key)
	leader := patroni.MemberName(string(value))
	last, err := state.Load[member.Lead](w.cache, state.Lead(d.Want.ID))
	known := err == nil
	placed, exists := find(d.layout.Value, leader)
	if leader == "" || !exists || !d.layout.Value.Created {
		return nil
	}
	if known && last.Value.Member == leader {
		return r.updatePostmortems(ctx, w, d)
	}
	// Nothing is known of a member that has not reported: it does not serve yet.
	report, _ := state.Load[member.Report](w.cache, state.Report(placed.Host, member.ID(d.Want.ID, leader)))
	if !report.Value.Ready || (report.Value.InRecovery && d.Want.Upstream == nil) {
		return nil
	}
	if known && d.Want.Upstream == nil && report.Revision <= taken && !letThrough(w.cache, d.Want.ID, leader) {
		return nil
	}
	now := member.Lead{Member: leader, Host: placed.Host}
	ops := []state.Op{}
	if known {
		record := w.postmortem(d, last.Value, now, report.Value.Timeline)
		now.Failover = record.ID
		events, err := failoverEvents(d, last.Value, placed, w.now)
		if err != nil {
			return err
		}
		ops = append(ops, events...)
		ops = append(ops, state.Put(state.Failover(d.Want.ID, record.ID), record))
	}
	ops = append(ops, state.Swap(state.Lead(d.Want.ID), last.Revision, now), state.Unchanged(key, taken))
	revision, err := r.Store.Commit(ctx, ops...)
	if err != nil {
		return err
	}
	return r.Cache.WaitRevision(ctx, revision)
}

// letThrough reports whether the member is the one that a gate let through last. Of any other one
// that has the leader key, a report that is older than the key says nothing: its gate may refuse.
// Gates pass over what others wrote than who served, so nobody else may be written down as that.
func letThrough(cache *state.Cache, database, name string) bool {
	passed, err := state.Load[fence.Passed](cache, state.Passed(database))
	return err == nil && passed.Value.Member == name
}

// postmortem begins the record of a failover that was just noticed.
func (w *world) postmortem(d *database, from, to member.Lead, timeline int) postmortem.Record {
	record := postmortem.Record{
		ID: fmt.Sprintf("%016x", w.now.UnixNano()), Database: d.Want.ID, Name: d.Owner.Name,
		Cause: "Patroni elected another leader", From: from.Member, FromHost: from.Host, To: to.Member, ToHost: to.Host,
		Recorded: w.now.UTC(), Timeline: timeline, Discarded: -1,
	}
	w.gather(&record)
	return record
}

// gather adds all facts that are there now.
func (w *world) gather(record *postmortem.Record) {
	for _, i := range state.LoadAll[fence.Incident](w.cache, state.IncidentRoot+record.Database+"/") {
		record.AddIncident(i.Value)
	}
	for _, s := range state.LoadAll[seen.Switch](w.cache, state.SwitchRoot) {
		if s.Value.Database == record.Database {
			record.AddSwitch(s.Value)
		}
	}
	history, _, _ := w.cache.Raw(patroni.HistoryKey(record.Database))
	record.AddHistory(history)
}

// updatePostmortems adds new facts to the records that are open. Facts of one failover may still be
// missing when the next one happens.
func (r *Reconciler) updatePostmortems(ctx context.Context, w *world, d *database) error {
	var ops []state.Op
	for _, old := range state.LoadAll[postmortem.Record](w.cache, state.FailoverRoot+d.Want.ID+"/") {
		if !old.Value.Open(w.now) {
			continue
		}
		record := old.Value
		record.Evidence = append([]string(nil), record.Evidence...)
		w.gather(&record)
		if !reflect.DeepEqual(normalRecord(record), normalRecord(old.Value)) {
			ops = append(ops, state.Swap(old.Key, old.Revision, record))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	_, err := r.Store.Commit(ctx, ops...)
	return err
}

// normalRecord drops what JSON does not keep: empty lists, and the monotonic part of times.
func normalRecord(r postmortem.Record) postmortem.Record {
	if len(r.Evidence) == 0 {
		r.Evidence = nil
	}
	for _, t := range []*time.Time{&r.Detected, &r.Fenced, &r.Revoked, &r.Elected, &r.Promoted, &r.Switched, &r.FirstWrite, &r.Recorded} {
		*t = t.UTC().Round(0)
	}
	return r
}

// failoverEvents returns RDS's own events: of an instance, or of a cluster, whose event names the
// instance that took over.
func failoverEvents(d *database, from member.Lead, to plan.Placed, now time.Time) ([]state.Op, error) {
	src := d.source()
	if d.Cluster == nil {
		return puts(d, []note{{src, "0013", nil}, {src, "0049", nil}}, now)
	}
	name := to.Seat
	var turned []note
	if seat, ok := d.seatSource(to.Seat); ok {
		name = seat.Name
		turned = append(turned, note{seat, "0385", nil})
	}
	started := "0073"
	for _, m := range d.layout.Value.Members {
		if m.Name == from.Member && m.Zone == to.Zone {
			started = "0072"
		}
	}
	return puts(d, append([]note{{src, started, []any{name}}, {src, "0071", []any{name}}}, turned...), now)
}

// hangs raises the events of each Patroni that its agent had to restart. An incident is told once,
// and then removed.
func (r *Reconciler) hangs(ctx context.Context, w *world) error {
	for _, i := range state.LoadAll[fence.Incident](w.cache, state.IncidentRoot) {
		database, _, _ := strings.Cut(state.Tail(i.Key, state.IncidentRoot), "/")
		d := w.database(database)
		old := w.now.Sub(i.Value.Detected) > 24*time.Hour
		if i.Value.Kind != fence.Hang && !old && d != nil {
			continue
		}
		var ops []state.Op
		if i.Value.Kind == fence.Hang && d != nil && d.Cluster == nil {
			events, err := puts(d, []note{{d.source(), "H005", []any{i.Value.Cause}}}, w.now)
			if err != nil {
				return err
			}
			ops = events
		}
		if _, err := r.Store.Commit(ctx, append(ops, state.Remove(i.Key, i.Revision))...); err != nil {
			return err
		}
	}
	return nil
}

// database returns nil if the database is not wanted.
func (w *world) database(id string) *database { return w.byID[id] }
