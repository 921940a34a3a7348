package nft

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/endpoint/conformance"
)

// These tests are about what else is on the machine: firewalls, listeners,
// addresses and rules of others.

// TestFirewall checks that a usual firewall of the host does not keep clients from being reset, of
// this machine or of others.
func TestFirewall(t *testing.T) {
	const n = 10
	f := edge(t, config("edge", ""))
	child, _ := conformance.Apart(t, conformance.ClientsPart(edgeListen, n), edgeClient, clientAddr)
	server, process := conformance.NewFreezerAt(t, netip.AddrPortFrom(edgeClient.Addr(), 0))
	t.Cleanup(func() { nft(t, "delete", "table", "inet", "firewall") })
	nft(t, "add table inet firewall { "+
		"chain in { type filter hook input priority 0; policy drop; "+
		"ct state vmap { established : accept, related : accept, invalid : drop }; iifname lo accept; "+
		"tcp dport "+strings.TrimPrefix(server.String(), server.Addr().String()+":")+" ct state new tcp flags syn accept; }; "+
		"chain out { type filter hook output priority 0; policy accept; ct state invalid drop; }; }")
	mustSync(t, f, lead(edgeListen, server))
	far := conformance.Connect(t, child)
	near := conformance.JoinHalf(t, edgeListen, server, n)
	process.Freeze(t)
	took := far.Measure(t, func() {
		mustPoint(t, f, lead(edgeListen))
		mustCut(t, f, edgeListen, server, 2*n)
	})
	if took > conformance.CutTime {
		t.Errorf("the last client noticed after %s", took)
	}
	conformance.AllEnded(t, near)
}

// TestOtherListener checks that a server which listens on all addresses of the machine never gets
// the clients of an endpoint.
func TestOtherListener(t *testing.T) {
	f := edge(t, config("edge", ""))
	listen := conformance.SomeListen()
	l, err := net.Listen("tcp4", netip.AddrPortFrom(netip.IPv4Unspecified(), listen.Port()).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	server, process := conformance.NewFreezer(t)
	mustSync(t, f, lead(listen))
	conformance.Refuses(t, listen)
	mustPoint(t, f, lead(listen, server))
	lost := conformance.JoinHalf(t, listen, server, 4)
	process.Freeze(t)
	mustPoint(t, f, lead(listen))
	mustCut(t, f, listen, server, len(lost))
	conformance.AllEnded(t, lost)
	conformance.Refuses(t, listen)
}

// TestJustAnswered checks a client that has just answered a bad segment. Linux answers those of a
// socket only once in half a second. The client is reset all the same, a little later.
func TestJustAnswered(t *testing.T) {
	f := edge(t, config("edge", ""))
	listen := conformance.SomeListen()
	server, process := conformance.NewFreezer(t)
	mustSync(t, f, lead(listen, server))
	lost := conformance.JoinHalf(t, listen, server, 2)
	for _, s := range lost {
		client := s.LocalAddr().(*net.TCPAddr).AddrPort()
		if err := nudge([]pair{{client, listen}}); err != nil {
			t.Fatal(err)
		}
		conformance.Check(t, lost[0], server)
	}
	process.Freeze(t)
	begin := time.Now()
	mustCut(t, f, listen, server, len(lost))
	conformance.AllEnded(t, lost)
	if took := time.Since(begin); took > conformance.CutTime {
		t.Errorf("cut after %s", took)
	}
}

// TestChallengeLimit checks kernels before about 6.0, which send a limited number of such answers a
// second for the whole machine. Cut gets through to all of them after some time.
func TestChallengeLimit(t *testing.T) {
	f := edge(t, config("edge", ""))
	listen := conformance.SomeListen()
	server, process := conformance.NewFreezer(t)
	mustSync(t, f, lead(listen, server))
	lost := conformance.JoinHalf(t, listen, server, 60)
	process.Freeze(t)
	// For each second Linux takes half of the limit and a random share of it. Two seconds are
	// always enough, and one often is not.
	setting(t, "/proc/sys/net/ipv4/tcp_challenge_ack_limit", "60")
	mustPoint(t, f, lead(listen))
	mustCut(t, f, listen, server, len(lost))
	conformance.AllEnded(t, lost)
}

// TestUnseen checks what happens if the rule that answers is missing or never asked. Then the
// machine's own TCP resets clients, and only Cut cannot see it.
func TestUnseen(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T){
		"table removed": func(t *testing.T) { nft(t, "flush", "ruleset") },
		"strict conntrack": func(t *testing.T) {
			setting(t, "/proc/sys/net/netfilter/nf_conntrack_tcp_loose", "0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := edge(t, config("edge", ""))
			listen := conformance.SomeListen()
			server, process := conformance.NewFreezer(t)
			mustSync(t, f, lead(listen, server))
			lost := conformance.JoinHalf(t, listen, server, 4)
			process.Freeze(t)
			prepare(t)
			n, err := f.Cut(t.Context(), listen, server)
			if n != len(lost) || !errors.Is(err, endpoint.ErrSilent) {
				t.Errorf("cut %d sessions, error %v", n, err)
			}
			conformance.AllEnded(t, lost)
		})
	}
}

