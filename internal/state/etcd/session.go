package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// grantWithin is how long a lease may be asked for.
const grantWithin = 10 * time.Second

// Session keeps a lease of ttl seconds until end is called, which gives the lease back. The session
// outlives ctx, so that the lease can be given back after ctx has ended. To give it back may take
// as long as within says. If that fails, the lease ends by itself.
func Session(ctx context.Context, client *clientv3.Client, ttl int, within time.Duration) (session *concurrency.Session, end func(), err error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(within, cancel) })
	if session, err = newSession(life, client, ttl); err != nil {
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

// newSession is bounded by the time after which it is as good to ask for another lease. The library
// itself would wait for its lease for ever.
func newSession(life context.Context, client *clientv3.Client, ttl int) (*concurrency.Session, error) {
	granting, cancel := context.WithTimeout(life, grantWithin)
	defer cancel()
	lease, err := client.Grant(granting, int64(ttl))
	if err != nil {
		return nil, fmt.Errorf("ask for a lease: %w", err)
	}
	return concurrency.NewSession(client, concurrency.WithLease(lease.ID), concurrency.WithTTL(ttl), concurrency.WithContext(life))
}
