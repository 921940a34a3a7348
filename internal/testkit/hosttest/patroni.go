package hosttest

import (
	"context"

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
