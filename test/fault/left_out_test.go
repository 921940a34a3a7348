package fault

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
)

// A member took the leader key for a moment, while the member with all commits was down. Its
// Patroni wrote /sync and /failsafe with itself alone. Its gate refused, and put /sync back. When
// the other member is back, it races and leads, although /failsafe leaves it out, and although the
// history of /sync names the one that was refused.
func TestThePrimaryThatFailsafeLeavesOutLeadsAgain(t *testing.T) {
	s := begin(t, nil)
	id := s.given("orders", true)
	s.eventually(20*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	w := s.writing("orders")
	old, standby := s.leader(id), s.standby(id)
	s.must(s.rig.LoseHost(standby.ZoneLetter()), "lose the standby's host")
	s.eventually(60*time.Second, func() error {
		l, err := fence.Read(s.Context(), s.rig.Store.Client, id)
		if err == nil && len(l.Sync.Standbys) > 0 {
			err = fmt.Errorf("leadership %+v", l)
		}
		return err
	})
	w.works(10 * time.Second)
	s.must(s.rig.LoseHost(old.ZoneLetter()), "lose the primary's host")
	s.must(s.rig.ReturnHost(standby.ZoneLetter()), "the standby's host is back")
	s.eventually(60*time.Second, func() error {
		keys, err := s.rig.Store.Client.Get(s.Context(), patroni.Prefix(id), clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		if has(keys, patroni.LeaderKey(id)) || !has(keys, patroni.MembersPrefix(id)+patroni.OwnName(id, standby.Name)) {
			return fmt.Errorf("keys %v", keys.Kvs)
		}
		return nil
	})
	own := fmt.Sprintf(`{%q:"https://%s:%d/patroni"}`, patroni.OwnName(id, standby.Name), standby.Address, standby.Port+1)
	before, err := s.rig.Store.Client.Get(s.Context(), patroni.SyncKey(id))
	s.must(err, "read /sync")
	for _, write := range [][2]string{
		{patroni.FailsafeKey(id), own},
		{patroni.SyncKey(id), fmt.Sprintf(`{"leader":%q,"sync_standby":null,"quorum":0}`, patroni.OwnName(id, standby.Name))},
		{patroni.SyncKey(id), string(before.Kvs[0].Value)},
	} {
		_, err = s.rig.Store.Client.Put(s.Context(), write[0], write[1])
		s.must(err, "write what a member leaves that its gate refuses")
	}
	s.must(s.rig.ReturnHost(old.ZoneLetter()), "the primary's host is back")
	s.primary(id, old.Name, 60*time.Second)
	w.works(20 * time.Second)
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	w.nothingLost()
}

func has(answer *clientv3.GetResponse, key string) bool {
	return slices.ContainsFunc(answer.Kvs, func(kv *mvccpb.KeyValue) bool { return string(kv.Key) == key })
}
