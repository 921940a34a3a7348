package reconcile

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"howdah/internal/failover/fence"
	"howdah/internal/failover/postmortem"
	"howdah/internal/model/route"
	"howdah/internal/state"
)

// The newest post-mortems are kept. Those of databases that no longer exist are kept for some time.
func TestPostmortemsDoNotGrowForEver(t *testing.T) {
	b := made(t, false)
	var want []string
	for i := range postmortem.Most + 20 {
		id := fmt.Sprintf("%016x", i)
		b.put(state.Put(state.Failover(dbID, id), postmortem.Record{ID: id, Database: dbID, Recorded: b.now.Add(-2 * postmortem.Keep)}))
		if i >= 20 {
			want = append(want, state.Failover(dbID, id))
		}
	}
	for id, at := range map[string]time.Time{"old": b.now.Add(-postmortem.Keep - time.Hour), "young": b.now.Add(-postmortem.Keep + time.Hour)} {
		b.put(state.Put(state.Failover("db-gone", id), postmortem.Record{ID: id, Database: "db-gone", Recorded: at}))
	}
	want = append(want, state.Failover("db-gone", "young"))
	b.sweep()
	if left := b.cache.Keys(state.FailoverRoot); !slices.Equal(left, want) {
		t.Errorf("%d are left, want %d: %q", len(left), len(want), left)
	}
}

// What is told too late is removed with what it belongs to. The rest stays.
func TestLateWordsAreRemoved(t *testing.T) {
	b := made(t, false)
	keep := []string{state.Witness("case-1", "a"), state.Cut("case-1", "m2"), state.Switch("edge", dbID), state.Way("r1", "edge"), state.Death(dbID, "left")}
	late := []string{state.Witness("case-0", "a"), state.Cut("case-0", "m2"), state.Switch("edge", "db-gone"), state.Way("r0", "edge"), state.Death("db-gone", "m1")}
	ops := []state.Op{state.Put(state.Fence(dbID, "m1"), fence.Case{ID: "case-1"}), state.Put(state.Route("r1"), route.Route{})}
	for _, key := range slices.Concat(keep, late) {
		ops = append(ops, state.Put(key, map[string]string{"edge": "edge"}))
	}
	b.put(ops...)
	b.sweep()
	for _, key := range keep {
		if _, _, there := b.cache.Raw(key); !there {
			t.Errorf("%s is gone", key)
		}
	}
	for _, key := range late {
		if _, _, there := b.cache.Raw(key); there {
			t.Errorf("%s is left", key)
		}
	}
}
