package nft

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/endpoint/conformance"
	"howdah/internal/testkit"
)

// In these tests this network namespace is the edge. Clients and servers are in namespaces of their
// own that are wired to it.
var (
	edgeListen = netip.MustParseAddrPort("10.99.8.1:5432")
	edgeClient = netip.MustParsePrefix("10.71.1.1/24") // the edge's address at the clients' wire
	clientAddr = netip.MustParsePrefix("10.71.1.2/24")
	edgeServer = netip.MustParsePrefix("10.71.2.1/24")
	serverAddr = netip.MustParsePrefix("10.71.2.2/24")
	farServer  = netip.MustParseAddrPort("10.71.2.2:6000")
)

func edge(t testing.TB, cfg endpoint.Config) *Forwarder {
	t.Helper()
	testkit.NeedRoot(t)
	testkit.NeedProgram(t, "nft")
	f, err := New(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Remove(context.Background()); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return f
}

func lead(listen netip.AddrPort, targets ...netip.AddrPort) endpoint.Endpoint {
	return endpoint.Endpoint{ID: "test", Listen: listen, Targets: targets}
}

func mustSync(t testing.TB, f *Forwarder, all ...endpoint.Endpoint) []string {
	t.Helper()
	mended, err := f.Sync(context.Background(), all)
	if err != nil {
		t.Fatal(err)
	}
	return mended
}

func mustPoint(t testing.TB, f *Forwarder, e endpoint.Endpoint) {
	t.Helper()
	if err := f.Point(context.Background(), e); err != nil {
		t.Fatal(err)
	}
}

func mustCut(t testing.TB, f *Forwarder, listen, target netip.AddrPort, want int) {
	t.Helper()
	n, err := f.Cut(context.Background(), listen, target)
	if err != nil || n != want {
		t.Fatalf("cut %d sessions, error %v; want %d", n, err, want)
	}
}

// server starts a database in a namespace of its own behind a wire.
func server(t *testing.T) (netip.AddrPort, string) {
	t.Helper()
	c, wire := conformance.Apart(t, conformance.ServerPart(farServer), edgeServer, serverAddr)
	c.Go(t)
	if got := c.Line(t); got != farServer.String() {
		t.Fatal(got)
	}
	return farServer, wire
}

// clients opens n sessions from a namespace of its own.
func clients(t testing.TB, n int) conformance.Clients {
	t.Helper()
	c, _ := conformance.Apart(t, conformance.ClientsPart(edgeListen, n), edgeClient, clientAddr)
	return conformance.Connect(t, c)
}

// forward lets the edge pass packets on, in this namespace only.
func forward(t *testing.T) {
	t.Helper()
	setting(t, "/proc/sys/net/ipv4/ip_forward", "1")
}

func setting(t testing.TB, path, value string) {
	t.Helper()
	testkit.NeedRoot(t)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.WriteFile(path, before, 0o644) })
	if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
		t.Fatal(err)
	}
}

// cutLink drops all that goes to a wire or comes from it, like a pulled cable.
func cutLink(t *testing.T, wire string) {
	t.Helper()
	t.Cleanup(func() { nft(t, "delete", "table", "netdev", "cable") })
	nft(t, "add table netdev cable { chain pulled { type filter hook ingress device "+wire+" priority 0; policy drop; }; "+
		"chain pushed { type filter hook egress device "+wire+" priority 0; policy drop; }; }")
}

// TestClientsElsewhere: the server of clients on another machine freezes.
func TestClientsElsewhere(t *testing.T) {
	const n = 80
	f := edge(t, config("edge", ""))
	child, _ := conformance.Apart(t, conformance.ClientsPart(edgeListen, n), edgeClient, clientAddr)
	here := netip.AddrPortFrom(edgeClient.Addr(), 0)
	old, process := conformance.NewFreezerAt(t, here)
	next, _ := conformance.NewFreezerAt(t, here)
	mustSync(t, f, lead(edgeListen, old))
	c := conformance.Connect(t, child)
	if c.SeenAs != clientAddr.Addr().String() {
		t.Errorf("the server sees %s, want the client's own address", c.SeenAs)
	}
	process.Freeze(t)
	took := c.Measure(t, func() {
		mustPoint(t, f, lead(edgeListen, next))
		mustCut(t, f, edgeListen, old, n)
	})
	if took > conformance.CutTime {
		t.Errorf("the last client noticed after %s", took)
	}
}

