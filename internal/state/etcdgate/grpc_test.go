package etcdgate

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// grpcClient returns etcd's own client, at a gate that takes a header's word for who calls.
func (w *world) grpcClient() *clientv3.Client {
	w.Helper()
	server := httptest.NewUnstartedServer(w.gates[0].Config.Handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	w.Cleanup(server.Close)
	client, err := clientv3.New(clientv3.Config{
		Context: w.Context(), Endpoints: []string{server.URL}, TLS: &tls.Config{InsecureSkipVerify: true}, Logger: zap.NewNop(),
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { client.Close() })
	return client
}

func as(ctx context.Context, member string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, callerHeader, member)
}

// Package gate asks this before a promotion: it looks at much at once, and at what was there
// before, writes on conditions, and watches from a past revision on.
func TestAGateOfAMemberIsAnswered(t *testing.T) {
	w := newWorld(t)
	client := w.grpcClient()
	ctx, cancel := context.WithTimeout(as(t.Context(), "db-A.m2"), time.Minute)
	defer cancel()
	first, err := client.Txn(ctx).Then(clientv3.OpPut("/service/db-A/sync", "one"), clientv3.OpPut("/howdah/passed/db-A", `{"database":"db-A","member":"m2"}`)).Commit()
	if err != nil {
		t.Fatal(err)
	}
	second, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision("/service/db-A/sync"), "=", first.Header.Revision)).Then(
		clientv3.OpPut("/service/db-A/sync", "two"), clientv3.OpDelete("/howdah/death/db-A/m2"), clientv3.OpDelete("/howdah/plea/db-A")).Commit()
	if err != nil || !second.Succeeded {
		t.Fatalf("%+v, %v", second, err)
	}
	look, err := client.Txn(ctx).Then(
		clientv3.OpGet("/service/db-A/sync"), clientv3.OpGet("/howdah/fence/db-A/", clientv3.WithPrefix()), clientv3.OpGet("/howdah/cut/db-A-", clientv3.WithPrefix()),
		clientv3.OpGet("/howdah/layout/db-A", clientv3.WithCountOnly()), clientv3.OpGet("/howdah/restored/home", clientv3.WithCountOnly()),
		clientv3.OpGet("/service/db-A/members/", clientv3.WithPrefix())).Commit()
	if err != nil || string(look.Responses[0].GetResponseRange().Kvs[0].Value) != "two" {
		t.Fatalf("%+v, %v", look, err)
	}
	before, err := client.Get(ctx, "/service/db-A/sync", clientv3.WithRev(first.Header.Revision))
	if err != nil || string(before.Kvs[0].Value) != "one" {
		t.Fatalf("%+v, %v", before, err)
	}
	said := <-client.Watch(ctx, "/service/db-A/sync", clientv3.WithRev(first.Header.Revision+1))
	if said.Err() != nil || len(said.Events) == 0 || string(said.Events[0].Kv.Value) != "two" {
		t.Errorf("%+v, %v", said, said.Err())
	}
}

func TestAGateOfAMemberReachesNothingElse(t *testing.T) {
	w := newWorld(t)
	client := w.grpcClient()
	if _, err := w.home.Store.Client.Put(t.Context(), "/service/db-B/leader", "m1"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(as(t.Context(), "db-A.m2"), time.Minute)
	defer cancel()
	txn := func(ops ...clientv3.Op) error {
		_, err := client.Txn(ctx).Then(ops...).Commit()
		return err
	}
	for name, err := range map[string]error{
		"read a key":         second(client.Get(ctx, "/service/db-B/leader")),
		"read all":           second(client.Get(ctx, "", clientv3.WithPrefix())),
		"read from its own":  second(client.Get(ctx, "/service/db-A/", clientv3.WithFromKey())),
		"write":              second(client.Put(ctx, "/service/db-B/leader", "x")),
		"delete":             second(client.Delete(ctx, "/service/db-B/leader")),
		"a txn":              txn(clientv3.OpPut("/service/db-B/leader", "x")),
		"a txn in a txn":     txn(clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut("/service/db-B/leader", "x")}, nil)),
		"a txn that reads":   txn(clientv3.OpGet("/howdah/", clientv3.WithPrefix())),
		"a txn that deletes": txn(clientv3.OpDelete("/howdah/death/db-A/", clientv3.WithPrefix())),
		"a lease":            second(client.Grant(ctx, 5)),
		"members":            second(client.MemberList(ctx)),
		"compaction":         second(client.Compact(ctx, 1)),
		"another lease":      txn(clientv3.OpPut("/service/db-A/leader", "x", clientv3.WithLease(7))),
	} {
		code := codeOf(err)
		if code != codes.PermissionDenied && code != codes.Unimplemented && code != codes.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	for said := range client.Watch(ctx, "/service/db-B/", clientv3.WithPrefix()) {
		if len(said.Events) > 0 {
			t.Error("it watches another's")
		}
		if said.Canceled || said.Err() != nil {
			break
		}
	}
	if _, err := client.Get(as(t.Context(), "db-A"), "/service/db-A/leader"); err == nil {
		t.Error("one who is no member")
	}
	answer, err := w.home.Store.Client.Get(t.Context(), "/service/db-B/leader")
	if err != nil || len(answer.Kvs) != 1 || string(answer.Kvs[0].Value) != "m1" {
		t.Errorf("%+v, %v", answer, err)
	}
}

// codeOf returns gRPC's code of what etcd's client returned.
func codeOf(err error) codes.Code {
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		return known.Code()
	}
	return status.Code(err)
}

func second[T any](_ T, err error) error { return err }
