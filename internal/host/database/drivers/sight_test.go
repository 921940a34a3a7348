package drivers

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"howdah/internal/host/agent"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
	"howdah/internal/testkit/etcdtest"
)

// A member follows its cluster, and no other one, by a watch. What has changed is told at once, what has
// not every few seconds, and nothing while etcd says nothing.
func TestAMemberFollowsItsCluster(t *testing.T) {
	t.Parallel()
	store := etcdtest.Store(t)
	put := func(key, value string) {
		t.Helper()
		if _, err := store.Client.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	member := func(scope, name, state string) {
		put(patroni.MembersPrefix(scope)+name, fmt.Sprintf(`{"state":%q,"role":"replica","conn_url":"x","api_url":"y"}`, state))
	}
	put(patroni.LeaderKey("cluster-1"), "m1")
	put(patroni.LeaderKey("cluster-10"), "m9")
	member("cluster-1", "m1", "running")
	member("cluster-1", "m2", "starting")
	k := &Keeper{agent: &agent.Agent{Config: agent.Config{Log: slog.New(slog.DiscardHandler)}, Store: store}}
	defer k.close()
	tells := func(leader string, running ...string) {
		t.Helper()
		testkit.Eventually(t, 10*time.Second, func() error {
			if k.look(t.Context(), "cluster-1") {
				k.told = k.seen
			}
			var ran []string
			for name, at := range k.told.Members {
				if at.Equal(k.told.At) {
					ran = append(ran, name)
				}
			}
			if slices.Sort(ran); k.told.Leader != leader || !slices.Equal(ran, running) {
				return fmt.Errorf("told was %+v", k.told)
			}
			return nil
		})
	}
	tells("m1", "m1")
	member("cluster-1", "m2", "running")
	tells("m1", "m1", "m2")
	put(patroni.LeaderKey("cluster-1"), "m2")
	tells("m2", "m1", "m2")
	if _, err := store.Client.Delete(t.Context(), patroni.LeaderKey("cluster-1")); err != nil {
		t.Fatal(err)
	}
	tells("", "m1", "m2")
	if k.told.Writer != "m2" {
		t.Errorf("who wrote last: %+v", k.told)
	}
	// A change wakes it.
	put(patroni.LeaderKey("cluster-1"), "m1")
	<-k.sight.changed
	tells("m1", "m1", "m2")
	// What has not changed is told again when its time has come, and no word is repeated.
	before := k.told.At
	if k.look(t.Context(), "cluster-1") && k.seen.At.Sub(before) < beat {
		t.Errorf("told again after %s", k.seen.At.Sub(before))
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		if !k.look(t.Context(), "cluster-1") {
			return fmt.Errorf("not yet, after %s", k.seen.At.Sub(before))
		}
		return nil
	})
	if k.seen.At.Sub(before) < beat {
		t.Errorf("told again after %s", k.seen.At.Sub(before))
	}
}
