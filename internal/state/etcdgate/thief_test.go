package etcdgate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/etcdtest"
)

// Patroni of another host got a lease at its gate, and is about to put the leader key under it. If
// somebody could put a key of their own under it first, the lease would be theirs, at this door for
// good.
func TestALeaseThatIsStillEmpty(t *testing.T) {
	d := newDoorway(t)
	thief := d.as("agent:h9", d.urls[0])
	lease, err := d.home.Store.Client.Grant(t.Context(), 60)
	d.must(err)
	if _, err := thief.Put(t.Context(), state.Host("h9"), "{}", clientv3.WithLease(lease.ID)); err == nil {
		t.Error("it puts a key of its own under a lease that is not its own")
	}
	_, _ = thief.KeepAliveOnce(t.Context(), lease.ID) // the door looks at its keys, and remembers whose it is
	_, err = d.home.Store.Client.Put(t.Context(), patroni.LeaderKey("db-C"), "db-C.m1", clientv3.WithLease(lease.ID))
	d.must(err)
	if _, err := thief.Revoke(t.Context(), lease.ID); err == nil {
		t.Error("it ends the lease of a primary of which no member is on its host")
	}
	answer, err := d.home.Store.Client.Get(t.Context(), patroni.LeaderKey("db-C"))
	if err != nil || len(answer.Kvs) != 1 {
		t.Errorf("the primary is deposed: %v, %v", answer, err)
	}
}

// A lease of a member of the host is not the host's own after the member has gone.
func TestALeaseOfAMemberThatHasGone(t *testing.T) {
	d := newDoorway(t)
	d.put(state.Put(state.Assign("h9", "db-C.m1"), member.Assignment{}))
	thief := d.as("agent:h9", d.urls[0])
	lease, err := thief.Grant(t.Context(), 60)
	d.must(err)
	_, err = thief.Put(t.Context(), patroni.LeaderKey("db-C"), "db-C.m1", clientv3.WithLease(lease.ID))
	d.must(err)
	d.put(state.Delete(state.Assign("h9", "db-C.m1")))
	d.must(d.doors[0].CatchUp(t.Context()))
	if _, err := thief.KeepAliveOnce(t.Context(), lease.ID); err == nil {
		t.Error("it holds the leader key of a database that has no member on it, for ever")
	}
}

// One stream may not ask without an end.
func TestAStreamThatAsksWithoutEnd(t *testing.T) {
	d := newDoorway(t)
	d.doors[0].gate.budget.requestsEach = 20
	client := d.as("edge:e1", d.urls[0])
	lease, err := client.Grant(t.Context(), 60)
	d.must(err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stream, err := pb.NewLeaseClient(client.ActiveConnection()).LeaseKeepAlive(ctx)
	d.must(err)
	const long = 3 * time.Second
	began, kept := time.Now(), 0
	for ; time.Since(began) < long; kept++ {
		if stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(lease.ID)}) != nil {
			break
		}
		if _, err := stream.Recv(); err != nil {
			break
		}
	}
	if may := 40 + 20*int(time.Since(began).Seconds()+1); kept > may {
		t.Errorf("%d keep-alives in %s, where %d requests may be", kept, time.Since(began), may)
	}
	watch, err := pb.NewWatchClient(client.ActiveConnection()).Watch(ctx)
	d.must(err)
	made, began := 0, time.Now()
	for ; time.Since(began) < long; made++ {
		create := &pb.WatchCreateRequest{Key: []byte(state.ReportRoot), RangeEnd: []byte("/howdah/report0"), StartRevision: 1}
		if watch.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}) != nil {
			break
		}
		if _, err := watch.Recv(); err != nil {
			break
		}
	}
	if may := 40 + 20*int(time.Since(began).Seconds()+1); made > may {
		t.Errorf("%d watches of the whole history in %s, where %d requests may be", made, time.Since(began), may)
	}
}

