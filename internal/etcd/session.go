package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// Session keeps a lease of ttl seconds until end is called, which gives it back. It
// outlives ctx, so that it can be given back when that has ended: by within, after
// which a lease that could not be ends by itself.
func Session(ctx context.Context, client *clientv3.Client, ttl int, within time.Duration) (session *concurrency.Session, end func(), err error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(within, cancel) })
	session, err = concurrency.NewSession(client, concurrency.WithTTL(ttl), concurrency.WithContext(life))
	if err != nil {
		stop()
		cancel()
		return nil, nil, err
	}
	return session, func() {
		_ = session.Close()
		stop()
		cancel()
	}, nil
}