// TestRulesOfOthers checks that rules of others are neither touched nor reported.
func TestRulesOfOthers(t *testing.T) {
	f := edge(t, config("edge", ""))
	t.Cleanup(func() { nft(t, "delete", "table", "ip", "other") })
	nft(t, "add", "table", "ip", "other")
	before := nft(t, "list", "table", "ip", "other")
	all := []endpoint.Endpoint{lead(conformance.SomeListen(), conformance.NewServer(t))}
	mustSync(t, f, all...)
	nft(t, "add", "chain", "ip", "other", "mine")
	if mended := mustSync(t, f, all...); len(mended) > 0 {
		t.Errorf("mended %q", mended)
	}
	nft(t, "delete", "chain", "ip", "other", "mine")
	mustPoint(t, f, lead(all[0].Listen))
	if mended := mustSync(t, f, lead(all[0].Listen)); len(mended) > 0 {
		t.Errorf("mended %q", mended)
	}
	if err := f.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, nft(t, "list", "table", "ip", "other")); diff != "" {
		t.Errorf("a table of others: -want +got:\n%s", diff)
	}
}

// TestTampering checks that whatever someone does to the table is found and mended.
func TestTampering(t *testing.T) {
	f := edge(t, config("edge", ""))
	server := conformance.NewServer(t)
	listen, readers := conformance.SomeListen(), conformance.SomeListen()
	all := []endpoint.Endpoint{lead(listen, server), lead(readers, server, conformance.NewServer(t))}
	const table = "howdah_edge"
	for name, c := range map[string]struct {
		damage []string
		mended string
	}{
		"table deleted":  {[]string{"delete", "table", "ip", table}, "was missing"},
		"table emptied":  {[]string{"flush", "table", "ip", table}, "differed"},
		"element gone":   {[]string{"flush", "map", "ip", table, "single"}, "differed"},
		"rules gone":     {[]string{"flush", "chain", "ip", table, "translate"}, "differed"},
		"something more": {[]string{"add", "chain", "ip", table, "extra"}, "differed"},
	} {
		t.Run(name, func(t *testing.T) {
			mustSync(t, f, all...)
			nft(t, c.damage...)
			mended := mustSync(t, f, all...)
			if len(mended) != 1 || !strings.Contains(mended[0], c.mended) {
				t.Errorf("mended %q, want one that says %q", mended, c.mended)
			}
			conformance.Join(t, listen, server)
			nft(t, c.damage...)
			mustPoint(t, f, lead(listen)) // the quick path must not trust a table it doesn't know
			mustPoint(t, f, lead(listen, server))
			conformance.Join(t, listen, server)
		})
	}
}

