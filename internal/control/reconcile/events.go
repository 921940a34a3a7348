package reconcile

import (
	"fmt"
	"strconv"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/model/event"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// source returns what events of a database are about.
func (d *database) source() event.Source {
	kind := event.Instance
	if d.Cluster != nil {
		kind = event.Cluster
	}
	return event.Source{Scope: d.Owner.Scope, Type: kind, Name: d.Owner.Name}
}

// note is an event to be raised, with the catalog's number.
type note struct {
	source event.Source
	number string
	args   []any
}

// madeOf tells what an instance was made of. RDS has no such event for clusters.
func madeOf(src event.Source, from spec.Origin) note {
	if from.Snapshot {
		return note{event.Source{Scope: src.Scope, Type: event.Snapshot, Name: from.From}, "0043", []any{from.From}}
	}
	return note{src, "0019", []any{from.From, src.Name}}
}

// eventsBetween returns the events that a step of the planner causes.
func eventsBetween(d *database, before plan.Layout, out plan.Output, now time.Time) ([]state.Op, error) {
	src, after := d.source(), out.Layout
	var notes []note
	add := func(number string) { notes = append(notes, note{src, number, nil}) }
	if after.Created && !before.Created && d.Cluster == nil {
		add("0005")
	}
	if after.Created && !before.Created && d.Owner.Origin != nil && d.Cluster == nil {
		notes = append(notes, madeOf(src, *d.Owner.Origin))
	}
	if after.Unrestorable != "" && before.Unrestorable == "" {
		for _, s := range d.Specs {
			of := event.Source{Scope: s.Value.Scope, Type: event.Instance, Name: s.Value.Name}
			notes = append(notes, note{of, "0031", []any{plan.CannotRestore}})
		}
	}
	// An Aurora cluster exists before it has instances, and its event comes then.
	if after.Created && !before.Created && d.Cluster != nil && d.Cluster.Value.MultiAZ() {
		add("0170")
	}
	if after.Changed > before.Changed && before.Created {
		for _, number := range d.Owner.ChangeEvents {
			add(number)
		}
	}
	if after.Rebooted > before.Rebooted && d.Cluster == nil {
		add("0004")
		add("0006")
	}
	switch done := after.FailedOver > before.FailedOver; {
	case done && d.Cluster != nil && out.GaveUp:
		add("0069")
	case done && d.Cluster == nil && !out.GaveUp:
		add("0006")
	}
	switch {
	case after.Cold != "" && after.Cold != before.Cold:
		notes = append(notes, note{src, "H020", []any{after.Cold}})
	case len(after.Warm) > 0 && after.Cold == "" && (len(before.Warm) == 0 || before.Cold != ""):
		add("H021")
	case len(before.Warm) > 0 && len(after.Warm) == 0 && !d.Want.Warm:
		notes = append(notes, note{src, "H020", []any{"it is not asked for any more"}})
	}
	notes = append(notes, memberNotes(d, before, after)...)
	return puts(d, notes, now)
}

// memberNotes returns the events of a cluster's instances, and of members that are rebuilt.
func memberNotes(d *database, before, after plan.Layout) []note {
	var notes []note
	for _, m := range after.Members {
		old, known := find(before, m.Name)
		if known {
			notes = append(notes, seatNotes(d, old, m)...)
		}
		if known && m.Going == plan.Replaced && old.Going == plan.Staying && d.Cluster == nil {
			notes = append(notes, note{d.source(), "0361", nil})
		}
	}
	for _, m := range before.Members {
		if _, stays := find(after, m.Name); !stays && m.Going == plan.Replaced && d.Cluster == nil {
			notes = append(notes, note{d.source(), "0362", nil})
		}
	}
	return notes
}

// seatNotes returns the events of requests that an instance of a cluster has finished. Its Change
// is the restart that carried its newest change out.
func seatNotes(d *database, old, m plan.Placed) []note {
	i, ok := d.instance(m.Seat)
	if !ok || d.Cluster == nil {
		return nil
	}
	src := event.Source{Scope: i.Scope, Type: event.Instance, Name: i.Name}
	var notes []note
	if m.Restarted > old.Restarted || m.Rebooted > old.Rebooted {
		notes = append(notes, note{src, "0006", nil})
	}
	if old.Restarted < i.Change && i.Change <= m.Restarted {
		for _, number := range i.ChangeEvents {
			notes = append(notes, note{src, number, nil})
		}
	}
	return notes
}

func find(l plan.Layout, name string) (plan.Placed, bool) {
	for _, m := range l.Members {
		if m.Name == name {
			return m, true
		}
	}
	return plan.Placed{}, false
}

// instance returns the DB instance of a seat.
func (d *database) instance(seat string) (spec.Instance, bool) {
	for _, s := range d.Specs {
		if s.Value.ResourceID == seat {
			return *s.Value, true
		}
	}
	return spec.Instance{}, false
}

// seatSource returns the DB instance of a seat as the source of an event.
func (d *database) seatSource(seat string) (event.Source, bool) {
	i, ok := d.instance(seat)
	return event.Source{Scope: i.Scope, Type: event.Instance, Name: i.Name}, ok
}

func deletionEvents(d *database, now time.Time) ([]state.Op, error) {
	var notes []note
	for _, s := range d.Specs {
		src := event.Source{Scope: s.Value.Scope, Type: event.Instance, Name: s.Value.Name}
		notes = append(notes, note{src, "0003", nil})
	}
	if d.Cluster != nil {
		notes = append(notes, note{d.source(), "0171", nil})
	}
	return puts(d, notes, now)
}

// puts turns notes into writes. Their keys derive from what happened. So a step that is taken twice
// tells its events once. Nobody is told of a hidden database.
func puts(d *database, notes []note, now time.Time) ([]state.Op, error) {
	if d.Owner.Hidden() {
		return nil, nil
	}
	var ops []state.Op
	for i, n := range notes {
		e, err := event.Make(n.source, n.number, now, n.args...)
		if err != nil {
			return nil, fmt.Errorf("raise event: %w", err)
		}
		key := d.Want.ID + "-" + strconv.FormatInt(d.layout.Revision, 10) + "-" + strconv.Itoa(i)
		ops = append(ops, state.Put(state.Event(n.source.Account, n.source.Region, e.Key(key)), e))
	}
	return ops, nil
}
