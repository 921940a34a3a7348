package view

import (
	"testing"

	"howdah/internal/control/plan"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// follower is a database that follows another one.
func follower(id, source, connections string) *Database {
	d := &Database{Want: plan.Database{ID: id, Parameters: map[string]string{"max_connections": connections}}}
	if source != "" {
		d.Want.Upstream = &patroni.Upstream{}
	}
	d.Specs = []state.Record[*spec.Instance]{{Value: &spec.Instance{Source: source}}}
	return d
}

// TestFollowersHaveAsMuchAsTheirSources, along a chain and in any order.
func TestFollowersHaveAsMuchAsTheirSources(t *testing.T) {
	w := &Wanted{databases: []*Database{
		follower("third", "second", "50"), follower("second", "first", "300"), follower("first", "", "200"), follower("orphan", "gone", "10"),
		follower("round", "trip", "1"), follower("trip", "round", "2"),
	}}
	w.byID = map[string]*Database{}
	for _, d := range w.databases {
		w.byID[d.Want.ID] = d
	}
	w.raise()
	for n, want := range []string{"300", "300", "200", "10", "2", "2"} {
		if got := w.databases[n].Want.Parameters["max_connections"]; got != want {
			t.Errorf("%s: %s connections, want %s", w.databases[n].Want.ID, got, want)
		}
	}
}

// TestARestartIsPlannedWithTheNewestSettings: what a host is about to be told counts
// as told while a restart is asked for.
func TestARestartIsPlannedWithTheNewestSettings(t *testing.T) {
	m := plan.Placed{Name: "m1", Host: "a", Rebooted: 1}
	d := &Database{Want: plan.Database{ID: "db-1", Seats: []plan.Seat{{Reboot: 1}}}}
	b := Basis{Database: d}
	if b.outstanding(m) {
		t.Error("nothing is asked for")
	}
	told := plan.Assign(d.Want, plan.Layout{}, m, 0)
	told.Generation = 7
	if !b.upToDate(m, told) {
		t.Error("it was told all")
	}
	d.Want.Seats[0].Values = map[string]string{"work_mem": "8MB"}
	if b.upToDate(m, told) {
		t.Error("a setting is new")
	}
	for name, change := range map[string]func(){
		"the database":  func() { d.Want.Reboot = 1 },
		"the seat":      func() { d.Want.Reboot, d.Want.Seats[0].Reboot = 0, 2 },
		"its new class": func() { d.Want.Seats[0].Reboot, d.Want.Seats[0].Restart = 1, 1 },
	} {
		change()
		if !b.outstanding(m) {
			t.Errorf("a restart of %s is asked for", name)
		}
		d.Want.Reboot, d.Want.Seats[0].Reboot, d.Want.Seats[0].Restart = 0, 1, 0
	}
}
