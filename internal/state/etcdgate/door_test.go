package etcdgate

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"google.golang.org/grpc/codes"

	"howdah/internal/edge/seen"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/identity/stranger"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
)

func caughtUp(context.Context) error { return nil }

// doorway is a real etcd with doors before it, as control planes that share it have.
type doorway struct {
	*testing.T
	home   *hometest.Home
	caches []*state.Cache
	urls   []string
	doors  []*Door
	until  func() // ends the doors
}

func newDoorway(t *testing.T) *doorway {
	t.Helper()
	d := &doorway{T: t, home: hometest.New(t)}
	ctx, cancel := context.WithCancel(t.Context())
	d.until = cancel
	t.Cleanup(cancel)
	for range 2 {
		d.open(ctx)
	}
	return d
}

func (d *doorway) open(ctx context.Context) {
	d.Helper()
	pair := d.home.Issue(d, home.ServerName)
	own, err := pair.ClientTLS()
	d.must(err)
	served, err := pair.ServerTLS()
	d.must(err)
	served.ClientAuth = tls.RequireAndVerifyClientCert
	client, err := etcd.Dial(ctx, d.home.Etcd, pair)
	d.must(err)
	cache := state.NewCache(d.home.Store.Client, slog.New(slog.DiscardHandler), state.Root, patroni.Namespace)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	d.must(err)
	secure := &tls.Dialer{Config: own}
	door := NewDoor(DoorConfig{
		Config: Config{
			Etcd: d.home.Etcd[0], HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: own.Clone()}}, Client: client, Log: slog.New(slog.DiscardHandler),
		},
		TLS: served, ControlPlane: home.ServerName, Cache: cache, Room: stranger.New(stranger.Default),
		Inside: func(ctx context.Context) (net.Conn, error) {
			config := own.Clone()
			config.NextProtos = []string{"h2"}
			return (&tls.Dialer{Config: config, NetDialer: secure.NetDialer}).DialContext(ctx, "tcp", strings.TrimPrefix(d.home.Etcd[0], "https://"))
		},
		CatchUp: func(ctx context.Context) error {
			answer, err := d.home.Store.Client.Get(ctx, "/")
			if err == nil {
				err = cache.WaitRevision(ctx, answer.Header.Revision)
			}
			return err
		},
	})
	done := make(chan struct{})
	go func() { defer close(done); _ = cache.Run(ctx) }()
	ended := make(chan error, 1)
	go func() { ended <- door.Serve(ctx, l) }()
	d.Cleanup(func() {
		d.until()
		if err := <-ended; err != nil {
			d.Errorf("the door: %v", err)
		}
		<-done
		client.Close()
	})
	d.must(cache.Loaded(d.Context()))
	d.caches, d.urls, d.doors = append(d.caches, cache), append(d.urls, "https://"+l.Addr().String()), append(d.doors, door)
}

func (d *doorway) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// as returns etcd's own client with a certificate of this name, at some of the doors.
func (d *doorway) as(name string, urls ...string) *clientv3.Client {
	d.Helper()
	client, err := etcd.Dial(d.Context(), urls, d.home.Issue(d, name))
	d.must(err)
	d.Cleanup(func() { client.Close() })
	return client
}

func (d *doorway) put(ops ...state.Op) {
	d.Helper()
	_, err := d.home.Store.Commit(d.Context(), ops...)
	d.must(err)
}

// An agent is often quicker than the mirror of the control plane that it asks. What was assigned a
// moment ago is not refused.
func TestAnAgentThatIsFasterThanTheMirror(t *testing.T) {
	d := newDoorway(t)
	client := d.as("agent:h1", d.urls...)
	for n := range 50 {
		id := fmt.Sprintf("db-%d", n)
		d.put(state.Put(state.Assign("h1", id+".m1"), member.Assignment{}))
		if _, err := client.Put(t.Context(), patroni.SyncKey(id), "{}"); err != nil {
			t.Fatalf("the %d. time: %v", n, err)
		}
		d.put(state.Delete(state.Assign("h1", id+".m1")))
		testkit.Eventually(t, 5*time.Second, func() error {
			if _, err := client.Put(t.Context(), patroni.SyncKey(id), "{}"); codeOf(err) != codes.PermissionDenied {
				return fmt.Errorf("what was taken away is written: %w", err)
			}
			return nil
		})
	}
}

