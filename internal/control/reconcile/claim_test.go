package reconcile

import (
	"encoding/json"
	"strings"
	"testing"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// places returns the hosts of a restored database's members, and the host that has none.
func (b *bench) places() (where map[string]string, free string) {
	b.Helper()
	where, free = map[string]string{}, "abc"
	for _, m := range b.layout().Members {
		where[m.Name] = m.Host
		free = strings.ReplaceAll(free, m.Host, "")
	}
	return where, free
}

// A host claims a copy of a database that was never on it, on a timeline that it made up. It does
// not lead, nobody tells it anything of the database, and a person is asked. Once the host is
// forgotten, the newest copy leads on.
func TestAForgedCopy(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(b *bench, where map[string]string, host string) (member string, told []byte){
		"of a member that nobody knows": func(*bench, map[string]string, string) (string, []byte) { return "m7", nil },
		"of another host's member":      func(*bench, map[string]string, string) (string, []byte) { return "m1", nil },
		"with what another host was told": func(b *bench, where map[string]string, _ string) (string, []byte) {
			text, _, _ := b.cache.Raw(state.Assign(where["m1"], member.ID(dbID, "m1")))
			return "m1", text
		},
		"with what it was told of another database": func(b *bench, _ map[string]string, host string) (string, []byte) {
			sealed, err := b.r.Seals.Seal(host, member.Assignment{ID: "db-2.m7", Scope: "db-2", Name: "m7", Generation: 3, Want: member.Running})
			if err != nil {
				b.Fatal(err)
			}
			text, err := json.Marshal(sealed)
			if err != nil {
				b.Fatal(err)
			}
			return "m7", text
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := restored(t)
			where, liar := b.places()
			forged, told := forge(b, where, liar)
			b.says(where["m1"], b.copyOf("m1", 1, false, true))
			b.says(where["m2"], b.copyOf("m2", 2, true, true))
			claim := b.copyOf(forged, 99, true, true)
			claim.Told = told
			b.claims(liar, claim)
			b.work()
			hold, held := b.look().held(dbID)
			if !held {
				t.Fatalf("it was taken over, and %s leads", b.text(patroni.LeaderKey(dbID)))
			}
			for _, part := range []string{"the word of " + liar, "member " + forged, "howdah home take-over " + dbID + " " + liar + "/" + forged, "howdah host forget " + liar} {
				if !strings.Contains(hold.Value.Why, part) {
					t.Errorf("%q is not in %q", part, hold.Value.Why)
				}
			}
			b.put(state.Put(state.Gone(liar), b.now))
			b.work()
			if leader := b.text(patroni.LeaderKey(dbID)); leader != patroni.OwnName(dbID, "m2") {
				t.Errorf("%q leads", leader)
			}
			if text := b.text(state.Assign(liar, member.ID(dbID, forged))); text != "" {
				t.Errorf("it is told %s", text)
			}
			for _, m := range b.layout().Members {
				if m.Host == liar {
					t.Errorf("it has a part: %+v", m)
				}
			}
		})
	}
}

// The home had given a member up before the backup, and the member's host shows an old assignment
// of it. Others had all that the member had. So it does not lead on, whatever it says. What it was
// told of its end is told again, if that was known.
func TestACopyThatWasGivenUpBefore(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"and is gone, they said": false, "and was not heard since": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := made(t, true)
			b.same(patroni.InitializeKey(dbID), system)
			layout, err := state.Load[plan.Layout](b.cache, state.Layout(dbID))
			if err != nil {
				t.Fatal(err)
			}
			layout.Value.Next = 7
			where, liar := b.places()
			b.put(state.Put(layout.Key, layout.Value))
			key := state.Assign(liar, member.ID(dbID, "m7"))
			if known {
				b.put(state.Put(key, member.Assignment{ID: member.ID(dbID, "m7"), Scope: dbID, Name: "m7", Generation: 901, Want: member.Absent}))
			}
			b.restore()
			b.says(where["m1"], b.copyOf("m1", 1, false, true))
			b.says(where["m2"], b.copyOf("m2", 2, true, true))
			b.says(liar, b.copyOf("m7", 99, true, true))
			b.work()
			if leader := b.text(patroni.LeaderKey(dbID)); leader != patroni.OwnName(dbID, "m2") {
				hold, _ := b.look().held(dbID)
				t.Errorf("%q leads: %s", leader, hold.Value.Why)
			}
			if now := b.layout(); has(&now, "m7") {
				t.Errorf("it has a part: %+v", now)
			}
			if text := b.text(key); strings.Contains(text, `"want":"absent"`) != known || (text != "") != known {
				t.Errorf("it is told %q", text)
			}
		})
	}
}

// Agents and a home of the release before know no seals. Then what the restored state has counts.
func TestCopiesWithoutSeals(t *testing.T) {
	t.Parallel()
	b := restored(t)
	where, free := b.places()
	b.claims(where["m1"], b.copyOf("m1", 1, false, true))
	b.claims(where["m2"], b.copyOf("m2", 2, true, true))
	b.claims(free)
	b.work()
	if leader := b.text(patroni.LeaderKey(dbID)); leader != patroni.OwnName(dbID, "m2") {
		t.Errorf("%q leads", leader)
	}
}

// What an earlier release wrote is sealed where it is. Its generation stays, so that nothing
// reaches a member again, and it is written once.
func TestAssignmentsAreSealed(t *testing.T) {
	t.Parallel()
	b := made(t, true)
	before := map[string]member.Assignment{}
	for _, a := range state.LoadAll[member.Assignment](b.cache, state.AssignRoot) {
		if a.Value.Seal == "" {
			t.Errorf("%s was written without a seal", a.Key)
		}
		before[a.Key] = a.Value.Unsealed()
		if strings.HasSuffix(a.Key, "m1") {
			a.Value.Seal = "" // of the release before
		} else {
			a.Value.Seal = "another home's"
		}
		b.put(state.Put(a.Key, a.Value))
	}
	b.settle()
	for _, a := range state.LoadAll[member.Assignment](b.cache, state.AssignRoot) {
		host, _, _ := strings.Cut(state.Tail(a.Key, state.AssignRoot), "/")
		text, _, _ := b.cache.Raw(a.Key)
		if !b.r.sealed(host, text) {
			t.Errorf("%s is not sealed: %s", a.Key, text)
		}
		if !a.Value.Unsealed().Same(before[a.Key]) {
			t.Errorf("%s is %+v, and was %+v", a.Key, a.Value, before[a.Key])
		}
	}
	if revision := b.revision(); b.step() != nil || b.revision() != revision {
		t.Error("something is written again")
	}
}