// TestServersElsewhere: the link to the server's machine is cut, there is no
// other server, and the edge passes packets on for clients elsewhere.
func TestServersElsewhere(t *testing.T) {
	const n = 20
	forward(t)
	for name, c := range map[string]struct {
		masquerade bool
		seenAs     netip.Addr
	}{
		"visible":    {false, clientAddr.Addr()},
		"masquerade": {true, edgeServer.Addr()},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config("edge", "")
			cfg.Masquerade = c.masquerade
			f := edge(t, cfg)
			server, wire := server(t)
			mustSync(t, f, lead(edgeListen))
			mustPoint(t, f, lead(edgeListen, server))
			clients := clients(t, n)
			if clients.SeenAs != c.seenAs.String() {
				t.Errorf("the server sees %s, want %s", clients.SeenAs, c.seenAs)
			}
			cutLink(t, wire)
			took := clients.Measure(t, func() {
				mustPoint(t, f, lead(edgeListen))
				mustCut(t, f, edgeListen, server, n)
			})
			if took > conformance.CutTime {
				t.Errorf("the last client noticed after %s", took)
			}
		})
	}
}

// TestClientOfThisMachine: the address of the pool serves clients of the edge itself.
func TestClientOfThisMachine(t *testing.T) {
	f := edge(t, config("edge", ""))
	far, wire := server(t)
	near := conformance.NewServer(t)
	mustSync(t, f, lead(edgeListen, far))
	lost := conformance.JoinHalf(t, edgeListen, far, 4)
	cutLink(t, wire)
	mustPoint(t, f, lead(edgeListen, near))
	mustCut(t, f, edgeListen, far, len(lost))
	conformance.AllEnded(t, lost)
	conformance.Join(t, edgeListen, near)
}

// TestConnecting checks that a client which is connecting to a dead server reaches the new one, and
// that it does not count as a session.
func TestConnecting(t *testing.T) {
	f := edge(t, config("edge", ""))
	far, wire := server(t)
	near := conformance.NewServer(t)
	mustSync(t, f, lead(edgeListen, far))
	conformance.Join(t, edgeListen, far).Close() // the machines know each other
	testkit.Eventually(t, time.Second, func() error {
		open, err := f.sessions.list(t.Context(), edgeListen, flow.open)
		if err == nil && len(open) > 0 {
			err = fmt.Errorf("%d sessions are being closed", len(open))
		}
		return err
	})
	cutLink(t, wire)
	type result struct {
		session *conformance.Session
		err     error
	}
	connected := make(chan result, 1)
	go func() {
		s, err := conformance.Dial(edgeListen)
		connected <- result{s, err}
	}()
	testkit.Eventually(t, time.Second, func() error {
		flows, err := f.sessions.list(t.Context(), edgeListen, func(x flow) bool { return x.state == stateSynSent })
		if err == nil && len(flows) == 0 {
			err = errors.New("no client is connecting")
		}
		return err
	})
	mustPoint(t, f, lead(edgeListen, near))
	mustCut(t, f, edgeListen, far, 0)
	r := <-connected
	if r.err != nil {
		t.Fatal(r.err)
	}
	defer r.session.Close()
	conformance.Check(t, r.session, near)
}

// TestSilentClients: the clients' machine is gone too.
func TestSilentClients(t *testing.T) {
	const n = 3
	f := edge(t, config("edge", ""))
	child, wire := conformance.Apart(t, conformance.ClientsPart(edgeListen, n), edgeClient, clientAddr)
	server, _ := conformance.NewFreezerAt(t, netip.AddrPortFrom(edgeClient.Addr(), 0))
	mustSync(t, f, lead(edgeListen, server))
	conformance.Connect(t, child)
	begin := time.Now()
	cutLink(t, wire)
	got, err := f.Cut(t.Context(), edgeListen, server)
	if got != n || !errors.Is(err, endpoint.ErrSilent) {
		t.Errorf("cut %d sessions, error %v", got, err)
	}
	if took := time.Since(begin); took > 2*conformance.CutTime {
		t.Errorf("gave up after %s", took)
	}
	mustCut(t, f, edgeListen, server, 0)
}
