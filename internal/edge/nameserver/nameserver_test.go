package nameserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"howdah/internal/model/zone"
	"howdah/internal/testkit"
)

const (
	theZone = zone.Zone("howdah.internal")
	orders  = "orders.c123.us-west-2.howdah.internal"
	readers = "shop.cluster-ro-c123.us-west-2.howdah.internal"
)

func addresses(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

func book() *Book {
	return NewBook(theZone, map[string][]netip.Addr{
		orders:                    addresses("127.9.8.1"),
		readers:                   addresses("127.9.8.2", "127.9.8.3", "127.9.8.4"),
		"elsewhere.example.com":   addresses("127.9.8.9"),
		"nothing.howdah.internal": nil,
	}, addresses("127.9.0.53"))
}

// start runs a server that has this book, and returns where it answers.
func start(t *testing.T, b *Book) (*Server, string) {
	t.Helper()
	s := New(netip.MustParseAddrPort(testkit.FreeAddr(t)), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { s.Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
	s.Set(b)
	at := s.listen.String()
	testkit.Eventually(t, 10*time.Second, func() error {
		_, err := ask(at, "tcp", question(orders, dns.TypeA))
		return err
	})
	return s, at
}

func question(name string, kind uint16) *dns.Msg {
	return new(dns.Msg).SetQuestion(dns.Fqdn(name), kind)
}

func ask(at, network string, q *dns.Msg) (*dns.Msg, error) {
	c := dns.Client{Net: network, Timeout: 5 * time.Second, UDPSize: 4096}
	m, _, err := c.Exchange(q, at)
	return m, err
}

// said is an answer in short: what it says of itself, and its records without their TTLs.
func said(m *dns.Msg) string {
	words := []string{dns.RcodeToString[m.Rcode]}
	if m.Authoritative {
		words = append(words, "aa")
	}
	if m.Truncated {
		words = append(words, "tc")
	}
	if m.RecursionAvailable {
		words = append(words, "ra")
	}
	for _, rr := range slices.Concat(m.Answer, m.Ns) {
		switch rr := rr.(type) {
		case *dns.A:
			words = append(words, rr.A.String())
		case *dns.NS:
			words = append(words, "NS "+rr.Ns)
		case *dns.SOA:
			words = append(words, "SOA "+rr.Hdr.Name)
		default:
			words = append(words, rr.String())
		}
		if rr.Header().Ttl != ttl {
			words = append(words, fmt.Sprintf("TTL %d", rr.Header().Ttl))
		}
	}
	return strings.Join(words, " ")
}

func TestAnswers(t *testing.T) {
	_, at := start(t, book())
	const soa = "SOA howdah.internal."
	for _, c := range []struct {
		name string
		kind uint16
		want string
	}{
		{orders, dns.TypeA, "NOERROR aa 127.9.8.1"},
		{"OrDeRs.C123.us-WEST-2.howdah.INTERNAL", dns.TypeA, "NOERROR aa 127.9.8.1"},
		{orders, dns.TypeANY, "NOERROR aa 127.9.8.1"},
		{orders, dns.TypeAAAA, "NOERROR aa " + soa},
		{orders, dns.TypeTXT, "NOERROR aa " + soa},
		// Names between the zone and those of endpoints are there, and have nothing: a resolver that
		// asks step by step must not take all below for missing.
		{"us-west-2.howdah.internal", dns.TypeA, "NOERROR aa " + soa},
		{"c123.us-west-2.howdah.internal", dns.TypeNS, "NOERROR aa " + soa},
		{"cluster-ro-c123.us-west-2.howdah.internal", dns.TypeA, "NOERROR aa " + soa},
		{"eu-west-1.howdah.internal", dns.TypeA, "NXDOMAIN aa " + soa},
		{"sales.c123.us-west-2.howdah.internal", dns.TypeA, "NXDOMAIN aa " + soa},
		{"a." + orders, dns.TypeA, "NXDOMAIN aa " + soa},
		{"nothing.howdah.internal", dns.TypeA, "NXDOMAIN aa " + soa},
		{"howdah.internal", dns.TypeSOA, "NOERROR aa " + soa},
		{"howdah.internal", dns.TypeNS, "NOERROR aa NS ns.howdah.internal."},
		{"howdah.internal", dns.TypeA, "NOERROR aa " + soa},
		{"ns.howdah.internal", dns.TypeA, "NOERROR aa 127.9.0.53"},
		// All else is somebody else's.
		{"internal", dns.TypeNS, "REFUSED"},
		{".", dns.TypeNS, "REFUSED"},
		{"example.com", dns.TypeA, "REFUSED"},
		{"elsewhere.example.com", dns.TypeA, "REFUSED"},
		{"nothowdah.internal", dns.TypeA, "REFUSED"},
		{`orders\.howdah.internal`, dns.TypeA, "REFUSED"},
		{"howdah.internal", dns.TypeAXFR, "REFUSED"},
		{"howdah.internal", dns.TypeIXFR, "REFUSED"},
	} {
		for _, network := range []string{"udp", "tcp"} {
			q := question(c.name, c.kind)
			m, err := ask(at, network, q)
			if err != nil {
				t.Errorf("%s %s by %s: %v", c.name, dns.TypeToString[c.kind], network, err)
				continue
			}
			if got := said(m); got != c.want {
				t.Errorf("%s %s by %s: %s; want %s", c.name, dns.TypeToString[c.kind], network, got, c.want)
			}
			if m.Id != q.Id || len(m.Question) != 1 || m.Question[0] != q.Question[0] {
				t.Errorf("%s: the answer is to %v", c.name, m.Question)
			}
			for _, rr := range m.Answer {
				if rr.Header().Name != q.Question[0].Name {
					t.Errorf("%s: the answer is of %s", c.name, rr.Header().Name)
				}
			}
		}
	}
}

func TestOtherClassesAndDeeds(t *testing.T) {
	_, at := start(t, book())
	chaos := question(orders, dns.TypeTXT)
	chaos.Question[0].Qclass = dns.ClassCHAOS
	update := new(dns.Msg).SetUpdate("howdah.internal.")
	notify := new(dns.Msg).SetNotify("howdah.internal.")
	two := question(orders, dns.TypeA)
	two.Question = append(two.Question, two.Question[0])
	edns := question(orders, dns.TypeA).SetEdns0(4096, false)
	edns.IsEdns0().SetVersion(1)
	for name, c := range map[string]struct {
		q    *dns.Msg
		want int
	}{
		"another class": {chaos, dns.RcodeRefused}, "an update": {update, dns.RcodeNotImplemented}, "a notification": {notify, dns.RcodeNotImplemented},
		"two questions": {two, dns.RcodeFormatError}, "a later EDNS": {edns, dns.RcodeBadVers},
	} {
		m, err := ask(at, "udp", c.q)
		if err != nil || m.Rcode != c.want || len(m.Answer) > 0 {
			t.Errorf("%s: %v, %v; want %s", name, m, err, dns.RcodeToString[c.want])
		}
	}
}

// All readers are in each answer, and each of them is the first in turn.
func TestReadersTakeTurns(t *testing.T) {
	_, at := start(t, book())
	first := map[string]int{}
	for range 30 {
		m, err := ask(at, "udp", question(readers, dns.TypeA))
		if err != nil || len(m.Answer) != 3 {
			t.Fatalf("%v, %v", m, err)
		}
		first[m.Answer[0].(*dns.A).A.String()]++
	}
	for _, a := range []string{"127.9.8.2", "127.9.8.3", "127.9.8.4"} {
		if first[a] != 10 {
			t.Errorf("%s was first %d times of 30: %v", a, first[a], first)
		}
	}
}

// A long answer is cut to what the client takes, who gets all of it by TCP.
func TestLongAnswers(t *testing.T) {
	var many []netip.Addr
	for i := range 200 {
		many = append(many, netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}))
	}
	_, at := start(t, NewBook(theZone, map[string][]netip.Addr{readers: many, orders: many[:1]}, nil))
	for _, c := range []struct {
		network   string
		edns      uint16
		most      int
		truncated bool
	}{{"udp", 0, 512, true}, {"udp", 100, 512, true}, {"udp", 900, 900, true}, {"udp", 65535, mostUDP, true}, {"tcp", 0, 65535, false}, {"tcp", 512, 65535, false}} {
		q := question(readers, dns.TypeA)
		if c.edns > 0 {
			q.SetEdns0(c.edns, false)
		}
		client := dns.Client{Net: c.network, Timeout: 5 * time.Second, UDPSize: 65535}
		m, _, err := client.Exchange(q, at)
		if err != nil {
			t.Fatal(err)
		}
		m.Compress = true // for its length
		if m.Truncated != c.truncated || m.Len() > c.most || (len(m.Answer) == len(many)) == c.truncated || (m.IsEdns0() != nil) != (c.edns > 0) {
			t.Errorf("%s with %d: %d addresses in %d bytes, cut: %v, EDNS: %v", c.network, c.edns, len(m.Answer), m.Len(), m.Truncated, m.IsEdns0())
		}
	}
}

// Go's own resolver asks as programs do: for both kinds of addresses, by UDP, and follows a cut answer.
func TestAResolverOfPrograms(t *testing.T) {
	_, at := start(t, book())
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, at)
	}}
	found, err := resolver.LookupHost(t.Context(), readers)
	slices.Sort(found)
	if want := []string{"127.9.8.2", "127.9.8.3", "127.9.8.4"}; !slices.Equal(found, want) || err != nil {
		t.Errorf("%v, %v; want %v", found, err, want)
	}
	_, err = resolver.LookupHost(t.Context(), "sales.c123.us-west-2.howdah.internal.")
	if missing, ok := errors.AsType[*net.DNSError](err); !ok || !missing.IsNotFound {
		t.Errorf("a name that is not there: %v", err)
	}
}