// The client of an edge's session asks each control plane in turn: one grants the lease, the next
// is asked to put it under a key, and another one to keep it alive.
func TestALeaseThatAnotherDoorGranted(t *testing.T) {
	d := newDoorway(t)
	one, two := d.as("edge:e1", d.urls[0]), d.as("edge:e1", d.urls[1])
	lease, err := one.Grant(t.Context(), 30)
	d.must(err)
	_, err = two.KeepAliveOnce(t.Context(), lease.ID)
	d.must(err)
	_, err = two.Put(t.Context(), state.Runs("e1"), "true", clientv3.WithLease(lease.ID))
	d.must(err)
	_, err = two.KeepAliveOnce(t.Context(), lease.ID)
	d.must(err)
	// Somebody else can neither end it, nor keep it alive, nor put it under keys.
	thief := d.as("edge:e2", d.urls...)
	if _, err := thief.Revoke(t.Context(), lease.ID); err == nil {
		t.Error("another edge ends it")
	}
	if _, err := thief.KeepAliveOnce(t.Context(), lease.ID); err == nil {
		t.Error("another edge keeps it alive")
	}
	if _, err := thief.Put(t.Context(), state.Runs("e2"), "true", clientv3.WithLease(lease.ID)); err == nil {
		t.Error("another edge uses it")
	}
	_, err = two.Revoke(t.Context(), lease.ID)
	d.must(err)
}

// What agents and edges do all day works as with etcd itself: a mirror that reads on, a session,
// transactions on conditions, and an answer of many megabytes.
func TestAnEdgeWorksThroughADoor(t *testing.T) {
	d := newDoorway(t)
	for n := range 8 {
		d.put(state.Put(state.Report("h1", fmt.Sprintf("db-%d.m1", n)), strings.Repeat("x", 1<<20)))
	}
	client := d.as("edge:e1", d.urls...)
	cache := state.NewCache(client, slog.New(slog.DiscardHandler), patroni.Namespace, state.RouteRoot, state.WayRoot, state.ReportRoot, state.LiveRoot)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cache.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	d.must(cache.Loaded(t.Context()))
	d.put(state.Put(state.Live("h1"), true))
	testkit.Eventually(t, 10*time.Second, func() error {
		if _, _, ok := cache.Raw(state.Live("h1")); !ok {
			return fmt.Errorf("the mirror does not go on")
		}
		return nil
	})
	session, err := concurrency.NewSession(client, concurrency.WithTTL(5))
	d.must(err)
	store := &state.Store{Client: client}
	_, err = store.Commit(t.Context(), state.Put(state.Runs("e1"), true, clientv3.WithLease(session.Lease())), state.Swap(state.Switch("e1", "db-1"), 0, seen.Switch{Database: "db-1"}))
	d.must(err)
	d.must(session.Close())
	testkit.Eventually(t, 10*time.Second, func() error {
		if answer, err := d.home.Store.Client.Get(t.Context(), state.Runs("e1")); err != nil || answer.Count != 0 {
			return fmt.Errorf("the session is still there: %v, %w", answer, err)
		}
		return nil
	})
	list, err := client.MemberList(t.Context())
	if err != nil || len(list.Members) != 1 {
		t.Errorf("which control planes there are: %v, %v", list, err)
	}
}

// A watch of somebody else's keys is refused, and so are all calls that are for control planes.
func TestADoorIsClosedToAllElse(t *testing.T) {
	d := newDoorway(t)
	d.put(state.Put(state.Secret("db-A"), "sealed"), state.Put(state.Assign("h2", "db-A.m1"), member.Assignment{}))
	client := d.as("agent:h1", d.urls...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, err := range map[string]error{
		"secrets":         second(client.Get(ctx, state.SecretRoot, clientv3.WithPrefix())),
		"all":             second(client.Get(ctx, "", clientv3.WithFromKey())),
		"a txn":           second(client.Txn(ctx).Then(clientv3.OpGet(state.Secret("db-A"))).Commit()),
		"a condition":     second(client.Txn(ctx).If(clientv3.Compare(clientv3.Value(state.Secret("db-A")), ">", "a")).Then().Commit()),
		"a txn in a txn":  second(client.Txn(ctx).Then(clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpDelete(state.Assign("h2", "db-A.m1"))}, nil)).Commit()),
		"an assignment":   second(client.Put(ctx, state.Assign("h1", "db-A.m1"), "{}")),
		"a catalogue":     second(client.Put(ctx, state.Catalogue("15.1"), "{}")),
		"members":         second(client.MemberAdd(ctx, []string{"https://127.0.0.1:1"})),
		"compaction":      second(client.Compact(ctx, 1)),
		"a snapshot":      d.snapshot(client),
		"status":          second(client.Status(ctx, d.urls[0])),
		"leases":          second(client.Leases(ctx)),
		"authentication":  second(client.AuthEnable(ctx)),
		"users":           second(client.UserAdd(ctx, "a", "b")),
		"defragmentation": second(client.Defragment(ctx, d.urls[0])),
		"an alarm":        second(client.AlarmList(ctx)),
		"a lease of ours": second(client.Put(ctx, state.Host("h1"), "{}", clientv3.WithLease(d.leaseUnder(state.Runs("e1"))))),
	} {
		if code := codeOf(err); code != codes.PermissionDenied && code != codes.NotFound && code != codes.Unimplemented {
			t.Errorf("%s: %v", name, err)
		}
	}
	for said := range client.Watch(ctx, state.SecretRoot, clientv3.WithPrefix(), clientv3.WithRev(1)) {
		if len(said.Events) > 0 {
			t.Error("it watches secrets")
		}
		if said.Canceled || said.Err() != nil {
			break
		}
	}
	catalogue := state.Catalogue("15.1")
	fresh := func() (*clientv3.TxnResponse, error) {
		return client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(catalogue), "=", 0)).Then(clientv3.OpPut(catalogue, "1")).Commit()
	}
	if answer, err := fresh(); err != nil || !answer.Succeeded {
		t.Errorf("the first to have a version: %v", err)
	}
	if answer, err := fresh(); err != nil || answer.Succeeded {
		t.Errorf("what is there is written again: %v", err)
	}
	if _, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(catalogue), ">", 0)).Then(clientv3.OpPut(catalogue, "2")).Commit(); codeOf(err) != codes.PermissionDenied {
		t.Errorf("what is there is changed: %v", err)
	}
	if _, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(catalogue), "=", 0)).Else(clientv3.OpPut(catalogue, "2")).Commit(); codeOf(err) != codes.PermissionDenied {
		t.Errorf("what is there is changed otherwise: %v", err)
	}
}

