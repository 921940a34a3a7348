package nft

import (
	"fmt"
	"net/netip"
	"strings"

	"howdah/internal/edge/endpoint"
)

// kind is the place of an endpoint in the table: a lookup in the kernel for one target, or a chain
// of its own for several.
type kind string

const (
	refused kind = "refused" // a set: no target
	single  kind = "single"  // a map from listen to target
	several kind = "several" // a verdict map from listen to a chain
)

func kindOf(e endpoint.Endpoint) kind {
	switch len(e.Targets) {
	case 0:
		return refused
	case 1:
		return single
	}
	return several
}

const (
	listenType = "ipv4_addr . inet_service"
	clientType = listenType + " . " + listenType

	// answeredFor is how long a client that sent something into a cut session is remembered. That
	// is longer than a Cut takes, and short enough never to matter after it.
	answeredFor = "5s"
)

// tableName is the only table that a home may touch, apart from its guard.
func tableName(home string) string { return "howdah_" + home }

// dialect writes the rules of one home as text for `nft -f -`.
type dialect struct {
	table      string
	masquerade bool
}

// whole returns a transaction that puts the complete table in place of whatever is there. The
// kernel switches from one to the other between two packets.
func (d dialect) whole(all []endpoint.Endpoint) string {
	elements := map[kind][]string{}
	var listens, chains []string
	for _, e := range all {
		k := kindOf(e)
		elements[k] = append(elements[k], element(e))
		listens = append(listens, joined(e.Listen))
		if k == several {
			chains = append(chains, block("chain "+chainName(e.Listen), spread(e)))
		}
	}
	parts := []string{
		block("set listens", "type "+listenType, list(listens)),
		block("set refused", "type "+listenType, list(elements[refused])),
		block("map single", "type "+listenType+" : "+listenType, list(elements[single])),
		block("map several", "type "+listenType+" : verdict", list(elements[several])),
		block("set answered", "type "+clientType, "size 65536", "flags dynamic,timeout", "timeout "+answeredFor),
	}
	guarded, admitted := guards(all)
	if len(guarded) > 0 {
		parts = append(parts,
			block("set guarded", "type "+listenType, list(guarded)),
			block("set admitted", "type "+listenType+" . ipv4_addr", "flags interval", list(admitted)))
	}
	parts = append(parts, chains...)
	parts = append(parts, d.hooks(all, len(guarded) > 0)...)
	return d.clear() + block("table ip "+d.table, parts...) + "\n"
}

// clear returns a transaction that removes the table. The table need not exist.
func (d dialect) clear() string {
	return fmt.Sprintf("add table ip %[1]s\ndelete table ip %[1]s\n", d.table)
}

// hooks returns the rules that do not depend on where endpoints lead. All chains but the first see
// only packets that conntrack takes for the start of a connection, so established sessions pay
// nothing.
//
// A packet that is no SYN, and yet starts a connection, belongs to a session that was cut. It is
// answered with a reset. The packet itself carries the reset's number, so this depends on no other
// host. The client is noted in `answered` for Cut.
//
// The SYN-ACK by which Cut makes a client speak is not tracked. Otherwise a host firewall that
// drops what conntrack calls invalid would drop it on loopback.
func (d dialect) hooks(all []endpoint.Endpoint, guarded bool) []string {
	guard := ""
	if guarded {
		guard = "ip daddr . tcp dport @guarded ip daddr . tcp dport . ip saddr != @admitted reject with tcp reset"
	}
	parts := []string{
		block("chain nudge",
			"type filter hook output priority -300; policy accept;",
			"tcp flags & (fin|syn|rst|ack) == syn|ack ip saddr . tcp sport @listens notrack"),
		block("chain translate",
			"tcp flags & (fin|syn|rst|ack) != syn ip daddr . tcp dport @listens"+
				" update @answered { ip saddr . tcp sport . ip daddr . tcp dport } reject with tcp reset",
			guard,
			"ip daddr . tcp dport @refused reject with tcp reset",
			"dnat ip to ip daddr . tcp dport map @single",
			"ip daddr . tcp dport vmap @several"),
		block("chain from_here", "type nat hook output priority -100; policy accept;", "jump translate"),
		block("chain from_outside", "type nat hook prerouting priority -100; policy accept;", "jump translate"),
	}
	if !d.masquerade {
		return parts
	}
	var addrs []string
	for _, e := range all {
		if a := e.Listen.Addr().String(); len(addrs) == 0 || addrs[len(addrs)-1] != a {
			addrs = append(addrs, a)
		}
	}
	return append(parts,
		block("set addresses", "type ipv4_addr", list(addrs)),
		block("chain leaving", "type nat hook postrouting priority 100; policy accept;",
			`oifname != "lo" ip protocol tcp ct status dnat ct original ip daddr @addresses masquerade`))
}

// guards returns the elements of two sets: the endpoints that not everyone may use, and each of
// those with the networks that may use it.
func guards(all []endpoint.Endpoint) (guarded, admitted []string) {
	for _, e := range all {
		if e.Allow == nil {
			continue
		}
		guarded = append(guarded, joined(e.Listen))
		for _, p := range e.Allow {
			admitted = append(admitted, joined(e.Listen)+" . "+p.String())
		}
	}
	return guarded, admitted
}

// spread sends every new connection to the next target.
func spread(e endpoint.Endpoint) string {
	targets := make([]string, len(e.Targets))
	for i, t := range e.Targets {
		targets[i] = fmt.Sprintf("%d : %s", i, joined(t))
	}
	return fmt.Sprintf("ip protocol tcp dnat ip to numgen inc mod %d map { %s }", len(targets), strings.Join(targets, ", "))
}

// element returns what e is in the set or map of its kind.
func element(e endpoint.Endpoint) string {
	switch kindOf(e) {
	case single:
		return joined(e.Listen) + " : " + joined(e.Targets[0])
	case several:
		return joined(e.Listen) + " : goto " + chainName(e.Listen)
	default:
		return joined(e.Listen)
	}
}

func joined(a netip.AddrPort) string { return fmt.Sprintf("%s . %d", a.Addr(), a.Port()) }

func chainName(listen netip.AddrPort) string {
	return "to_" + strings.NewReplacer(".", "_", ":", "_").Replace(listen.String())
}

func list(elements []string) string {
	if len(elements) == 0 {
		return ""
	}
	return block("elements =", strings.Join(elements, ",\n"))
}

// block returns `head { lines }` with its inside indented. It leaves out empty lines.
func block(head string, lines ...string) string {
	var b strings.Builder
	b.WriteString(head + " {\n")
	for _, l := range lines {
		if l != "" {
			b.WriteString("\t" + strings.ReplaceAll(l, "\n", "\n\t") + "\n")
		}
	}
	b.WriteString("}")
	return b.String()
}