// Names come and go while it runs. Without a zone everything is refused.
func TestAnotherBook(t *testing.T) {
	s, at := start(t, book())
	asked := func() string {
		m, err := ask(at, "udp", question(orders, dns.TypeA))
		if err != nil {
			t.Fatal(err)
		}
		return said(m)
	}
	s.Set(NewBook(theZone, map[string][]netip.Addr{orders: addresses("127.9.8.77")}, nil))
	if got := asked(); got != "NOERROR aa 127.9.8.77" {
		t.Errorf("moved: %s", got)
	}
	s.Set(NewBook("other.test", map[string][]netip.Addr{orders: addresses("127.9.8.77")}, nil))
	if got := asked(); got != "REFUSED" {
		t.Errorf("in another zone: %s", got)
	}
	s.Set(NewBook("", nil, nil))
	if got := asked(); got != "REFUSED" {
		t.Errorf("without a zone: %s", got)
	}
	s.Set(book())
	if got := asked(); got != "NOERROR aa 127.9.8.1" {
		t.Errorf("with the zone again: %s", got)
	}
}

func TestSame(t *testing.T) {
	if a := book(); !a.Same(book()) || a.Same(NewBook("", nil, nil)) || a.Same(NewBook(theZone, map[string][]netip.Addr{orders: addresses("127.9.8.1")}, nil)) {
		t.Error("books are not told apart by what they answer")
	}
}

