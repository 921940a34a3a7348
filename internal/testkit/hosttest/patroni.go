package hosttest

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/model/patroni"
)

// Grant has the keys that m1 keeps hang on a new lease.
func (s *Site) Grant(ctx context.Context, scope string, leads bool) (clientv3.LeaseID, error) {
	lease, err := s.Store.Client.Grant(ctx, patroni.TTL)
	if err != nil {
		return 0, err
	}
	keys := map[string]string{patroni.MemberKey(scope, "m1"): `{"state":"running"}`}
	if leads {
		keys[patroni.LeaderKey(scope)] = "m1"
	}
	for key, value := range keys {
		if _, err := s.Store.Client.Put(ctx, key, value, clientv3.WithLease(lease.ID)); err != nil {
			return 0, err
		}
	}
	return lease.ID, nil
}

// Get is the value of a key and its lease; "" for none.
func (s *Site) Get(key string) (value string, lease int64) {
	s.Helper()
	answer, err := s.Store.Client.Get(s.Context(), key)
	s.Must(err)
	if len(answer.Kvs) == 0 {
		return "", 0
	}
	return string(answer.Kvs[0].Value), answer.Kvs[0].Lease
}

// Leads writes Patroni's keys: who leads the scope, and which standbys are in sync.
func (s *Site) Leads(scope, leader, standbys string) {
	s.Helper()
	inSync := fmt.Sprintf(`{"leader":%q,"sync_standby":%q}`, leader, standbys)
	for key, value := range map[string]string{patroni.LeaderKey(scope): leader, patroni.SyncKey(scope): inSync} {
		_, err := s.Store.Client.Put(s.Context(), key, value)
		s.Must(err)
	}
}
