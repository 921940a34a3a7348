package server

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/control/plan"
	"howdah/internal/identity/kms"
	"howdah/internal/model/member"
	"howdah/internal/model/regain"
	"howdah/internal/state"
)

// After a restoration status says which databases wait and which data nobody knows, and an
// operator may choose a copy that there is.
func TestHeldDatabases(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	u.do(newDB)
	id, name := u.instanceRecord("db").ResourceID, "db"
	copyOf := func(scope, host string) regain.Copy {
		return regain.Copy{Home: "r1", Host: host, System: "7", Timeline: 2, Assignment: member.Assignment{
			ID: scope + ".m1", Scope: scope, Name: "m1", Generation: 3, Address: "10.0.0.1", Port: 15432,
		}}
	}
	w.put(state.Put(state.Restored(), regain.Home{ID: "r1", From: "/b", Taken: time.Unix(0, 0)}), state.Put(state.Host("a"), member.Host{Name: "a"}),
		state.Put(state.Hold(id), regain.Hold{Database: id, Why: "waits for b"}), state.Put(state.Holding("a"), regain.Holding{Home: "r1", Host: "a"}),
		state.Put(state.HeldCopy("a", id+".m1"), copyOf(id, "a")), state.Put(state.HeldCopy("a", "db-x.m1"), copyOf("db-x", "a")),
		state.Put(state.HeldCopy("c", id+".m9"), regain.Copy{Home: "an older one"}))
	problems := u.problems(name)
	if len(problems) != 1 || problems[0].Code != admin.ProblemHeld || !strings.HasSuffix(problems[0].Text, "waits for b") {
		t.Errorf("%+v", problems)
	}
	strange := w.strangers()
	if len(strange) != 1 || strange[0].Subject != "data of db-x" || !strings.Contains(strange[0].Text, "a (10.0.0.1:15432)") {
		t.Errorf("%+v", strange)
	}
	held, err := ask[admin.Held](t, w, front.Call{}, admin.VerbHeld, admin.Nothing{})
	if err != nil || len(held.Copies) != 2 || held.Copies[1].Database != "db-x" || held.Copies[1].Known || !held.Copies[0].Held || held.Copies[0].Copy != "a/m1" {
		t.Errorf("%+v, %v", held, err)
	}
	for _, in := range []admin.TakeOverRequest{{Database: name, Copy: "a/m2"}, {Database: "db-x", Copy: "a/m1"}, {Database: name, Copy: "b/m1"}} {
		var refused *admin.Error
		if _, err := ask[admin.Nothing](t, w, front.Call{}, admin.VerbTakeOver, in); !errors.As(err, &refused) {
			t.Errorf("%+v: %v", in, err)
		}
	}
	if _, err := ask[admin.Nothing](t, w, front.Call{}, admin.VerbTakeOver, admin.TakeOverRequest{Database: name, Copy: "a/m1"}); err != nil {
		t.Fatal(err)
	}
	if hold, err := state.Get[regain.Hold](t.Context(), w.server.Store, state.Hold(id)); err != nil || hold.Value.Chosen != "a/m1" {
		t.Errorf("%+v, %v", hold, err)
	}
}

// Of encrypted data that the home does not know status says whether they can be saved still.
func TestDataWhoseKeyIsLost(t *testing.T) {
	w := newWorld(t)
	put := func(c regain.Copy) {
		c.Home, c.Host, c.Assignment.Scope, c.Assignment.Name = "r1", "a", "db-x", "m1"
		w.put(state.Put(state.Restored(), regain.Home{ID: "r1"}), state.Put(state.Holding("a"), regain.Holding{Home: "r1", Host: "a"}),
			state.Put(state.HeldCopy("a", "db-x.m1"), c))
	}
	says := func(want string, not ...string) {
		t.Helper()
		all := w.strangers()
		if len(all) != 1 || !strings.Contains(all[0].Text, want) || slices.ContainsFunc(not, func(n string) bool { return strings.Contains(all[0].Text, n) }) {
			t.Errorf("%+v, want %q", all, want)
		}
	}
	put(regain.Copy{System: "7"})
	says("leaves its data alone", "key")
	put(regain.Copy{System: "7", Encrypted: true})
	says("save the data now")
	put(regain.Copy{Encrypted: true, Locked: true, Unsettled: "locked"})
	says("nobody can read it without a newer backup")
	w.put(state.Put(state.StorageKey("db-x"), kms.Storage{}))
	says("leaves its data alone", "key")
}

