package nameserver

import (
	"maps"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"

	"howdah/internal/model/zone"
)

const (
	// ttl is for how many seconds resolvers may keep an answer, also one that says that there is no
	// such name. An endpoint keeps its address through failovers. So what gets old are the readers
	// of a cluster, and a name that a client asked for a moment too early.
	ttl = 5
	// serverLabel is the name of the nameserver in the zone. No endpoint has it: their names have
	// two labels more.
	serverLabel = "ns"
)

// Book is all that a nameserver answers. It is never altered: a change makes another one.
type Book struct {
	zone   zone.Zone
	serial uint32
	// names has the addresses of names, in lower case and with a dot at the end.
	names map[string][]netip.Addr
	// inner has the names below which there are names. They exist, and have nothing (RFC 8020).
	inner map[string]bool
}

// NewBook returns a book of a zone. names has the addresses of each name, and servers says where
// nameservers of the zone are. Names outside the zone are left out. A zone "" has no names.
func NewBook(z zone.Zone, names map[string][]netip.Addr, servers []netip.Addr) *Book {
	b := &Book{zone: z, serial: uint32(time.Now().Unix()), names: map[string][]netip.Addr{}, inner: map[string]bool{}}
	if z == "" {
		return b
	}
	for name, addresses := range names {
		b.add(dns.CanonicalName(name), addresses)
	}
	b.add(b.server(), servers)
	return b
}

func (b *Book) add(name string, addresses []netip.Addr) {
	apex := b.zone.FQDN()
	if len(addresses) == 0 || name == apex || !dns.IsSubDomain(apex, name) {
		return
	}
	b.names[name] = addresses
	for {
		_, above, _ := strings.Cut(name, ".")
		if above == apex || above == "" {
			return
		}
		name = above
		b.inner[name] = true
	}
}

// Same reports whether two books have the same answers.
func (b *Book) Same(other *Book) bool {
	return b.zone == other.zone && maps.EqualFunc(b.names, other.names, func(x, y []netip.Addr) bool {
		if len(x) != len(y) {
			return false
		}
		for i := range x {
			if x[i] != y[i] {
				return false
			}
		}
		return true
	})
}

func (b *Book) server() string { return serverLabel + "." + b.zone.FQDN() }

// answer returns the answer to a query that has one question. turn says with which address a list of
// several begins.
//
// It answers for its own zone only, and asks nobody else: whoever asks for any other name is refused.
// So it is of no use to those who look for open resolvers, and its answers are hardly larger than the
// questions.
func (b *Book) answer(q *dns.Msg, turn uint64) *dns.Msg {
	m := new(dns.Msg).SetReply(q)
	m.Compress = true
	if o := q.IsEdns0(); o != nil {
		m.SetEdns0(mostUDP, o.Do())
		if o.Version() != 0 {
			m.Rcode = dns.RcodeBadVers
			return m
		}
	}
	if q.Opcode != dns.OpcodeQuery {
		m.Rcode = dns.RcodeNotImplemented
		return m
	}
	asked := q.Question[0]
	name := dns.CanonicalName(asked.Name)
	in := asked.Qclass == dns.ClassINET || asked.Qclass == dns.ClassANY
	if b.zone == "" || !in || !dns.IsSubDomain(b.zone.FQDN(), name) || asked.Qtype == dns.TypeAXFR || asked.Qtype == dns.TypeIXFR {
		m.Rcode = dns.RcodeRefused
		return m
	}
	m.Authoritative = true
	m.Answer = b.records(name, asked, turn)
	if len(m.Answer) > 0 {
		return m
	}
	if name != b.zone.FQDN() && b.names[name] == nil && !b.inner[name] {
		m.Rcode = dns.RcodeNameError
	}
	m.Ns = []dns.RR{b.soa(b.zone.FQDN())}
	return m
}

// records returns what there is of a name. asked.Name has the case in which the name was asked for,
// which resolvers check.
func (b *Book) records(name string, asked dns.Question, turn uint64) []dns.RR {
	wants := func(kind uint16) bool { return asked.Qtype == kind || asked.Qtype == dns.TypeANY }
	var all []dns.RR
	if name == b.zone.FQDN() {
		if wants(dns.TypeSOA) {
			all = append(all, b.soa(asked.Name))
		}
		if wants(dns.TypeNS) && b.names[b.server()] != nil {
			all = append(all, &dns.NS{Hdr: header(asked.Name, dns.TypeNS), Ns: b.server()})
		}
		return all
	}
	addresses := b.names[name]
	for i := range addresses {
		switch a := addresses[(uint64(i)+turn)%uint64(len(addresses))]; {
		case a.Is4() && wants(dns.TypeA):
			all = append(all, &dns.A{Hdr: header(asked.Name, dns.TypeA), A: a.AsSlice()})
		case a.Is6() && wants(dns.TypeAAAA):
			all = append(all, &dns.AAAA{Hdr: header(asked.Name, dns.TypeAAAA), AAAA: a.AsSlice()})
		}
	}
	return all
}

func (b *Book) soa(name string) dns.RR {
	return &dns.SOA{
		Hdr: header(name, dns.TypeSOA), Ns: b.server(), Mbox: "hostmaster." + b.zone.FQDN(), Serial: b.serial,
		// Nobody transfers the zone: each edge has all of it from the home's state.
		Refresh: 60, Retry: 10, Expire: 600, Minttl: ttl,
	}
}

func header(name string, kind uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}
