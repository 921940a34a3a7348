package etcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Credentials are what a client shows: a certs.Pair, or a certs.Identity where the
// client may outlive one.
type Credentials interface {
	ClientTLS() (*tls.Config, error)
}

// Dial makes a client for other processes than the member's own. It returns at
// once; calls wait for a connection until their context ends.
func Dial(ctx context.Context, urls []string, credentials Credentials) (*clientv3.Client, error) {
	config, err := credentials.ClientTLS()
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{
		Context:     ctx,
		Endpoints:   urls,
		TLS:         config,
		DialTimeout: 5 * time.Second,
		// A host that is gone is noticed in seconds, not in TCP's own minutes.
		DialKeepAliveTime:    2 * time.Second,
		DialKeepAliveTimeout: 2 * time.Second,
		AutoSyncInterval:     30 * time.Second,
		Logger:               zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return client, nil
}