// TestPointWritesWhatSyncWrites compares the tables after the quick path and
// after a complete write.
func TestPointWritesWhatSyncWrites(t *testing.T) {
	f := edge(t, config("edge", ""))
	listen, other := conformance.SomeListen(), conformance.SomeListen()
	a, b := conformance.NewServer(t), conformance.NewServer(t)
	last := []netip.AddrPort(nil)
	mustSync(t, f, lead(listen), lead(other, a))
	for _, targets := range [][]netip.AddrPort{{a}, {b}, {}, {b}, {a, b}, {b}, {a, b}, {a}, {}} {
		gen := f.gen
		mustPoint(t, f, lead(listen, targets...))
		if quick := len(last) < 2 && len(targets) < 2; quick && f.gen != gen+1 {
			t.Errorf("from %v to %v took more than one transaction", last, targets)
		}
		last = targets
		got, err := f.listing(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := f.nft.apply(t.Context(), f.rules.whole(f.have)); err != nil {
			t.Fatal(err)
		}
		want, err := f.listing(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("to %v: -sync +point:\n%s", targets, diff)
		}
		mustSync(t, f, lead(listen, targets...), lead(other, a))
	}
}

func ourAddresses(t *testing.T) []netip.Addr {
	t.Helper()
	have, err := readAddresses(labelOf("edge"))
	if err != nil {
		t.Fatal(err)
	}
	return have.ours
}

// The machine stops to answer for the address of an endpoint that is away, and so does a process
// that takes it over. Other endpoints stay.
func TestAnAddressGoesAway(t *testing.T) {
	f := edge(t, config("edge", ""))
	other := netip.MustParseAddrPort("10.99.8.3:5432")
	server := conformance.NewServer(t)
	mustSync(t, f, lead(edgeListen, server), lead(other, server))
	s := conformance.Join(t, edgeListen, server)
	away := lead(edgeListen)
	away.Away = true
	mustPoint(t, f, away)
	if got := ourAddresses(t); !slices.Equal(got, []netip.Addr{other.Addr()}) {
		t.Errorf("addresses %v, want %s alone", got, other)
	}
	second := edge(t, config("edge", ""))
	mustSync(t, second, away, lead(other, server))
	if got := ourAddresses(t); !slices.Equal(got, []netip.Addr{other.Addr()}) {
		t.Errorf("after another process: addresses %v, want %s alone", got, other)
	}
	conformance.Join(t, other, server)
	mustPoint(t, second, lead(edgeListen, server))
	conformance.Join(t, edgeListen, server)
	conformance.Check(t, s, server)
}

// Another process removes what a process left that died, endpoint by endpoint, and the next process
// finds that.
func TestEndpointsAreAbandoned(t *testing.T) {
	f := edge(t, config("edge", ""))
	other, spread := netip.MustParseAddrPort("10.99.8.3:5432"), netip.MustParseAddrPort("10.99.8.4:5432")
	server, second := conformance.NewServer(t), conformance.NewServer(t)
	all := []endpoint.Endpoint{lead(edgeListen, server), lead(other, server), lead(spread, server, second)}
	mustSync(t, f, all...)
	cut, stays := conformance.Join(t, edgeListen, server), conformance.Join(t, other, server)
	agent := edge(t, config("edge", ""))
	for range 2 {
		if err := agent.Abandon(t.Context(), []netip.AddrPort{edgeListen, spread, netip.MustParseAddrPort("10.99.8.9:1")}); err != nil {
			t.Fatal(err)
		}
		if got := ourAddresses(t); !slices.Equal(got, []netip.Addr{other.Addr()}) {
			t.Errorf("addresses %v, want %s alone", got, other)
		}
	}
	conformance.AllEnded(t, []*conformance.Session{cut})
	conformance.Check(t, stays, server)
	conformance.Join(t, other, server)
	next := edge(t, config("edge", ""))
	mustSync(t, next, all...)
	conformance.Join(t, edgeListen, server)
	conformance.Check(t, stays, server)
}

func TestAddresses(t *testing.T) {
	f := edge(t, config("edge", ""))
	mine, admins := edgeListen.Addr(), netip.MustParseAddr("10.99.8.2")
	lo, err := netlink.LinkByName(device)
	if err != nil {
		t.Fatal(err)
	}
	set := &netlink.Addr{IPNet: &net.IPNet{IP: admins.AsSlice(), Mask: net.CIDRMask(32, 32)}}
	if err := netlink.AddrAdd(lo, set); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { netlink.AddrDel(lo, set) })
	server := conformance.NewServer(t)
	all := []endpoint.Endpoint{lead(edgeListen, server), lead(netip.AddrPortFrom(admins, 5432), server)}

	mustSync(t, f, all...)
	if got := ourAddresses(t); !slices.Equal(got, []netip.Addr{mine}) {
		t.Errorf("added %v, want %s and not the administrator's", got, mine)
	}
	for _, e := range all {
		conformance.Join(t, e.Listen, server)
	}
	if err := onDevice(netlink.AddrDel, mine, labelOf("edge")); err != nil {
		t.Fatal(err)
	}
	if mended := mustSync(t, f, all...); len(mended) != 1 || !strings.Contains(mended[0], mine.String()) {
		t.Errorf("mended %q", mended)
	}
	conformance.Join(t, edgeListen, server)

	second := edge(t, config("edge", "")) // as after a kill -9
	mustSync(t, second, all[1])
	if got := ourAddresses(t); len(got) > 0 {
		t.Errorf("left %v", got)
	}
	conformance.Join(t, all[1].Listen, server)
	if err := second.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	have, err := readAddresses(labelOf("edge"))
	if err != nil || !slices.Contains(have.others, admins) {
		t.Errorf("the administrator's address is gone: %v, %v", have, err)
	}
}
