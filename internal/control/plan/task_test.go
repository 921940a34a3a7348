package plan

import (
	"testing"
	"time"

	"howdah/internal/model/member"
)

// TestATaskThatEndedIsNotWaitedFor: once a database is at rest, the results of its
// tasks are swept; the next request must not wait for one of them.
func TestATaskThatEndedIsNotWaitedFor(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	asked := Asked{Request: "db-1/failover/1", Attempt: 1, Member: "m2", At: now.Add(-10 * time.Second)}
	ended := asked
	ended.Ended = now.Add(-9 * time.Second)
	result := map[string]member.Result{asked.ID(): {ID: asked.ID(), Member: "db-1.m2", Done: true}}
	cases := []struct {
		name    string
		asked   Asked
		results map[string]member.Result
		goesOn  bool
	}{
		{"under way", asked, nil, false},
		{"done, and not noticed yet", asked, result, true},
		{"done, and noticed", ended, result, true},
		{"done, noticed, and swept", ended, nil, true},
	}
	for _, c := range cases {
		members := []Placed{{Name: "m1", Host: "a"}, {Name: "m2", Host: "b"}}
		w := begin(Input{
			Now: now, Want: Database{ID: "db-1"}, Results: c.results, Hosts: []Host{{Name: "a", Alive: true}, {Name: "b", Alive: true}},
			Layout: Layout{ID: "db-1", Members: members, Asked: &c.asked},
		})
		if isDone, detail := w.task(member.Restart, "db-1/reboot/m1/1", &members[0]); isDone || detail != "" {
			t.Errorf("%s: %v, %q", c.name, isDone, detail)
		}
		if asks := len(w.out.Tasks) == 1; asks != c.goesOn {
			t.Errorf("%s: asked for %+v", c.name, w.out.Tasks)
		}
	}
}

// The planner went on to something else before a task ended: its end is noted all the
// same, while the result is there.
func TestTheEndOfATaskIsNoted(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	asked := Asked{Request: "db-1/failover/1/last/m2", Attempt: 1, Member: "m2", At: now.Add(-10 * time.Second)}
	for name, c := range map[string]struct {
		result *member.Result
		now    time.Time
		noted  bool
	}{
		"under way": {nil, now, false},
		"done":      {&member.Result{Done: true}, now, true},
		"failed":    {&member.Result{Failed: true}, now, true},
		"lost":      {nil, now.Add(TaskDeadline + taskGrace), true},
	} {
		results := map[string]member.Result{}
		if c.result != nil {
			results[asked.ID()] = *c.result
		}
		out := Next(Input{Now: c.now, Want: Database{ID: "db-1"}, Results: results, Layout: Layout{ID: "db-1", Asked: &asked}})
		if ended := out.Layout.Asked.Ended; ended.Equal(c.now) != c.noted || ended.IsZero() == c.noted {
			t.Errorf("%s: ended at %s", name, ended)
		}
		if !asked.Ended.IsZero() {
			t.Fatalf("%s: the input was changed", name)
		}
	}
}

// A failover that somebody asked for goes on where a checkpoint fails, and so does one
// away from a full disk; what Howdah does for its own reasons is called off.
func TestWhichHandoversAreForced(t *testing.T) {
	m := Placed{Name: "m1", Host: "a"}
	for request, force := range map[string]bool{
		"db-1/failover/3": true, "db-1/failover/2": false, "db-1/flee/8": true, "db-1/restart/m1/1/handover": false,
	} {
		w := begin(Input{Want: Database{ID: "db-1", Failover: 3}, Layout: Layout{ID: "db-1", Fled: 7, Members: []Placed{m}}})
		w.ask(member.Handover, request, &m)
		if got := w.out.Tasks[0].Force; got != force {
			t.Errorf("%s: %v, want %v", request, got, force)
		}
	}
}

// The primary was replaced, although its host said that it could not hand over: who asked
// for a failover has got one.
func TestAFailoverThatWasGivenUpAndHappened(t *testing.T) {
	asked := Asked{Request: "db-1/failover/1", Attempt: userTries, Member: "m1", At: time.Now()}
	for leader, abandoned := range map[string]string{"m1": "the disk hangs", "m2": ""} {
		in := Input{
			Now: time.Now(), Want: Database{ID: "db-1", State: member.Running, Failover: 1, Seats: []Seat{{}, {Key: "2"}}}, Leader: leader,
			Hosts:   []Host{{Name: "a", Alive: true}, {Name: "b", Alive: true}},
			Results: map[string]member.Result{asked.ID(): {Failed: true, Detail: "the disk hangs"}},
			Reports: map[string]member.Report{
				"db-1.m1": {Ready: true, Postgres: true, InRecovery: leader != "m1", Streaming: leader != "m1"},
				"db-1.m2": {Ready: true, Postgres: true, InRecovery: leader != "m2", Streaming: leader != "m2"},
			},
			Layout: Layout{ID: "db-1", Created: true, Asked: &asked, Members: []Placed{{Name: "m1", Host: "a", Votes: true}, {Name: "m2", Host: "b", Seat: "2", Votes: true}}},
		}
		w := begin(in)
		w.failover()
		if got := w.out.Layout.Abandoned; got != abandoned || w.out.GaveUp != (abandoned != "") {
			t.Errorf("%s leads: abandoned %q, given up %v", leader, got, w.out.GaveUp)
		}
	}
}
