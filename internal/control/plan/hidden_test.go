package plan

import (
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/model/spec"
)

// A hidden database is available without an edge: none leads there.
func TestAHiddenDatabaseWaitsForNoEndpoint(t *testing.T) {
	for _, hidden := range []bool{true, false} {
		i := spec.Instance{Common: spec.Common{ResourceID: "db-1", Major: 15}, Class: "db.t3.micro"}
		if hidden {
			i.MadeBy = "rewind-1"
		}
		in := Input{
			Want: ForInstance(i, Links{}), Hosts: []Host{{Name: "a", Zone: "a", Alive: true, Majors: []int{15}}}, Leader: "m1",
			Layout: Layout{ID: "db-1", Members: []Placed{{Name: "m1", Host: "a"}}}, Applied: map[string]int64{"db-1.m1": 1}, Assigned: map[string]int64{"db-1.m1": 1},
			Reports: map[string]member.Report{"db-1.m1": {Ready: true, Patroni: true, Postgres: true, Generation: 1}},
		}
		out := Next(in)
		if out.Layout.Created != hidden {
			t.Errorf("hidden %t: %+v", hidden, out.Layout)
		}
		f := Facts{Want: in.Want, Layout: out.Layout, Reports: in.Reports, Alive: map[string]bool{"a": true}, Leader: "m1"}
		f.Layout.Created = true
		if want := map[bool]string{true: Available, false: Rebooting}[hidden]; f.DatabaseStatus() != want {
			t.Errorf("hidden %t: it is %s, want %s", hidden, f.DatabaseStatus(), want)
		}
	}
}

// What an operation has closed runs no process, and is not what users have stopped.
func TestAClosedDatabaseRunsNowhere(t *testing.T) {
	i := spec.Instance{Common: spec.Common{ResourceID: "db-1", ClosedBy: "rewind-1"}}
	if d := ForInstance(i, Links{}); d.State != member.Stopped {
		t.Errorf("it is to be %s", d.State)
	}
	i.Deleting = true
	if d := ForInstance(i, Links{}); d.State != member.Absent {
		t.Errorf("it is to be %s", d.State)
	}
}
