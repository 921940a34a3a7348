package reconcile

import (
	"testing"

	"howdah/internal/control/plan"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// follower is a database that follows another one.
func follower(id, source, connections string) *database {
	d := &database{want: plan.Database{ID: id, Parameters: map[string]string{"max_connections": connections}}}
	if source != "" {
		d.want.Upstream = &patroni.Upstream{}
	}
	d.specs = []state.Record[*spec.Instance]{{Value: &spec.Instance{Source: source}}}
	return d
}

// TestFollowersHaveAsMuchAsTheirSources, along a chain and in any order.
func TestFollowersHaveAsMuchAsTheirSources(t *testing.T) {
	w := &world{databases: []*database{
		follower("third", "second", "50"), follower("second", "first", "300"), follower("first", "", "200"), follower("orphan", "gone", "10"),
		follower("round", "trip", "1"), follower("trip", "round", "2"),
	}}
	w.byID = map[string]*database{}
	for _, d := range w.databases {
		w.byID[d.want.ID] = d
	}
	w.raise()
	for n, want := range []string{"300", "300", "200", "10", "2", "2"} {
		if got := w.databases[n].want.Parameters["max_connections"]; got != want {
			t.Errorf("%s: %s connections, want %s", w.databases[n].want.ID, got, want)
		}
	}
}

// TestARestartIsPlannedWithTheNewestSettings: what a host is about to be told counts
// as told while a restart is asked for.
func TestARestartIsPlannedWithTheNewestSettings(t *testing.T) {
	m := plan.Placed{Name: "m1", Host: "a", Rebooted: 1}
	d := &database{want: plan.Database{ID: "db-1", Seats: []plan.Seat{{Reboot: 1}}}}
	if outstanding(d, m) {
		t.Error("nothing is asked for")
	}
	w := &world{}
	told := plan.Assign(d.want, plan.Layout{}, m, 0)
	told.Generation = 7
	if !w.upToDate(d, m, told) {
		t.Error("it was told all")
	}
	d.want.Seats[0].Values = map[string]string{"work_mem": "8MB"}
	if w.upToDate(d, m, told) {
		t.Error("a setting is new")
	}
	for name, change := range map[string]func(){
		"the database":  func() { d.want.Reboot = 1 },
		"the seat":      func() { d.want.Reboot, d.want.Seats[0].Reboot = 0, 2 },
		"its new class": func() { d.want.Seats[0].Reboot, d.want.Seats[0].Restart = 1, 1 },
	} {
		change()
		if !outstanding(d, m) {
			t.Errorf("a restart of %s is asked for", name)
		}
		d.want.Reboot, d.want.Seats[0].Reboot, d.want.Seats[0].Restart = 0, 1, 0
	}
}
