package view

import (
	"slices"
	"testing"

	"howdah/internal/identity/seal"
	"howdah/internal/model/member"
	"howdah/internal/model/regain"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
)

// One host writes what nobody can read, one is about to say anew what it has, and one has said all:
// the first two are waited for by their names, and the third is heard.
func TestWhatHostsSaidIsReadHostByHost(t *testing.T) {
	t.Parallel()
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	seals, err := seal.NewAssignments(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	copyOf := func(host, id string) state.Op {
		return state.Put(state.HeldCopy(host, id), regain.Copy{Home: "1", Host: host, System: "7", Assignment: member.Assignment{ID: id}})
	}
	holding := func(host string, members ...string) state.Op {
		return state.Put(state.Holding(host), regain.Holding{Home: "1", Host: host, Members: members})
	}
	etcdtest.Put(t, store, cache, state.Put(state.Restored(), regain.Home{ID: "1"}),
		state.Put(state.Holding("damaged"), map[string]any{"host": "damaged", "members": 7}),
		holding("half", "db-1.m1", "db-2.m1"), copyOf("half", "db-1.m1"),
		holding("odd", "db-2.m3"), state.Put(state.HeldCopy("odd", "db-2.m3"), map[string]any{"host": "odd", "timeline": "x"}),
		holding("whole", "db-1.m2", "db-2.m2"), copyOf("whole", "db-1.m2"), copyOf("whole", "db-2.m2"),
		state.Put(state.Host("damaged"), member.Host{Name: "damaged"}), state.Put(state.Host("half"), member.Host{Name: "half"}),
		state.Put(state.Host("odd"), member.Host{Name: "odd"}), state.Put(state.Host("whole"), member.Host{Name: "whole"}))
	held := Held{Cache: cache, Seals: seals}
	for database, want := range map[string][]string{"db-1": {"half/m1", "whole/m2"}, "db-2": {"whole/m2"}, "": {"half/m1", "whole/m2", "whole/m2"}} {
		copies, missing, err := held.Copies(database)
		var names []string
		for _, c := range copies {
			names = append(names, c.Name())
		}
		if err != nil || !slices.Equal(names, want) || !slices.Equal(missing, []string{"damaged", "half", "odd"}) {
			t.Errorf("%q: %v of %v, missing are %v", database, err, names, missing)
		}
	}
	// Operators are shown what could be read, also what is not listed yet, but not what was said of
	// another restoration.
	etcdtest.Put(t, store, cache, copyOf("late", "db-1.m4"), state.Put(state.HeldCopy("whole", "db-3.m1"), regain.Copy{Home: "0", Host: "whole"}))
	var told []string
	for _, c := range Told(cache, "1") {
		told = append(told, c.Host+"/"+c.Assignment.ID)
	}
	if want := []string{"half/db-1.m1", "late/db-1.m4", "whole/db-1.m2", "whole/db-2.m2"}; !slices.Equal(told, want) {
		t.Errorf("told: %v, want %v", told, want)
	}
}
