package reconcile

import (
	"slices"
	"testing"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

func TestSweepTakesWhatIsOver(t *testing.T) {
	b := made(t, false)
	src := event.Source{Scope: spec.Scope{Account: account, Region: region}, Type: event.Instance, Name: "orders"}
	old, err := event.Make(src, "0005", b.now.Add(-event.Keep-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	young, err := event.Make(src, "0005", b.now.Add(-event.Keep+time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	done, waiting := dbID+"/reboot/1#1@m1", dbID+"/reboot/2#1@m1"
	b.put(state.Put(state.Event(src.Account, src.Region, old.Key("x")), old), state.Put(state.Event(src.Account, src.Region, young.Key("x")), young),
		state.Put(state.Task("a", done), map[string]any{"id": done, "deadline": b.now.Add(time.Minute)}), state.Put(state.Result(done), map[string]any{"id": done}),
		state.Put(state.Task("a", waiting), map[string]any{"id": waiting, "deadline": b.now.Add(time.Minute)}))
	b.same(patroni.LeaderKey("db-gone"), "m1")
	b.sweep()
	if n := len(b.events()); n != 1 {
		t.Errorf("%d events are left", n)
	}
	if left := b.cache.Keys(state.TaskRoot); !slices.Equal(left, []string{state.Task("a", waiting)}) {
		t.Errorf("tasks %q", left)
	}
	if _, _, there := b.cache.Raw(patroni.LeaderKey("db-gone")); there {
		t.Error("Patroni's keys of a database that is no more are left")
	}
	if _, _, there := b.cache.Raw(patroni.LeaderKey(dbID)); !there {
		t.Error("those of one that exists are gone")
	}
}

// TestADamagedAssignmentOfAForgottenMemberIsSwept checks that the member's host is told to clean
// up, and that the record is removed once that is done. If somebody may count on the member, the
// record is left alone.
func TestADamagedAssignmentOfAForgottenMemberIsSwept(t *testing.T) {
	for name, c := range map[string]struct {
		id, value string
		prepare   func(*bench)
		left      bool
	}{
		"torn":                      {id: dbID + ".m9", value: `{"id": "db-1.m9", "gener`},
		"of another type":           {id: dbID + ".m9", value: `[]`},
		"empty":                     {id: dbID + ".m9", value: `{}`},
		"of another member":         {id: dbID + ".m9", value: `{"id":"db-1.m1","want":"running","generation":3}`},
		"of a database that is not": {id: "db-gone.m1", value: `torn`},
		"its host reports more": {id: dbID + ".m9", value: `torn`, prepare: func(b *bench) {
			b.put(state.Put(state.Report("a", dbID+".m9"), member.Report{ID: dbID + ".m9", Host: "a", Generation: 1 << 40}))
		}},
		"the layout is damaged": {id: dbID + ".m9", value: `torn`, left: true, prepare: func(b *bench) {
			b.same(state.Layout(dbID), `torn`)
		}},
		"the layout is not there": {id: dbID + ".m9", value: `torn`, left: true, prepare: func(b *bench) {
			b.put(state.Delete(state.Layout(dbID)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := made(t, false)
			key := state.Assign("a", c.id)
			b.same(key, c.value)
			if c.prepare != nil {
				c.prepare(b)
			}
			b.sweep()
			if c.left {
				if value, _, _ := b.cache.Raw(key); string(value) != c.value {
					t.Errorf("it became %s", value)
				}
				return
			}
			told, err := state.Load[member.Assignment](b.cache, key)
			if err != nil || told.Value.Want != member.Absent || told.Value.ID != c.id || told.Value.ID != told.Value.Scope+"."+told.Value.Name {
				t.Fatalf("the host was told %+v, %v", told.Value, err)
			}
			if had, err := state.Load[member.Report](b.cache, state.Report("a", c.id)); err == nil && told.Value.Generation <= had.Value.Generation {
				t.Errorf("generation %d, which the agent refuses: it has %d", told.Value.Generation, had.Value.Generation)
			}
			b.sweep()
			if again, err := state.Load[member.Assignment](b.cache, key); err != nil || again.Revision != told.Revision {
				t.Errorf("it was written twice: %v", err)
			}
			b.put(state.Put(state.Report("a", c.id), member.Report{ID: c.id, Host: "a", Generation: told.Value.Generation, Gone: true}))
			b.sweep()
			if _, _, there := b.cache.Raw(key); there {
				t.Error("the order is left although nothing of the member is")
			}
		})
	}
}

// The last word of an agent arrives after its member was swept.
func TestReportsOfForgottenMembersAreSwept(t *testing.T) {
	b := made(t, false)
	l := b.layout()
	own := state.Report(l.Members[0].Host, member.ID(dbID, l.Members[0].Name))
	late := []string{state.Report("a", member.ID(dbID, "m99")), state.Report("b", "db-gone.m1")}
	for _, key := range late {
		b.put(state.Put(key, member.Report{Gone: true}))
	}
	ordered := state.Report("c", "db-gone.m2")
	b.put(state.Put(ordered, member.Report{}), state.Put(state.Assign("c", "db-gone.m2"), member.Assignment{
		ID: "db-gone.m2", Scope: "db-gone", Name: "m2", Generation: 1, Want: member.Absent,
	}))
	b.sweep()
	for _, key := range late {
		if _, _, there := b.cache.Raw(key); there {
			t.Errorf("%s is left", key)
		}
	}
	for _, key := range []string{own, ordered} {
		if _, _, there := b.cache.Raw(key); !there {
			t.Errorf("%s is gone", key)
		}
	}
}

// A database is deleted while its planner waits for a task. An agent tells of the task's end later
// still.
func TestTasksOfDeletedDatabasesAreSwept(t *testing.T) {
	b := made(t, false)
	task, result, own := "db-gone/restart/m1/1#1@m1", "db-gone/restart/m1/2#1@m1", dbID+"/restart/m1/1#1@m1"
	b.put(state.Put(state.Task("a", task), member.Task{ID: task, Deadline: b.now.Add(time.Minute)}),
		state.Put(state.Result(result), member.Result{ID: result, Done: true}),
		state.Put(state.Task("a", own), member.Task{ID: own, Deadline: b.now.Add(time.Minute)}))
	b.sweep()
	if got, want := b.cache.Keys(state.TaskRoot), []string{state.Task("a", own)}; !slices.Equal(got, want) {
		t.Errorf("tasks %q, want %q", got, want)
	}
	if got := b.cache.Keys(state.ResultRoot); len(got) > 0 {
		t.Errorf("results %q are left", got)
	}
}

// The planner still waits for the result of a task whose end it has not noticed.
func TestAResultThatIsAwaitedStays(t *testing.T) {
	b := made(t, false)
	l := b.layout()
	l.Asked = &plan.Asked{Request: dbID + "/reboot/1", Attempt: 1, Member: "m1", At: b.now}
	id, earlier := l.Asked.ID(), dbID+"/reboot/1#0@m1"
	ops := []state.Op{state.Put(state.Layout(dbID), l)}
	for _, task := range []string{id, earlier} {
		ops = append(ops, state.Put(state.Task("a", task), member.Task{ID: task, Deadline: b.now.Add(time.Minute)}),
			state.Put(state.Result(task), member.Result{ID: task, Done: true}))
	}
	b.put(ops...)
	left := func(want ...string) {
		t.Helper()
		b.sweep()
		if got := b.cache.Keys(state.ResultRoot); !slices.Equal(got, want) {
			t.Errorf("results %q, want %q", got, want)
		}
	}
	left(state.Result(id))
	l.Asked.Ended = b.now
	b.put(state.Put(state.Layout(dbID), l))
	left()
}

func (b *bench) sweep() {
	b.Helper()
	if err := b.r.sweep(b.Context(), b.look()); err != nil {
		b.Fatal(err)
	}
	if err := b.cache.WaitRevision(b.Context(), b.revision()); err != nil {
		b.Fatal(err)
	}
}