// etcd puts an answer together in memory, with each key as often as it is asked for.
func TestAnAnswerThatIsLong(t *testing.T) {
	d := newDoorway(t)
	client := d.as("agent:h1", d.urls[0])
	_, err := client.Put(t.Context(), state.Host("h1"), `{"name":"h1","x":"`+strings.Repeat("x", 1<<19)+`"}`)
	d.must(err)
	var ops []clientv3.Op
	for range 96 { // 1024 work as well
		ops = append(ops, clientv3.OpGet(state.Host("h1")))
	}
	if answer, err := client.Txn(t.Context()).Then(ops...).Commit(); err == nil {
		t.Errorf("one request of %d ops makes etcd and the door build an answer of %d MiB", len(ops), len(answer.Responses))
	}
}

// The gRPC server starts work on a stream before anybody counts the stream: it reads the message
// first.
func TestStreamsThatSayNothing(t *testing.T) {
	d := newDoorway(t)
	config, err := d.home.Issue(t, "agent:h1").ClientTLS()
	d.must(err)
	config.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(d.urls[0], "https://"), config)
	d.must(err)
	defer conn.Close()
	_, err = conn.Write([]byte(http2.ClientPreface))
	d.must(err)
	framer := http2.NewFramer(conn, conn)
	d.must(framer.WriteSettings())
	var refused atomic.Int64
	settings := map[http2.SettingID]uint32{}
	told := make(chan struct{})
	go func() {
		for {
			f, err := framer.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					_ = f.ForeachSetting(func(s http2.Setting) error { settings[s.ID] = s.Val; return nil })
					close(told)
				}
			case *http2.RSTStreamFrame:
				refused.Add(1)
			}
		}
	}()
	<-told
	if most, bounded := settings[http2.SettingMaxConcurrentStreams]; !bounded || most > 4096 {
		t.Errorf("streams of one connection, of which a host may have %d: %d, bounded %t", mostConns, most, bounded)
	}
	if most, bounded := settings[http2.SettingMaxHeaderListSize]; !bounded || most > 64<<10 {
		t.Errorf("headers of one stream: bounded %t (16 MiB otherwise)", bounded)
	}
	var headers bytes.Buffer
	encoder := hpack.NewEncoder(&headers)
	for _, f := range [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":path", "/etcdserverpb.KV/Range"}, {":authority", "x"}, {"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		d.must(encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
	}
	before := runtime.NumGoroutine()
	const opened = 6000 // ofHost.underWay is 4000
	for n := range opened {
		d.must(framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*n + 1), BlockFragment: headers.Bytes(), EndHeaders: true}))
		if n == 0 {
			headers.Reset()
			for _, f := range [][2]string{
				{":method", "POST"}, {":scheme", "https"}, {":path", "/etcdserverpb.KV/Range"}, {":authority", "x"}, {"content-type", "application/grpc"}, {"te", "trailers"},
			} {
				d.must(encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
			}
		}
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		if got := refused.Load(); got < opened-mostStreams {
			return fmt.Errorf("of %d streams %d were refused", opened, got)
		}
		return nil
	})
	if more := runtime.NumGoroutine() - before; more > ofHost.underWay {
		t.Errorf("%d streams hold %d goroutines, %d were refused; the budget counts %d", opened, more, refused.Load(), d.underWay("agent:h1"))
	}
}

func (d *doorway) underWay(account string) int {
	b := &d.doors[0].gate.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of(account).underWay
}

// Each refusal asks all control planes and the mirror. The judge needs these, too.
func TestRefusalsThatAskEtcd(t *testing.T) {
	store := etcdtest.Store(t)
	var asked atomic.Int64
	d := bareDoor(DoorConfig{Cache: etcdtest.Cache(t, store, nil), CatchUp: func(context.Context) error { asked.Add(1); return nil }})
	an, _ := d.callerBy("agent:h1")
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() { _ = an.may(t.Context(), need{keys: keys{Key: []byte("/howdah/layout/db-X")}}) })
	}
	all.Wait()
	if asked.Load() > 100 {
		t.Errorf("a thousand refusals at a time ask etcd and the mirror %d times", asked.Load())
	}
}

