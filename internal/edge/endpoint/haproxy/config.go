package haproxy

import (
	"fmt"
	"net/netip"
	"strings"

	"howdah/internal/edge/endpoint"
)

// slots is how many targets a proxy can know at a time: those that it leads to, and old ones whose
// sessions still live. Each costs a few kilobytes. If the endpoint is on loopback, half of them are
// for targets on loopback.
const slots = 32

// nowhere is the address of a slot that was never used.
var nowhere = netip.MustParseAddrPort("127.0.0.1:1")

const (
	frontend = "clients"
	backend  = "targets"
)

// render returns the configuration of the proxy of one endpoint. It has the targets, so that a
// proxy which has to be started again leads to the right place from the first connection on. While
// the proxy runs, they are changed only through its socket.
//
// Client and server timeouts are 0, which means none. A session of a database may be idle for days,
// and any number would cut a session some day (haproxy warns of 0). TCP keepalive notices if a peer
// is gone without a word, after 30 s of silence and 3 unanswered probes 10 s apart. A frozen server
// still answers those probes, as it does without a proxy. Only sessions that one side has already
// closed end by time.
//
// A file of networks says who may connect. That, too, is changed through the socket.
//
// retries is 0, because the client is to know at once that a target refuses.
//
// Nothing here is tuned for speed, because nothing helps. Two threads, busy polling, edge-triggered
// or plain polling, low-latency scheduling, other buffer sizes, splicing off, priority and a fixed
// processor all stayed within the noise of this configuration, or below it (busy polling, which
// takes a core from PostgreSQL). A proxy costs a single client two more wake-ups for each query. A
// relay of 20 lines that does no more than epoll, recv and send was hardly faster.
func render(e endpoint.Endpoint, socket, admitted string, maxConn int) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("global")
	line("\tnbthread 1")
	line("\tmaxconn %d", maxConn)
	line("\tstats socket %s mode 600 level admin", socket)
	line("\tstats timeout 10s")
	line("\thttpclient.ssl.verify none") // never used; saves loading the machine's certificates, 1 MB
	line("")
	line("defaults")
	line("\tmode tcp")
	line("\ttimeout connect 10s")
	line("\ttimeout client 0")
	line("\ttimeout server 0")
	line("\ttimeout client-fin 60s")
	line("\ttimeout server-fin 60s")
	line("\tretries 0")
	for _, side := range []string{"clitcpka", "srvtcpka"} {
		line("\toption %s", side)
		line("\t%s-idle 30s", side)
		line("\t%s-intvl 10s", side)
		line("\t%s-cnt 3", side)
	}
	line("")
	line("frontend %s", frontend)
	line("\tbind %s", e.Listen)
	line("\tacl admitted src -f %s", admitted)
	line("\ttcp-request connection reject unless admitted")
	line("\tdefault_backend %s", backend)
	line("")
	line("backend %s", backend)
	line("\tbalance roundrobin")
	line("\tdefault-server init-addr none") // no look-up of names, ever
	for _, x := range seats(e) {
		line("\tserver %s", x)
	}
	return b.String()
}

// nearby begins the names of slots for targets on loopback. A proxy connects to these from the
// address of its endpoint. So the member can tell the proxy's clients from others on the same
// machine, which all come from 127.0.0.1.
const nearby = "l"

// seats returns the slots, with what the configuration says of each.
func seats(e endpoint.Endpoint) []string {
	near, far := 0, slots
	if endpoint.Local(e.Listen.Addr()) {
		near, far = slots/2, slots/2
	}
	var all []string
	add := func(prefix, tail string, n int, mine func(netip.AddrPort) bool) {
		var targets []netip.AddrPort
		for _, t := range e.Targets {
			if mine(t) {
				targets = append(targets, t)
			}
		}
		for i := range n {
			addr, state := nowhere, " disabled"
			if i < len(targets) {
				addr, state = targets[i], ""
			}
			all = append(all, fmt.Sprintf("%s%d %s%s%s", prefix, i+1, addr, state, tail))
		}
	}
	isNear := func(t netip.AddrPort) bool { return near > 0 && endpoint.Local(t.Addr()) }
	add(nearby, " source "+e.Listen.Addr().String(), near, isNear)
	add("s", "", far, func(t netip.AddrPort) bool { return !isNear(t) })
	return all
}
