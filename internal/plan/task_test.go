package plan

import (
	"testing"
	"time"

	"howdah/internal/member"
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