// A host that will not come back is forgotten while databases wait for it, if another one
// has data of them; also one that only other hosts know.
func TestAHostIsForgottenWhileDatabasesWait(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	u.do(newDB)
	id := u.instanceRecord("db").ResourceID
	w.put(state.Put(state.Restored(), regain.Home{ID: "r1"}), state.Put(state.Hold(id), regain.Hold{Database: id}),
		state.Put(state.Host("a"), member.Host{Name: "a"}), state.Put(state.Host("b"), member.Host{Name: "b"}),
		state.Put(state.Layout(id), plan.Layout{ID: id, Created: true, Members: []plan.Placed{{Name: "m1", Host: "a"}, {Name: "m2", Host: "b"}}}),
		state.Put(state.Holding("b"), regain.Holding{Home: "r1", Host: "b", Hosts: []string{"a", "b", "later"}}))
	forget := func(host string) error {
		_, err := ask[admin.Nothing](t, w, front.Call{}, admin.VerbForgetHost, admin.HostRequest{Host: host})
		return err
	}
	var refused *admin.Error
	if err := forget("a"); !errors.As(err, &refused) || !strings.Contains(refused.Error(), "No other host") {
		t.Errorf("nobody else has data: %v", err)
	}
	if err := forget("nobody"); !errors.As(err, &refused) {
		t.Errorf("a host that nobody knows: %v", err)
	}
	w.put(state.Put(state.HeldCopy("b", id+".m2"), regain.Copy{Home: "r1", Host: "b", System: "7", Assignment: member.Assignment{ID: id + ".m2", Scope: id, Name: "m2", Generation: 1}}))
	// One that says itself that it has data is none that has them, and can be forgotten.
	w.put(state.Put(state.Holding("x"), regain.Holding{Home: "r1", Host: "x"}), state.Put(state.Host("x"), member.Host{Name: "x"}),
		state.Put(state.HeldCopy("x", id+".m9"), regain.Copy{Home: "r1", Host: "x", System: "7", Assignment: member.Assignment{ID: id + ".m9", Scope: id, Name: "m9"}}))
	if err := forget("b"); !errors.As(err, &refused) || !strings.Contains(refused.Error(), "No other host") {
		t.Errorf("only one that nobody told has data, too: %v", err)
	}
	if held, err := ask[admin.Held](t, w, front.Call{}, admin.VerbHeld, admin.Nothing{}); err != nil || len(held.Copies) != 2 || held.Copies[0].Detail != "" || !strings.Contains(held.Copies[1].Detail, "nothing but its host's word") {
		t.Errorf("%+v, %v", held, err)
	}
	if err := forget("x"); err != nil {
		t.Errorf("a host that lies: %v", err)
	}
	w.put(state.Put(state.Notice("round"), 0))
	// What it said stays, as what it was told of may be the newest; its own word counts no more.
	if held, err := ask[admin.Held](t, w, front.Call{}, admin.VerbHeld, admin.Nothing{}); err != nil || len(held.Copies) != 2 || !strings.Contains(held.Copies[1].Detail, "was forgotten") {
		t.Errorf("%+v, %v", held, err)
	}
	_, err := ask[admin.Nothing](t, w, front.Call{}, admin.VerbTakeOver, admin.TakeOverRequest{Database: id, Copy: "b/m2"})
	if err != nil {
		t.Errorf("the copy of a member where the home has it: %v", err)
	}
	w.put(state.Put(state.HeldCopy("x", id+".m1"), regain.Copy{Home: "r1", Host: "x", System: "7", Assignment: member.Assignment{ID: id + ".m1", Scope: id, Name: "m1", Generation: 1}}))
	if _, err := ask[admin.Nothing](t, w, front.Call{}, admin.VerbTakeOver, admin.TakeOverRequest{Database: id, Copy: "x/m1"}); !errors.As(err, &refused) || !strings.Contains(refused.Error(), "on a") {
		t.Errorf("a copy of another host's member is chosen: %v", err)
	}
	for _, host := range []string{"a", "later"} {
		if err := forget(host); err != nil {
			t.Errorf("forget %s: %v", host, err)
		}
	}
	w.put(state.Put(state.Notice("round"), 1))
	held, err := ask[admin.Held](t, w, front.Call{}, admin.VerbHeld, admin.Nothing{})
	if err != nil || slices.Contains(held.Missing, "a") || slices.Contains(held.Missing, "later") {
		t.Errorf("%+v, %v", held, err)
	}
}
