package state_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"howdah/internal/failover/fence"
	"howdah/internal/state"
)

// mute returns a client of an etcd that takes every call and answers none.
func mute(t *testing.T) *clientv3.Client {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	}))
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + l.Addr().String()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// A caller that sets no deadline does not wait for ever for an etcd that does not answer.
func TestEveryCallEnds(t *testing.T) {
	state.Impatient(t, 100*time.Millisecond)
	s := &state.Store{Client: mute(t)}
	key := state.Host("a")
	for name, call := range map[string]func(context.Context) error{
		"read": func(ctx context.Context) error { _, err := state.Get[bool](ctx, s, key); return err },
		"list": func(ctx context.Context) error { _, err := state.List[bool](ctx, s, state.HostRoot); return err },
		"write": func(ctx context.Context) error {
			_, err := s.Commit(ctx, state.Put(key, true))
			return err
		},
		"write more than a transaction takes": func(ctx context.Context) error {
			_, err := s.CommitEach(ctx, []state.Op{state.Put(key, true), state.Put(key, false)})
			return err
		},
		"read the leadership": func(ctx context.Context) error {
			_, err := fence.Read(ctx, s.Client, "db-1")
			return err
		},
		"revoke it": func(ctx context.Context) error {
			l := fence.Leadership{Database: "db-1", Leader: "m1"}
			l.Sync.Leader, l.Sync.Standbys = "m1", []string{"m2"}
			return fence.Revoke(ctx, s.Client, l, fence.Proof{Method: "killed"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { ended <- call(ctx) }()
			select {
			case err := <-ended:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Error("it waits still")
			}
		})
	}
}

// A caller's own deadline holds, also if it is later.
func TestACallersDeadlineHolds(t *testing.T) {
	state.Impatient(t, time.Millisecond)
	later, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	within, end := state.Within(later)
	defer end()
	want, _ := later.Deadline()
	if got, ok := within.Deadline(); !ok || !got.Equal(want) {
		t.Errorf("%s, want %s", got, want)
	}
}