// snapshot reads all of a snapshot.
func (d *doorway) snapshot(client *clientv3.Client) error {
	image, err := client.Snapshot(d.Context())
	if err == nil {
		_, err = io.Copy(io.Discard, image)
	}
	return err
}

// leaseUnder makes a lease with a key of somebody else.
func (d *doorway) leaseUnder(key string) clientv3.LeaseID {
	d.Helper()
	lease, err := d.home.Store.Client.Grant(d.Context(), 60)
	d.must(err)
	_, err = d.home.Store.Client.Put(d.Context(), key, "x", clientv3.WithLease(lease.ID))
	d.must(err)
	return lease.ID
}

// A control plane does through another one's door what it does with etcd itself.
func TestAControlPlanePassesThrough(t *testing.T) {
	d := newDoorway(t)
	client := d.as(home.ServerName, d.urls[0])
	d.must(second(client.Put(t.Context(), "/howdah/anything", "x")))
	d.must(second(client.Status(t.Context(), d.urls[0])))
	d.must(d.snapshot(client))
	d.until()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := client.Get(ctx, "x"); err == nil {
		t.Error("it passes through a door that is closed")
	}
}

// A Patroni of an older release shows its host's certificate, and asks by JSON.
func TestPatroniOfAnOlderRelease(t *testing.T) {
	d := newDoorway(t)
	d.put(state.Put(state.Assign("h1", "db-A.m1"), member.Assignment{}))
	config, err := d.home.Issue(t, "agent:h1").ClientTLS()
	d.must(err)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: 20 * time.Second}
	t.Cleanup(client.CloseIdleConnections)
	ask := func(path, body string) (int, string) {
		answer, err := client.Post(d.urls[0]+path, "application/json", strings.NewReader(body))
		d.must(err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		d.must(err)
		return answer.StatusCode, string(text)
	}
	for path, body := range map[string]string{
		"/v3/kv/put": put("/service/db-A/members/m1", "{}", ""), "/v3/lease/grant": `{"TTL":30}`,
		"/v3/kv/range": within("/service/db-A/", "/service/db-A0"), "/v3/cluster/member/list": `{}`,
	} {
		if status, text := ask(path, body); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if _, text := ask("/v3/cluster/member/list", `{}`); !strings.Contains(text, "clientURLs") {
		t.Errorf("where etcd is: %s", text)
	}
	for path, body := range map[string]string{
		"/v3/kv/put": put("/service/db-B/leader", "m1", ""), "/v3/kv/range": within("/howdah/", "/howdah0"), "/v3/auth/enable": `{}`,
	} {
		if status, text := ask(path, body); status == http.StatusOK {
			t.Errorf("%s: %s", path, text)
		}
	}
}

// A caller without a certificate of the home is not let in, nor one with a server's or a member's
// certificate.
func TestStrangersAtTheDoor(t *testing.T) {
	d := newDoorway(t)
	other, err := certs.New("another home")
	d.must(err)
	foreign, err := other.Issue(certs.Subject{CommonName: home.ServerName})
	d.must(err)
	for name, pair := range map[string]certs.Pair{"another home's control plane": foreign, "a member": d.home.Issue(t, "member:db-A.m1"), "nobody": d.home.Issue(t, "somebody")} {
		client, err := etcd.Dial(t.Context(), d.urls[:1], pair)
		d.must(err)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if _, err := client.Get(ctx, "/howdah/meta/"); err == nil {
			t.Errorf("%s is let in", name)
		}
		cancel()
		client.Close()
	}
}
