package nft

import (
	"net/netip"
	"strings"
	"testing"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/endpoint/conformance"
)

// A failover of an endpoint that not everyone may use is as quick as any other. A change of who may
// connect replaces the whole table, and stays right beside the quick path.
func TestPointKeepsTheGuard(t *testing.T) {
	f := edge(t, config("edge", ""))
	listen := conformance.SomeListen()
	a, b := conformance.NewServer(t), conformance.NewServer(t)
	guarded := func(network string, targets ...netip.AddrPort) endpoint.Endpoint {
		e := lead(listen, targets...)
		e.Allow = []netip.Prefix{netip.MustParsePrefix(network)}
		return e
	}
	mustSync(t, f, guarded("127.0.0.0/8", a))
	conformance.Join(t, listen, a)
	gen := f.gen
	mustPoint(t, f, guarded("127.0.0.0/8", b))
	if f.gen != gen+1 || f.seal != "" {
		t.Error("a failover was not a move of elements")
	}
	conformance.Join(t, listen, b)
	mustPoint(t, f, guarded("10.0.0.0/8", b))
	conformance.Refuses(t, listen)
	mustPoint(t, f, guarded("10.0.0.0/8", a))
	conformance.Refuses(t, listen)
	mustPoint(t, f, lead(listen, a))
	conformance.Join(t, listen, a)
	if mended, err := f.Sync(t.Context(), []endpoint.Endpoint{lead(listen, a)}); err != nil || len(mended) > 0 {
		t.Errorf("mended %q, %v", mended, err)
	}
}

// A client elsewhere counts by its own address. A client of the edge's own machine comes from the
// endpoint's address.
func TestWhoMayConnectFromElsewhere(t *testing.T) {
	f := edge(t, config("edge", ""))
	inside, _ := conformance.Apart(t, conformance.ClientsPart(edgeListen, 1), edgeClient, clientAddr)
	here := netip.AddrPortFrom(edgeClient.Addr(), 0)
	near, _ := conformance.NewFreezerAt(t, here)
	e := lead(edgeListen, near)
	e.Allow = []netip.Prefix{netip.PrefixFrom(clientAddr.Addr(), 32)}
	mustSync(t, f, e)
	if c := conformance.Connect(t, inside); c.SeenAs != clientAddr.Addr().String() {
		t.Errorf("a client that may connect: %s", c.SeenAs)
	}
	conformance.Refuses(t, edgeListen)

	e.Allow = []netip.Prefix{netip.PrefixFrom(edgeListen.Addr(), 32)}
	mustPoint(t, f, e)
	conformance.Join(t, edgeListen, near)
	otherEnd, otherClient := netip.MustParsePrefix("10.71.3.1/24"), netip.MustParsePrefix("10.71.3.2/24")
	outside, _ := conformance.Apart(t, conformance.ClientsPart(edgeListen, 1), otherEnd, otherClient)
	if c := conformance.Connect(t, outside); !strings.Contains(c.SeenAs, "refused") {
		t.Errorf("a client that may not connect: %s", c.SeenAs)
	}
}
