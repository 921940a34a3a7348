package edge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"howdah/internal/model/route"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// wire is the edge's own way to etcd, which can be cut: no answer arrives any more.
type wire struct {
	mu   sync.Mutex
	open chan struct{} // guarded by mu: closed while the way is open
}

func newWire() *wire {
	w := &wire{open: make(chan struct{})}
	close(w.open)
	return w
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = make(chan struct{})
}

// heal undoes cut, also where nothing is cut.
func (w *wire) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.open:
	default:
		close(w.open)
	}
}

func (w *wire) wait() {
	w.mu.Lock()
	open := w.open
	w.mu.Unlock()
	<-open
}

// dial connects as gRPC does, by a connection that holds back while the way is cut.
func (w *wire) dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &holding{c, w}, nil
}

type holding struct {
	net.Conn
	w *wire
}

func (h *holding) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if !errors.Is(err, io.EOF) {
		h.w.wait()
	}
	return n, err
}

// away has the edge of a test reach etcd by a way of its own.
func (w *world) away(c *Config) *wire {
	w.Helper()
	way := newWire()
	pair := w.home.Issue(w.T, "edge:edge")
	config, err := pair.ClientTLS()
	if err != nil {
		w.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: w.home.Etcd, TLS: config, Logger: zap.NewNop(), DialOptions: []grpc.DialOption{grpc.WithContextDialer(way.dial)},
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { way.heal(); client.Close() })
	c.Store = &state.Store{Client: client}
	return way
}

// etcd falls silent: a primary that acknowledges commits stays where it is, also on an edge
// that owns its address, and it is announced.
func TestSilenceOfEtcdAloneTakesNothingAway(t *testing.T) {
	for _, own := range []string{"", "host-m1"} {
		t.Run("own "+own, func(t *testing.T) {
			w := newWorld(t)
			w.putRoute(w.route("writer", route.Leader, w.listen))
			w.elect("m1")
			var way *wire
			w.run(func(c *Config) { way = w.away(c); c.Own, c.Announce = own, func(netip.Addr) error { return nil } })
			w.leadsTo("writer", "m1")
			way.cut()
			cut := time.Now()
			testkit.Eventually(t, soon, func() error {
				if err := w.leadsNow("writer", "m1"); err != nil {
					t.Fatalf("after %s: %v", time.Since(cut), err)
				}
				if time.Since(cut) < 3*believedFor {
					return errors.New("the primary has to prove itself several times")
				}
				return nil
			})
			if w.paths.isAway("writer") {
				t.Error("the address was given up")
			}
		})
	}
}

// etcd falls silent, and the primary acknowledges nothing: it is in recovery, it is gone, or
// its commits hang. Writers are refused, and an address that may be elsewhere is given
// up; sessions stay. What etcd says then counts again.
func TestWritersAreRefusedWithoutEvidence(t *testing.T) {
	for _, c := range []struct {
		name   string
		breaks func(*world)
	}{
		{"it is gone", func(w *world) { w.servers["m1"].Kill() }},
		{"its commits hang", func(w *world) {
			w.servers["m1"].Exec("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
			w.servers["m1"].Exec("SELECT pg_reload_conf()")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.putRoute(w.route("writer", route.Leader, w.listen))
			w.putRoute(w.route("readers", route.Readers, "127.201.0.2:5432"))
			w.serves("m3", true, true)
			w.elect("m1")
			var way *wire
			w.run(func(c *Config) { way = w.away(c) })
			w.leadsTo("writer", "m1")
			w.leadsTo("readers", "m3")
			way.cut()
			c.breaks(w)
			w.leadsTo("writer")
			if err := w.leadsNow("readers", "m3"); err != nil {
				t.Errorf("readers: %v", err)
			}
			for _, line := range w.paths.lines() {
				if line[:3] == "cut" {
					t.Errorf("sessions were cut without need: %s", line)
				}
			}
			w.elect("m2")
			way.heal()
			w.leadsTo("writer", "m2")
			testkit.Eventually(t, soon, func() error {
				if !w.paths.seen(fmt.Sprintf("cut %s %s", w.listen, w.servers["m1"].Addr)) {
					return errors.New("sessions of the old primary are not cut")
				}
				return nil
			})
		})
	}
}

// An edge that owns addresses gives one up without evidence, says so to nobody, and takes
// it again when etcd says that it is its own.
func TestAnOwnAddressIsGivenUpWithoutEvidence(t *testing.T) {
	w := newWorld(t)
	w.putRoute(w.route("writer", route.Leader, w.listen))
	w.elect("m1")
	var way *wire
	var mu sync.Mutex
	announced := 0
	w.run(func(c *Config) {
		way = w.away(c)
		c.Own, c.Announce = "host-m1", func(netip.Addr) error { mu.Lock(); defer mu.Unlock(); announced++; return nil }
	})
	count := func() int { mu.Lock(); defer mu.Unlock(); return announced }
	w.leadsTo("writer", "m1")
	testkit.Eventually(t, soon, func() error {
		if n := count(); n < 2 {
			return fmt.Errorf("announced %d times", n)
		}
		return nil
	})
	way.cut()
	w.servers["m1"].Kill()
	testkit.Eventually(t, soon, func() error {
		if !w.paths.isAway("writer") {
			return errors.New("the address is still here")
		}
		return nil
	})
	before := count()
	w.servers["m1"].Up()
	way.heal()
	w.leadsTo("writer", "m1")
	testkit.Eventually(t, soon, func() error {
		if w.paths.isAway("writer") || count() <= before {
			return errors.New("the address has not come back")
		}
		return nil
	})
}

// An edge that stood still has no evidence: neither what it heard, nor what it proved, nor
// the grace of one that notices silence in time.
func TestEvidenceEndsByTimeAlone(t *testing.T) {
	v := newEvidence()
	if v.holds("db-1") {
		t.Error("evidence of nothing")
	}
	v.know(map[string]primary{"db-1": {}})
	v.hear(clock())
	if !v.holds("db-1") || !v.holds("db-2") {
		t.Error("what etcd said a moment ago does not count")
	}
	v.mu.Lock()
	v.heard = clock() - believedFor // it stood still
	v.mu.Unlock()
	v.begin()
	if v.holds("db-1") {
		t.Error("an edge that stood still goes on as before")
	}
	v.hear(clock() - quietAfter)
	v.begin()
	v.mu.Lock()
	v.heard = clock() - believedFor
	v.mu.Unlock()
	if !v.holds("db-1") {
		t.Error("a primary whose turn to be asked has not come is not believed")
	}
	v.believe("db-1", 0)
	if v.holds("db-1") {
		t.Error("a primary that failed to prove itself is believed")
	}
	v.believe("db-1", clock()+time.Second)
	if !v.holds("db-1") {
		t.Error("a proof does not count")
	}
	v.believe("db-1", clock()-time.Millisecond)
	if v.holds("db-1") {
		t.Error("a proof counts for ever")
	}
}