// Somebody else has the address: the server waits for it, and takes it when it is free.
func TestItWaitsForItsAddress(t *testing.T) {
	at := testkit.FreeAddr(t)
	other, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	s := New(netip.MustParseAddrPort(at), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { s.Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
	s.Set(book())
	if s.At() != "" {
		t.Errorf("it says that it answers at %s", s.At())
	}
	other.Close()
	testkit.Eventually(t, 20*time.Second, func() error {
		_, err := ask(at, "udp", question(orders, dns.TypeA))
		return err
	})
	if s.At() != at {
		t.Errorf("it answers at %s, and says %q", at, s.At())
	}
}

// Whatever comes, it answers those who ask properly.
func TestRubbish(t *testing.T) {
	_, at := start(t, book())
	whole, err := question(orders, dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range []string{"udp", "tcp"} {
		conn, err := new(net.Dialer).DialContext(t.Context(), network, at)
		if err != nil {
			t.Fatal(err)
		}
		for n := range len(whole) {
			if _, err := conn.Write(whole[:n]); err != nil {
				break // it hung up
			}
		}
		conn.Close()
	}
	m, err := ask(at, "udp", question(orders, dns.TypeA))
	if err != nil || said(m) != "NOERROR aa 127.9.8.1" {
		t.Errorf("%v, %v", m, err)
	}
}

// A server that starts while nobody tells it anything answers as the one before it.
func TestNamesAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names.json")
	run := func(b *Book) (at string, stop func()) {
		s := New(netip.MustParseAddrPort(testkit.FreeAddr(t)), slog.New(slog.DiscardHandler))
		s.KeepIn(path)
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { s.Run(ctx) })
		stop = func() { cancel(); done.Wait() }
		t.Cleanup(stop)
		if b != nil {
			s.Set(b)
		}
		return s.listen.String(), stop
	}
	has := func(b *Book) {
		t.Helper()
		testkit.Eventually(t, 20*time.Second, func() error {
			before := New(netip.MustParseAddrPort("127.0.0.1:1"), slog.New(slog.DiscardHandler))
			before.KeepIn(path)
			if !before.book.Load().Same(b) {
				return fmt.Errorf("the file has %+v", before.book.Load().names)
			}
			return nil
		})
	}
	_, stop := run(book())
	has(book())
	stop()
	at, stop := run(nil)
	testkit.Eventually(t, 20*time.Second, func() error {
		m, err := ask(at, "udp", question(orders, dns.TypeA))
		if err == nil && said(m) != "NOERROR aa 127.9.8.1" {
			err = errors.New(said(m))
		}
		return err
	})
	stop()
	// A home without a zone has no names, and a file that is spoilt is none.
	_, stop = run(NewBook("", nil, nil))
	has(NewBook("", nil, nil))
	stop()
	for _, text := range []string{"", "{", `{"zone":"a.test","names":{"b.a.test.":["x"]}}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		has(NewBook("", nil, nil))
	}
}
