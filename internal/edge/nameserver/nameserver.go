// Package nameserver answers for the names of databases, by UDP and by TCP. Every edge has one, and
// each of them answers for all databases of the home: what it knows comes with the routes. It goes on
// with what it knows while no control plane runs, also after a restart (KeepIn).
//
// It is authoritative for one zone, and refuses all other questions. It is no resolver: a resolver has
// to be told that the zone is here (docs/guide/names.md).
package nameserver

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"

	"howdah/internal/identity/stranger"
)

const (
	// mostUDP is how large an answer by UDP may be, for those who take that much. Larger ones might
	// be cut into fragments on the way (dnsflagday.net/2020).
	mostUDP = 1232
	// idleFor is how long a connection may be idle, and may take for a question.
	idleFor = 5 * time.Second
	// mostConns is how many connections there may be at a time.
	mostConns = 256
	// againAfter is the pause before an address is tried again at which it could not listen.
	againAfter = 2 * time.Second
	// endWithin is how long answers that are under way may take at the end.
	endWithin = time.Second
)

// Ports at which a nameserver listens unless it is told otherwise. Only root may use DNS's own.
const (
	Port      = 53
	OtherPort = 5300
)

// DefaultPort returns the port for whoever runs this process.
func DefaultPort() uint16 {
	if os.Geteuid() == 0 {
		return Port
	}
	return OtherPort
}

// Server is a nameserver. Use New.
type Server struct {
	listen    netip.AddrPort
	addresses []netip.Addr
	log       *slog.Logger
	book      atomic.Pointer[Book]
	turn      atomic.Uint64
	listens   atomic.Bool
	wanted    chan struct{} // holds something once there was a zone
	path      string        // of the file that KeepIn names, or ""
	kept      *Book         // is what the file has; belongs to keep once Run has begun
}

// New returns a nameserver for an address. It listens from the moment at which Set gave it a zone.
func New(listen netip.AddrPort, log *slog.Logger) *Server {
	s := &Server{listen: listen, addresses: reachedAt(listen.Addr()), log: log.With("component", "nameserver"), wanted: make(chan struct{}, 1)}
	s.book.Store(NewBook("", nil, nil))
	return s
}

// Set replaces what the server answers. It may be called from any goroutine.
func (s *Server) Set(b *Book) {
	if b.Same(s.book.Load()) {
		return
	}
	s.book.Store(b)
	if b.zone == "" {
		return
	}
	select {
	case s.wanted <- struct{}{}:
	default:
	}
}

// At returns where the server answers at this moment, as ip:port. It is "" while it does not listen.
func (s *Server) At() string {
	if !s.listens.Load() {
		return ""
	}
	return s.listen.String()
}

// Addresses returns where resolvers find the server: its own address, or those that the machine had at
// the start if it listens at all of them.
func (s *Server) Addresses() []netip.Addr { return s.addresses }

func reachedAt(listen netip.Addr) []netip.Addr {
	if !listen.IsUnspecified() {
		return []netip.Addr{listen}
	}
	var all []netip.Addr
	found, _ := net.InterfaceAddrs() // if none are found, the zone has no record for its nameserver
	for _, a := range found {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			all = append(all, p.Addr())
		}
	}
	return all
}

// Run answers until ctx ends. If it cannot listen, it says so once, and tries again: what keeps the
// address may go.
func (s *Server) Run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	if s.path != "" {
		work.Go(func() { s.keep(ctx) })
	}
	select {
	case <-ctx.Done():
		return
	case <-s.wanted:
	}
	for said := ""; ctx.Err() == nil; {
		err := s.serve(ctx)
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			s.log.Error("names are not answered here", "address", s.listen.String(), "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(againAfter):
		}
	}
}

// serve listens for both, or for none: a client whose answer was cut asks again by TCP.
func (s *Server) serve(ctx context.Context) error {
	packets, err := new(net.ListenConfig).ListenPacket(ctx, "udp", s.listen.String())
	if err != nil {
		return fmt.Errorf("listen for questions: %w", err)
	}
	defer func() { _ = packets.Close() }()
	conns, err := new(net.ListenConfig).Listen(ctx, "tcp", s.listen.String())
	if err != nil {
		return fmt.Errorf("listen for questions: %w", err)
	}
	defer func() { _ = conns.Close() }()
	room := stranger.New(stranger.Limits{Conns: mostConns})
	servers := []*dns.Server{
		{PacketConn: packets, Handler: s, UDPSize: mostUDP},
		{Listener: room.Listen(conns), Handler: s, ReadTimeout: idleFor, WriteTimeout: idleFor, IdleTimeout: func() time.Duration { return idleFor }},
	}
	ended := make(chan error, len(servers))
	for _, server := range servers {
		go func() { ended <- server.ActivateAndServe() }()
	}
	s.listens.Store(true)
	defer s.listens.Store(false)
	s.log.Info("names are answered", "address", s.listen.String(), "zone", string(s.book.Load().zone))
	running := len(servers)
	select {
	case err = <-ended:
		running--
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	for _, server := range servers {
		_ = server.ShutdownContext(stop) // one that has not begun ends when its socket is closed
	}
	_ = packets.Close()
	_ = conns.Close()
	for range running {
		if end := <-ended; err == nil && ctx.Err() == nil {
			err = end
		}
	}
	return err
}

// ServeDNS answers one query. It is for package dns.
func (s *Server) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	if len(q.Question) != 1 {
		_ = w.WriteMsg(new(dns.Msg).SetRcodeFormatError(q))
		return
	}
	m := s.book.Load().answer(q, s.turn.Add(1))
	if _, udp := w.RemoteAddr().(*net.UDPAddr); udp {
		m.Truncate(sizeFor(q))
	}
	if err := w.WriteMsg(m); err != nil {
		s.log.Debug("answer", "error", err)
	}
}

// sizeFor returns how large an answer by UDP whoever asks can take.
func sizeFor(q *dns.Msg) int {
	if o := q.IsEdns0(); o != nil {
		return min(max(int(o.UDPSize()), dns.MinMsgSize), mostUDP)
	}
	return dns.MinMsgSize
}
