package plan

import (
	"testing"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/model/spec"
)

// TestStatusOfARestore: it is being created until the data are there, or cannot be.
func TestStatusOfARestore(t *testing.T) {
	failed := member.Report{Problem: member.RestoreFails, Detail: "the archive ends at noon"}
	for _, tt := range []struct {
		name   string
		change func(*Facts)
		status string
	}{
		{"it goes on", func(f *Facts) { f.Reports["db-1.m1"] = member.Report{Restoring: &member.Restoring{Phase: "files"}} }, Creating},
		{"it fails, and is tried again", func(f *Facts) { f.Reports["db-1.m1"] = member.Report{Problem: member.StorageFull} }, Creating},
		{"it fails for good", func(f *Facts) { f.Reports["db-1.m1"] = failed }, CannotRestore},
		{"the member that failed gives way", func(f *Facts) { f.Reports["db-1.m1"], f.Layout.Members[0].Leaving = failed, true }, Creating},
		{"it is deleted", func(f *Facts) { f.Reports["db-1.m1"], f.Want.State = failed, member.Absent }, Deleting},
		{"another database has data", func(f *Facts) { f.Reports["db-1.m1"], f.Want.Restore = failed, nil }, Creating},
		{"its data are there", func(f *Facts) { f.Reports["db-1.m1"], f.Layout.Restored = failed, true }, Creating},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Facts{
				Want:   Database{ID: "db-1", State: member.Running, Seats: []Seat{{Key: "i1"}}, Restore: &member.Restore{Label: "x"}},
				Layout: Layout{ID: "db-1", Members: []Placed{{Name: "m1", Seat: "i1", Host: "a"}}}, Reports: map[string]member.Report{},
				Alive: map[string]bool{"a": true},
			}
			tt.change(&f)
			if got := f.DatabaseStatus(); got != tt.status {
				t.Errorf("the database is %s, want %s", got, tt.status)
			}
			if got := f.SeatStatus(f.Want.Seats[0], f.Want.State == member.Absent); got != tt.status {
				t.Errorf("the instance is %s, want %s", got, tt.status)
			}
		})
	}
}

// TestAnOriginIsRestored: the member is told all that the record says of where data come from.
func TestAnOriginIsRestored(t *testing.T) {
	until := time.Date(2026, 11, 24, 10, 31, 5, 123456000, time.UTC)
	i := spec.Instance{Common: spec.Common{
		ResourceID: "db-1", Origin: &spec.Origin{Database: "db-0", Repository: "main", Label: "20261101-000000F", Until: until, From: "orders"},
	}, Class: "db.t3.micro"}
	want := ForInstance(i, Links{})
	a := Assign(want, Layout{ID: "db-1"}, Placed{Name: "m1"}, 0)
	if a.Restore == nil || *a.Restore != (member.Restore{Database: "db-0", Repository: "main", Label: "20261101-000000F", Until: until}) || !a.Inherits {
		t.Errorf("told to restore %+v", a.Restore)
	}
	for name, l := range map[string]Layout{"restored": {Restored: true}, "available once": {Created: true}} {
		if a := Assign(want, l, Placed{Name: "m1"}, 0); a.Restore != nil || !a.Inherits {
			t.Errorf("%s: told to restore %+v, inherits %v", name, a.Restore, a.Inherits)
		}
	}
	if a := Assign(want, Layout{}, Placed{Name: "m1", Leaving: true}, 0); a.Restore != nil || a.Want != member.Absent {
		t.Errorf("a member that is deleted restores: %+v", a)
	}
	i.Origin = nil
	if a := Assign(ForInstance(i, Links{}), Layout{}, Placed{Name: "m1"}, 0); a.Restore != nil || a.Inherits {
		t.Error("a database without an origin is restored")
	}
}

// TestARestoredDatabaseIsAvailable as soon as it serves: Patroni need not have read that it is not
// restored again. All else is waited for.
func TestARestoredDatabaseIsAvailable(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Input)
		want   bool
	}{
		"it has read all":                 {func(in *Input) { in.Applied["db-1.m1"] = 2 }, true},
		"all but that":                    {func(*Input) {}, true},
		"less than that":                  {func(in *Input) { in.Assigned["db-1.m1"] = 3 }, false},
		"not what itself wrote":           {func(in *Input) { in.Behind = map[string]bool{"db-1.m1": true} }, true},
		"nothing is led by a way to it":   {func(in *Input) { in.Ways = nil }, false},
		"a database that began empty":     {func(in *Input) { in.Want.Restore = nil }, false},
		"its Patroni does not run at all": {func(in *Input) { in.Applied = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := Placed{Name: "m1", Host: "a", Address: "10.0.0.1", Port: 15432, Votes: true, Served: true}
			in := Input{
				Want:   Database{ID: "db-1", Major: 15, State: member.Running, Seats: []Seat{{}}, SpreadZones: true, Restore: &member.Restore{Label: "x"}},
				Layout: Layout{ID: "db-1", Members: []Placed{m}, Next: 1, Restored: true}, Hosts: []Host{{Name: "a", Alive: true, Majors: []int{15}}},
				Reports: map[string]member.Report{"db-1.m1": {Patroni: true, Postgres: true, Ready: true}},
				Applied: map[string]int64{"db-1.m1": 1}, Assigned: map[string]int64{"db-1.m1": 2}, Leader: "m1", Born: true,
				Ways: map[string][]string{"": {"10.0.0.1:15432"}}, Policy: Policy{Overcommit: true},
			}
			tt.change(&in)
			if got := Next(in).Layout.Created; got != tt.want {
				t.Errorf("it is available: %v; %+v", got, Next(in).Layout.Steps)
			}
		})
	}
}

// TestAStandbyAwaitsTheFirstBackup from the moment on that the data are known, which is before
// anybody leads.
func TestAStandbyAwaitsTheFirstBackup(t *testing.T) {
	in := newCluster()
	in.Want.Seats, in.Want.SpreadZones = []Seat{{}, {}}, true
	in.Want.Restore, in.Want.BackedUp, in.Want.Archive = &member.Restore{Label: "x"}, true, &member.Archive{Repositories: []string{"main"}}
	in.Layout = Next(in).Layout
	if n := len(in.Layout.Members); n != 1 {
		t.Fatalf("%d members restore", n)
	}
	in.Born = true
	if out := Next(in); len(out.Layout.Members) != 1 || out.Layout.Alone.IsZero() {
		t.Errorf("%d members, alone since %s", len(out.Layout.Members), out.Layout.Alone)
	}
	in.Leader, in.Backup = "m1", &member.Copy{Repository: "main", Label: "first"}
	if out := Next(in); len(out.Layout.Members) != 2 || out.Layout.Members[1].Copy == nil || out.Layout.Members[1].Copy.Label != "first" {
		t.Errorf("%+v", out.Layout.Members)
	}
}
