package etcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// retry says how soon a client tries again to connect. gRPC's own backoff grows to two minutes.
// With it an agent would learn that much later that etcd is back.
var retry = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: 5 * time.Second,
}

// Credentials are what a client shows: a certs.Pair, or a certs.Identity if the client may outlive
// a pair.
type Credentials interface {
	ClientTLS() (*tls.Config, error)
}

// Dial makes a client for processes other than the member's own. It returns at once. Calls wait for
// a connection until their context ends. A connection that is lost or refused is tried again within
// about a second, however long etcd was away.
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
		// A host that is gone is noticed in seconds, not in the minutes that TCP takes.
		DialKeepAliveTime:    2 * time.Second,
		DialKeepAliveTimeout: 2 * time.Second,
		AutoSyncInterval:     30 * time.Second,
		DialOptions:          []grpc.DialOption{grpc.WithConnectParams(retry)},
		Logger:               zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return client, nil
}
