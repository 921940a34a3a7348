package fence_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit/etcdtest"
)

const (
	database = "db-1"
	syncText = `{"leader":"m1","sync_standby":"m2,m3","quorum":1}`
)

var killed = fence.Proof{Method: "killed", Text: "the group is empty", At: time.Now()}

// keys is what Patroni keeps of a database.
type keys struct {
	*testing.T
	client *clientv3.Client
}

func newKeys(t *testing.T) keys {
	t.Helper()
	return keys{t, etcdtest.Store(t).Client}
}

// leads makes a member the leader, under a lease with its member key.
func (k keys) leads(name, sync string) clientv3.LeaseID {
	k.Helper()
	lease, err := k.client.Grant(k.Context(), 60)
	if err != nil {
		k.Fatal(err)
	}
	k.put(patroni.LeaderKey(database), name, clientv3.WithLease(lease.ID))
	k.put(patroni.MemberKey(database, name), `{"state":"running"}`, clientv3.WithLease(lease.ID))
	if sync != "" {
		k.put(patroni.SyncKey(database), sync)
	}
	return lease.ID
}

func (k keys) put(key, value string, opts ...clientv3.OpOption) {
	k.Helper()
	if _, err := k.client.Put(k.Context(), key, value, opts...); err != nil {
		k.Fatal(err)
	}
}

func (k keys) get(key string) (value string, revision int64) {
	k.Helper()
	answer, err := k.client.Get(k.Context(), key)
	if err != nil {
		k.Fatal(err)
	}
	if len(answer.Kvs) == 0 {
		return "", 0
	}
	return string(answer.Kvs[0].Value), answer.Kvs[0].ModRevision
}

func (k keys) read() fence.Leadership {
	k.Helper()
	l, err := fence.Read(k.Context(), k.client, database)
	if err != nil {
		k.Fatal(err)
	}
	return l
}