type lines struct {
	slog.Handler
	n *atomic.Int64
}

func (l lines) Enabled(context.Context, slog.Level) bool { return true }

func (l lines) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		l.n.Add(1)
	}
	return nil
}

// What is refused must not fill the disk with words.
func TestConnectionsThatAreToldOf(t *testing.T) {
	d := newDoorway(t)
	var told atomic.Int64
	d.doors[0].Log = slog.New(lines{slog.DiscardHandler, &told})
	pair := d.home.Issue(t, "somebody")
	config, err := pair.ClientTLS()
	d.must(err)
	for range 40 {
		if conn, err := tls.Dial("tcp", strings.TrimPrefix(d.urls[0], "https://"), config); err == nil {
			_, _ = conn.Read(make([]byte, 1))
			conn.Close()
		}
	}
	if told.Load() > 10 {
		t.Errorf("%d lines of 40 connections", told.Load())
	}
}

// Keys that are about nothing would fill etcd, and the mirrors of control planes, for ever.
func TestKeysAboutNothing(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	etcdtest.Put(t, store, cache, state.Put(state.Assign("h1", "db-A.m1"), member.Assignment{}))
	d := bareDoor(DoorConfig{Cache: cache, CatchUp: caughtUp})
	an, _ := d.callerBy("agent:h1")
	edge, _ := d.callerBy("edge:e1")
	for _, c := range []struct {
		who   caller
		key   string
		fresh bool
	}{
		{an, "/howdah/catalogue/" + strings.Repeat("9", 1<<20), true},
		{an, "/howdah/catalogue/no version", true},
		{an, "/howdah/witness/no-case/h1", false},
		{an, "/howdah/witness/" + strings.Repeat("x", 1<<20) + "/h1", false},
		{an, "/howdah/report/h1/no member", false},
		{an, "/howdah/report/h1/" + strings.Repeat("x", 1<<20), false},
		{an, "/howdah/holding/h1/" + strings.Repeat("x", 1<<20), false},
		{an, "/howdah/incident/db-A/" + strings.Repeat("x", 1<<20), false},
		{an, "/howdah/cut/db-A-/m1", false},
		{an, "/howdah/cut/db-A-no case/m1", false},
		{edge, "/howdah/way/no route/e1", false},
		{edge, "/howdah/way/a/b/c/e1", false},
		{edge, "/howdah/switch/e1/" + strings.Repeat("x", 1<<20), false},
	} {
		err := c.who.may(t.Context(), need{keys: keys{Key: []byte(c.key)}, deed: writes, fresh: c.fresh})
		if !errors.Is(err, errScope) {
			t.Errorf("%s writes %.60q, of %d bytes: %v", c.who, c.key, len(c.key), err)
		}
	}
}

// Each change costs etcd something, however many are in one transaction.
func TestManyChangesForThePriceOfOne(t *testing.T) {
	store := etcdtest.Store(t)
	d := bareDoor(DoorConfig{Cache: etcdtest.Cache(t, store, nil), CatchUp: caughtUp})
	g := &Gate{budget: budget{limits: ofHost}, Config: Config{Log: slog.New(slog.DiscardHandler)}}
	an, _ := d.callerBy("agent:h1")
	q := &pb.TxnRequest{}
	for n := range 1024 {
		q.Success = append(q.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: fmt.Appendf(nil, "/howdah/holding/h1/%d", n)}}})
	}
	all, err := needsOf(q, ofHost.needs)
	if err != nil {
		t.Fatal(err)
	}
	changes := 0
	for range 1000 {
		if err := g.may(t.Context(), an, all, 40<<10); err != nil {
			break
		}
		changes += len(all)
	}
	if most := ofHost.bytesAtOnce / overhead * 2; changes > most {
		t.Errorf("%d changes at once, where %d that are alone cost as much", changes, ofHost.bytesAtOnce/overhead)
	}
}
