package reconcile

import (
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/model/regain"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
	"howdah/internal/view"
)

// After a restore a host may say what it has, and not what others have. The control plane tells the
// host of a copy what that copy's record says.
func TestACopyInAnotherHostsName(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	forged := regain.Copy{
		Home: "1", Host: "h2", System: "7", Timeline: 99, Running: true, Primary: true,
		Assignment: member.Assignment{ID: "db-C.m1", Scope: "db-C", Name: "m1", Generation: 1, Want: member.Running},
	}
	etcdtest.Put(t, store, cache,
		state.Put(state.Host("h2"), member.Host{Name: "h2"}), state.Put(state.Host("h9"), member.Host{Name: "h9"}),
		state.Put(state.Restored(), regain.Home{ID: "1"}),
		state.Put(state.Holding("h2"), regain.Holding{Home: "1", Host: "h2"}),
		state.Put(state.Holding("h9"), regain.Holding{Home: "1", Host: "h9", Members: []string{"db-C.m1"}}),
		state.Put(state.HeldCopy("h9", "db-C.m1"), forged))
	copies, missing, err := view.Held{Cache: cache, Seals: seals(t)}.Copies("")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range copies {
		if c.Host != "h9" {
			t.Errorf("h9 says what h2 has, and so what h2 shall run: %+v, missing %v", c, missing)
		}
	}
}
