package etcdgate

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
)

// endless is a body that never ends: the same request again and again.
type endless struct {
	text []byte
	sent *atomic.Int64
}

func (e endless) Read(p []byte) (int, error) {
	n := copy(p, bytes.Repeat(e.text, max(1, len(p)/len(e.text))))
	e.sent.Add(int64(n))
	return n, nil
}

func (endless) Close() error { return nil }

// frame returns a message as gRPC sends it.
func frame(t *testing.T, m proto.Message) []byte {
	t.Helper()
	text, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...)
}

// The gRPC server takes all that is sent into memory while it answers. So nobody may send without
// an end.
func TestAStreamThatNeverEnds(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewUnstartedServer(w.gates[0].Config.Handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	progress := frame(t, &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
	one := frame(t, &pb.RangeRequest{Key: []byte("/service/db-A/leader")})
	for path, text := range map[string][]byte{"/etcdserverpb.Watch/Watch": progress, "/etcdserverpb.KV/Range": one} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var sent atomic.Int64
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path, endless{text, &sent})
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/grpc")
		r.Header.Set(callerHeader, "db-A.m1")
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
		answer, err := client.Do(r)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		// What is under way comes on top, and so do the windows of HTTP/2.
		if ctx.Err() != nil || sent.Load() > 8<<20 {
			t.Errorf("%s: took %d bytes, %v", path, sent.Load(), err)
		}
		client.CloseIdleConnections()
	}
}

// etcd puts an answer together in memory. A request that names its own keys again and again does
// not come from Patroni.
func TestARequestThatAsksAgainAndAgain(t *testing.T) {
	w := newWorld(t)
	all := within("/service/db-A/", "/service/db-A0")
	many := func(n int) string {
		return `{"compare":[],"success":[` + strings.TrimSuffix(strings.Repeat(`{"request_range":`+all+`},`, n), ",") + `]}`
	}
	w.works("db-A.m1", "/v3/kv/txn", many(4))
	if status, got := w.ask(0, "db-A.m1", "/v3/kv/txn", many(40)); status != http.StatusBadRequest {
		t.Errorf("%d %v", status, got)
	}
	nested := `{"compare":[],"success":[{"request_txn":` + many(20) + `},{"request_txn":` + many(20) + `}]}`
	if status, got := w.ask(0, "db-A.m1", "/v3/kv/txn", nested); status != http.StatusBadRequest {
		t.Errorf("nested: %d %v", status, got)
	}
	client := w.grpcClient()
	var ops []clientv3.Op
	for range 100 {
		ops = append(ops, clientv3.OpGet("/service/db-A/history"))
	}
	if _, err := client.Txn(as(t.Context(), "db-A.m1")).Then(ops...).Commit(); err == nil {
		t.Error("a hundred reads at once")
	}
}

// Answers are paid for, however few requests they take.
func TestAnswersArePaidFor(t *testing.T) {
	b := budget{limits: ofDatabase}
	for n := range 100 {
		done, err := b.read(t.Context(), "db-A")
		if err != nil {
			if n < 2 {
				t.Errorf("refused at once: %v", err)
			}
			break
		}
		if n == 99 {
			t.Error("there is no end")
		}
		done(b.answersAtOnce / 2)
	}
	for range b.reading {
		if _, err := b.read(t.Context(), "db-B"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := b.read(ctx, "db-B"); err == nil {
		t.Error("more at a time than may be")
	}
	if done, err := b.read(t.Context(), "db-C"); err != nil {
		t.Errorf("another one waits: %v", err)
	} else {
		done(1)
	}
}

// A lease that nobody keeps alive is gone soon. Otherwise leases would fill etcd.
func TestALeaseIsNotForEver(t *testing.T) {
	w := newWorld(t)
	if got := w.works("db-A.m1", "/v3/lease/grant", `{"TTL":9000000000}`); fmt.Sprint(got["TTL"]) != fmt.Sprint(mostTTL) {
		t.Errorf("a lease of centuries: %v", got)
	}
	if got := w.works("db-A.m1", "/v3/lease/grant", `{"TTL":20}`); fmt.Sprint(got["TTL"]) != "20" {
		t.Errorf("Patroni's: %v", got)
	}
}

// While etcd does not say whose a lease is, nobody is told that it ended. Otherwise a member would
// give up the lease of its leader key.
func TestALeaseThatEtcdDoesNotTellOf(t *testing.T) {
	w := newWorld(t)
	granted, err := w.home.Store.Client.Grant(t.Context(), 60) // as an older release did
	if err != nil {
		t.Fatal(err)
	}
	lease := fmt.Sprint(int64(granted.ID))
	if _, err := w.home.Store.Client.Put(t.Context(), "/service/db-A/leader", "m1", clientv3.WithLease(granted.ID)); err != nil {
		t.Fatal(err)
	}
	w.clients[1].Close()
	for path, body := range map[string]string{"/v3/lease/keepalive": `{"ID":"` + lease + `"}`, "/v3/kv/put": put("/service/db-A/members/m1", "{}", lease)} {
		status, got := w.ask(1, "db-A.m1", path, body)
		if status != http.StatusServiceUnavailable || fmt.Sprint(got["code"]) != fmt.Sprint(unavailable) {
			t.Errorf("%s: %d %v", path, status, got)
		}
	}
}
