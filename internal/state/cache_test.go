package state

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/identity/certs"
	"howdah/internal/state/etcd"
	"howdah/internal/testkit"
)

// wire is a relay to a server that can be frozen. Then it takes what it is sent and passes nothing
// on, like a host that is gone.
type wire struct {
	net.Listener
	to     string
	frozen atomic.Bool
	opened atomic.Int32
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, to: to}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.opened.Add(1)
			done.Go(func() { w.relay(ctx, conn) })
		}
	})
	t.Cleanup(func() { cancel(); l.Close(); done.Wait() })
	return w
}

func (w *wire) relay(ctx context.Context, client net.Conn) {
	server, err := net.Dial("tcp", w.to)
	if err != nil {
		client.Close()
		return
	}
	stop := context.AfterFunc(ctx, func() { client.Close(); server.Close() })
	defer stop()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			defer way[0].Close()
			defer way[1].Close()
			buffer := make([]byte, 64<<10)
			for {
				n, err := way[0].Read(buffer)
				if err != nil {
					return
				}
				if w.frozen.Load() {
					continue
				}
				if _, err := way[1].Write(buffer[:n]); err != nil {
					return
				}
			}
		})
	}
	both.Wait()
}

// A member of etcd freezes without a word. Its watchers change to another member.
func TestCacheLeavesAMemberThatIsGone(t *testing.T) {
	ca, err := certs.New("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(certs.Subject{CommonName: "s1", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	dir, addr := t.TempDir(), testkit.FreeAddr(t)
	if err := pair.Write(dir); err != nil {
		t.Fatal(err)
	}
	m, err := etcd.Start(t.Context(), etcd.Config{
		Name: "s1", Dir: t.TempDir(), CertDir: dir, ClientAddr: addr, PeerAddr: testkit.FreeAddr(t), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	wires := []*wire{newWire(t, addr), newWire(t, addr)}
	client, err := etcd.Dial(t.Context(), []string{"https://" + wires[0].Addr().String(), "https://" + wires[1].Addr().String()}, pair)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	caches := []*Cache{follow(t, client), follow(t, client)}
	writer := &Store{Client: m.Client}
	count := 0
	seen := func(within time.Duration) {
		t.Helper()
		count++
		if _, err := writer.Commit(t.Context(), Put(Root+"thing", thing{Count: count})); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, within, func() error {
			for i, c := range caches {
				if r, err := Load[thing](c, Root+"thing"); err != nil || r.Value.Count != count {
					return fmt.Errorf("cache %d has %d, %w; want %d", i, r.Value.Count, err, count)
				}
			}
			return nil
		})
	}
	seen(5 * time.Second)
	for i, w := range wires {
		// The client connects to all members, and need not wait for the last.
		testkit.Eventually(t, 5*time.Second, func() error {
			if w.opened.Load() == 0 {
				return fmt.Errorf("nobody is connected by way %d", i)
			}
			return nil
		})
		w.frozen.Store(true)
		// Each new try goes to either member, until keepalive closes the connection.
		seen(20 * time.Second)
		w.frozen.Store(false)
	}
}

// follow runs a cache until the test ends.
func follow(t *testing.T, client *clientv3.Client) *Cache {
	t.Helper()
	c := NewCache(client, slog.New(slog.DiscardHandler), Root)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { _ = c.Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
	if err := c.Loaded(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}
