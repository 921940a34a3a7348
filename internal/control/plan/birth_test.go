package plan

import (
	"strings"
	"testing"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// newborn is a database of two members whose first bootstrap began and never ended.
func newborn() Input {
	now := time.Date(2026, 11, 22, 0, 1, 0, 0, time.UTC)
	in := Input{
		Now: now, Unborn: true,
		Want: Database{ID: "db-1", Major: 15, State: member.Running, Seats: []Seat{{}, {}}},
		Layout: Layout{
			ID: "db-1", Next: 2, Steps: []Step{{Name: awaitPrimary, Began: now.Add(-bornWithin)}, {Name: suspectBirth, Began: now.Add(-suspectFor)}},
			Members: []Placed{{Name: "m1", Host: "a", Zone: "a", Votes: true}, {Name: "m2", Host: "b", Zone: "b", Votes: true}},
		},
		Reports: map[string]member.Report{"db-1.m1": {Patroni: true}, "db-1.m2": {Patroni: true}},
		Applied: map[string]int64{"db-1.m1": 1, "db-1.m2": 1}, Making: map[string]bool{},
	}
	for _, name := range []string{"a", "b"} {
		in.Hosts = append(in.Hosts, Host{Name: name, Zone: name, Alive: true, Majors: []int{15}, Memory: 8 << 30, CPUs: 4})
	}
	return in
}

// standby is a primary that became one before it was known to anyone.
var standby = member.Report{Patroni: true, Postgres: true, Ready: true, InRecovery: true}

// TestABootstrapThatStopped: it is begun again when nobody can be at it any more, and
// not before.
func TestABootstrapThatStopped(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(*Input)
		rebirth bool
		revive  string
	}{
		{name: "nobody works on it", change: func(*Input) {}, rebirth: true},
		{name: "it was seen a moment ago", change: func(in *Input) { in.Layout.Steps[1].Began = in.Now.Add(-suspectFor + time.Second) }},
		{name: "it is old, and nobody looked yet", change: func(in *Input) { in.Layout.Steps = in.Layout.Steps[:1] }},
		{name: "something else went on until now", change: func(in *Input) { in.Layout.Steps[1].Name = "another step" }},
		{name: "Patroni's key names data, or is not there", change: func(in *Input) { in.Unborn = false }},
		{name: "a member leads", change: func(in *Input) { in.Leader = "m1" }},
		{name: "it was available once", change: func(in *Input) { in.Layout.Created = true }},
		{name: "a member makes data", change: func(in *Input) { in.Making["db-1.m2"] = true }},
		{name: "a Patroni does not run", change: func(in *Input) { in.Reports["db-1.m2"] = member.Report{} }},
		{name: "a Patroni is not seen", change: func(in *Input) { delete(in.Applied, "db-1.m2") }},
		{name: "a host is lost, whose Patroni may be at it", change: func(in *Input) { in.Hosts[1].Alive = false }},
		{name: "a PostgreSQL starts", change: func(in *Input) { in.Reports["db-1.m1"] = member.Report{Patroni: true, Postgres: true} }},
		{name: "a PostgreSQL became a standby", change: func(in *Input) { in.Reports["db-1.m1"] = standby }, revive: "db-1.m1"},
		{name: "a PostgreSQL is a primary already", change: func(in *Input) {
			in.Reports["db-1.m1"] = member.Report{Patroni: true, Postgres: true, Ready: true}
		}},
		{name: "a replica of another database is a standby by right", change: func(in *Input) {
			in.Reports["db-1.m1"], in.Want.Upstream = standby, &patroni.Upstream{}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := newborn()
			tt.change(&in)
			out := Next(in)
			if out.Rebirth != tt.rebirth {
				t.Errorf("begun again: %v", out.Rebirth)
			}
			revived := ""
			for _, task := range out.Tasks {
				if task.Kind == member.Revive {
					revived = task.Member
				}
			}
			if revived != tt.revive {
				t.Errorf("revived %q, want %q", revived, tt.revive)
			}
		})
	}
}

// TestABootstrapIsGivenTimeAgain: what was begun again is not old at once.
func TestABootstrapIsGivenTimeAgain(t *testing.T) {
	in := newborn()
	out := Next(in)
	began := in.Now
	for range 100 {
		in.Layout, in.Now = out.Layout, in.Now.Add(time.Second)
		if out = Next(in); out.Rebirth {
			break
		}
	}
	if took := in.Now.Sub(began); !out.Rebirth || took < bornWithin+suspectFor || took > bornWithin+suspectFor+3*time.Second {
		t.Errorf("begun again %v after %s: %+v", out.Rebirth, took, out.Layout.Steps)
	}
}

// TestABootstrapThatBeginsLate: its key is there a moment before its state says so.
func TestABootstrapThatBeginsLate(t *testing.T) {
	in := newborn()
	in.Layout.Steps = in.Layout.Steps[:1] // the machine was slow: nobody began for bornWithin
	out := Next(in)
	if out.Rebirth {
		t.Fatal("begun again beside one that began a moment ago")
	}
	in.Layout, in.Now = out.Layout, in.Now.Add(2*time.Second)
	in.Making["db-1.m2"] = true
	if out = Next(in); out.Rebirth || out.Layout.Steps[len(out.Layout.Steps)-1].Name != awaitPrimary {
		t.Errorf("begun again %v: %+v", out.Rebirth, out.Layout.Steps)
	}
}

// TestARevivalIsAskedForOnce, and again when it did not help.
func TestARevivalIsAskedForOnce(t *testing.T) {
	in := newborn()
	in.Reports["db-1.m1"] = standby
	out := Next(in)
	if len(out.Tasks) != 1 || !strings.HasPrefix(out.Tasks[0].ID, "db-1/birth/m1/") {
		t.Fatalf("tasks %+v", out.Tasks)
	}
	id := out.Tasks[0].ID
	in.Layout, in.Now = out.Layout, in.Now.Add(time.Second)
	if out = Next(in); len(out.Tasks) != 0 {
		t.Errorf("asked for twice: %+v", out.Tasks)
	}
	in.Results = map[string]member.Result{id: {ID: id, Member: "db-1.m1", Done: true}}
	in.Layout, in.Now = out.Layout, in.Now.Add(time.Second)
	out = Next(in)
	in.Layout, in.Now = out.Layout, in.Now.Add(2*bornWithin)
	if out = Next(in); len(out.Tasks) != 1 || out.Tasks[0].ID == id {
		t.Errorf("not tried again: %+v", out.Tasks)
	}
}