func TestReadTakesOneLookAtEverything(t *testing.T) {
	k := newKeys(t)
	if l := k.read(); l.Leader != "" || l.Replaceable() || l.SyncRevision != 0 {
		t.Errorf("of nothing: %+v", l)
	}
	lease := k.leads("m1", syncText)
	_, leaderRevision := k.get(patroni.LeaderKey(database))
	_, syncRevision := k.get(patroni.SyncKey(database))
	want := fence.Leadership{
		Database: database, Leader: "m1", LeaderRevision: leaderRevision, Lease: lease, SyncRevision: syncRevision,
		Sync: patroni.Sync{Leader: "m1", Standbys: []string{"m2", "m3"}, Quorum: 1},
	}
	l := k.read()
	if diff := cmp.Diff(want, l); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !l.Replaceable() {
		t.Error("it has standbys in sync")
	}
	k.put(patroni.SyncKey(database), "{")
	if _, err := fence.Read(t.Context(), k.client, database); err == nil {
		t.Error("a sync key that does not decode is not read as empty")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fence.Read(ended, k.client, database); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
}

func TestReplaceable(t *testing.T) {
	standbys := []string{"m2"}
	for _, c := range []struct {
		name string
		l    fence.Leadership
		want bool
	}{
		{"with a standby", fence.Leadership{Leader: "m1", Sync: patroni.Sync{Leader: "m1", Standbys: standbys}}, true},
		{"without a standby", fence.Leadership{Leader: "m1", Sync: patroni.Sync{Leader: "m1"}}, false},
		{"in sync with another leader", fence.Leadership{Leader: "m1", Sync: patroni.Sync{Leader: "m2", Standbys: standbys}}, false},
		{"nobody leads", fence.Leadership{Sync: patroni.Sync{Standbys: standbys}}, false},
		{"not synchronous", fence.Leadership{Leader: "m1"}, false},
	} {
		if got := c.l.Replaceable(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRevokeTakesTheKeyAndShutsTheSyncKey(t *testing.T) {
	k := newKeys(t)
	k.leads("m1", syncText)
	l := k.read()
	if err := fence.Revoke(t.Context(), k.client, l, killed); err != nil {
		t.Fatal(err)
	}
	if leader, _ := k.get(patroni.LeaderKey(database)); leader != "" {
		t.Errorf("%s still leads", leader)
	}
	if value, revision := k.get(patroni.SyncKey(database)); value != syncText || revision == l.SyncRevision {
		t.Errorf("the sync key is %s at %d, was at %d: want it unchanged, and written again", value, revision, l.SyncRevision)
	}
	if value, _ := k.get(patroni.MemberKey(database, "m1")); value != "" {
		t.Error("the member key that hung on the lease is still there")
	}
	// The old leader's compare-and-swap must fail, with which it would shrink its set.
	shrink, err := k.client.Txn(t.Context()).
		If(clientv3.Compare(clientv3.ModRevision(patroni.SyncKey(database)), "=", l.SyncRevision)).
		Then(clientv3.OpPut(patroni.SyncKey(database), `{"leader":"m1"}`)).Commit()
	if err != nil || shrink.Succeeded {
		t.Errorf("the old leader shrank its synchronous set: %v, %v", shrink, err)
	}
	if err := fence.Revoke(t.Context(), k.client, l, killed); !errors.Is(err, fence.ErrMoved) {
		t.Errorf("a second time: %v, want ErrMoved", err)
	}
}

func TestRevokeOfALeaseThatHasEnded(t *testing.T) {
	k := newKeys(t)
	lease := k.leads("m1", syncText)
	// The key outlives its lease only here, where it is put back without one.
	k.put(patroni.LeaderKey(database), "m1")
	l := k.read()
	if l.Lease != 0 {
		t.Fatalf("lease %d", l.Lease)
	}
	if _, err := k.client.Revoke(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	l.Lease = lease
	if err := fence.Revoke(t.Context(), k.client, l, killed); err != nil {
		t.Errorf("a lease that is gone is as good as revoked: %v", err)
	}
}

func TestRevokeRefuses(t *testing.T) {
	k := newKeys(t)
	for _, c := range []struct {
		name   string
		sync   string
		change func(l *fence.Leadership) fence.Proof
		want   error
	}{
		{"without a proof", syncText, func(*fence.Leadership) fence.Proof { return fence.Proof{} }, fence.ErrRefused},
		{"when no standby has everything", `{"leader":"m1","sync_standby":""}`, func(*fence.Leadership) fence.Proof { return killed }, fence.ErrNotSafe},
		{"when the sync key is another leader's", `{"leader":"m2","sync_standby":"m1"}`, func(*fence.Leadership) fence.Proof { return killed }, fence.ErrNotSafe},
		{"when the leader changed", syncText, func(*fence.Leadership) fence.Proof {
			k.put(patroni.LeaderKey(database), "m2")
			return killed
		}, fence.ErrMoved},
		{"when the leader won its key again", syncText, func(*fence.Leadership) fence.Proof {
			k.put(patroni.LeaderKey(database), "m1")
			return killed
		}, fence.ErrMoved},
		{"when the synchronous set shrank", syncText, func(*fence.Leadership) fence.Proof {
			k.put(patroni.SyncKey(database), `{"leader":"m1","sync_standby":"","quorum":0}`)
			return killed
		}, fence.ErrMoved},
		{"when the sync key is gone", syncText, func(*fence.Leadership) fence.Proof {
			if _, err := k.client.Delete(t.Context(), patroni.SyncKey(database)); err != nil {
				t.Fatal(err)
			}
			return killed
		}, fence.ErrMoved},
	} {
		t.Run(c.name, func(t *testing.T) {
			k.leads("m1", c.sync)
			l := k.read()
			proof := c.change(&l)
			if err := fence.Revoke(t.Context(), k.client, l, proof); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if leader, _ := k.get(patroni.LeaderKey(database)); leader == "" {
				t.Error("the leader key was taken all the same")
			}
			if value, _ := k.get(patroni.MemberKey(database, "m1")); value == "" {
				t.Error("the lease was revoked all the same")
			}
		})
	}
}

func TestRevokeSaysThatEtcdDoesNotAnswer(t *testing.T) {
	k := newKeys(t)
	k.leads("m1", syncText)
	l := k.read()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := fence.Revoke(ended, k.client, l, killed); err == nil || errors.Is(err, fence.ErrMoved) {
		t.Errorf("%v, want an error that is no verdict", err)
	}
}

func TestCaseIsWantedFromTheCutOn(t *testing.T) {
	for phase, want := range map[fence.Phase]bool{fence.Suspected: false, fence.Cutting: true, fence.Revoked: true} {
		if got := (fence.Case{Phase: phase}).Wanted(); got != want {
			t.Errorf("%s: %v, want %v", phase, got, want)
		}
	}
}
