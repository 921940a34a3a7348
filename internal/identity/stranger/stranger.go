// Package stranger bounds what all callers together may hold who have not proved who they are:
// connections, and the bodies of their requests. A body has to be read before a signature can be
// checked.
//
// A connection is a stranger's until a request on it was proved to be somebody's (Known). A
// connection that was opened with a certificate of the home is no stranger's (Proved).
//
// Invariants: strangers never hold more than Limits say. A caller from an address that holds much
// loses before anybody else does. What somebody known holds does not count.
package stranger

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Limits are what all strangers may hold together.
type Limits struct {
	Conns int   // connections
	Bytes int64 // of bodies that are being read; one address may hold half of it
	// Patience is how long the body of one request may take.
	Patience time.Duration
}

// Default is for a control plane: with its buffers and 32 KiB of headers, a connection
// takes less than 100 KiB.
var Default = Limits{Conns: 1024, Bytes: 16 << 20, Patience: 20 * time.Second}

// MaxHeader bounds the headers of one request, in bytes.
const MaxHeader = 32 << 10

// ErrFull says that strangers hold as much as they may, so the body was not read.
var ErrFull = errors.New("too many requests are being read at this moment")

// Room is what strangers share. Use New.
type Room struct {
	limits Limits
	mu     sync.Mutex
	conns  map[netip.Addr][]*conn // guarded by mu: strangers' connections, the oldest first
	count  int                    // guarded by mu: of conns
	bytes  map[netip.Addr]int64   // guarded by mu
	total  int64                  // guarded by mu: of bytes
}

// New returns an empty room.
func New(limits Limits) *Room {
	return &Room{limits: limits, conns: map[netip.Addr][]*conn{}, bytes: map[netip.Addr]int64{}}
}

// Held returns how many connections strangers have at this moment, and how many bytes of bodies.
func (r *Room) Held() (conns int, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count, r.total
}

// conn is a connection. It is a stranger's until it is known or closed.
type conn struct {
	net.Conn
	room *Room
	from netip.Addr
}

// Listen counts the connections that a listener accepts.
func (r *Room) Listen(l net.Listener) net.Listener { return listener{l, r} }

type listener struct {
	net.Listener
	room *Room
}

func (l listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, room: l.room, from: source(accepted.RemoteAddr().String())}
	if loser := l.room.enter(c); loser != nil {
		_ = loser.Close() // perhaps the new one: whoever uses it finds that out
	}
	return c, nil
}

// Close gives back what the connection takes.
func (c *conn) Close() error {
	c.room.leave(c)
	return c.Conn.Close()
}

// enter adds a connection. If there are too many, it returns the one that has to go: the oldest of
// the address that has most, or the new one if no address has several.
func (r *Room) enter(c *conn) (loser *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns[c.from] = append(r.conns[c.from], c)
	r.count++
	if r.count <= r.limits.Conns {
		return nil
	}
	most := c.from
	for from, all := range r.conns {
		if len(all) > len(r.conns[most]) {
			most = from
		}
	}
	return r.conns[most][0]
}

// leave takes a connection out, once.
func (r *Room) leave(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.conns[c.from]
	for i, other := range all {
		if other != c {
			continue
		}
		if r.count--; len(all) == 1 {
			delete(r.conns, c.from)
		} else {
			r.conns[c.from] = append(all[:i:i], all[i+1:]...)
		}
		return
	}
}

// take counts bytes that a stranger sent. It returns false if there is no room for them.
func (r *Room) take(from netip.Addr, n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.total+n > r.limits.Bytes || r.bytes[from]+n > r.limits.Bytes/2 {
		return false
	}
	r.total += n
	r.bytes[from] += n
	return true
}

func (r *Room) give(from netip.Addr, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total -= n
	if r.bytes[from] -= n; r.bytes[from] <= 0 {
		delete(r.bytes, from)
	}
}

// source returns what counts as one caller: an IPv4 address, or a network of IPv6, as one machine
// has as many IPv6 addresses as it likes.
func source(remote string) netip.Addr {
	port, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	a := port.Addr().Unmap().WithZone("")
	if a.Is4() {
		return a
	}
	network, err := a.Prefix(64)
	if err != nil {
		return a
	}
	return network.Addr()
}

// caller is what the context of a request says of its sender.
type caller struct {
	conn    *conn
	control *http.ResponseController

	mu    sync.Mutex
	known bool  // guarded by mu
	held  int64 // guarded by mu: bytes of the request's body
}

type callerKey struct{}

// Known says that a request was proved to be somebody's. Neither its body nor its connection counts
// as a stranger's any more. Without a Room it does nothing.
func Known(ctx context.Context) {
	who, ok := ctx.Value(callerKey{}).(*caller)
	if !ok {
		return
	}
	who.forget(true)
	who.conn.room.leave(who.conn)
	// A call may take longer than its body. If there is no deadline, none is removed.
	_ = who.control.SetReadDeadline(time.Time{})
}

// forget gives back what the request holds.
func (w *caller) forget(known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known = w.known || known
	if w.held > 0 {
		w.conn.room.give(w.conn.from, w.held)
	}
	w.held = 0
}

// Proved says that whoever opened a connection has shown who they are. It does not count as a
// stranger's any more. Listen must have accepted the connection.
func (r *Room) Proved(raw net.Conn) {
	if c, ok := raw.(*conn); ok {
		r.leave(c)
	}
}

type connKey struct{}

// Context is for http.Server.ConnContext. raw is the connection that Listen accepted.
func (r *Room) Context(ctx context.Context, raw net.Conn) context.Context {
	c, ok := raw.(*conn)
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, connKey{}, c)
}

// Handler bounds the bodies of requests to next.
func (r *Room) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		c, ok := request.Context().Value(connKey{}).(*conn)
		if !ok {
			next.ServeHTTP(w, request)
			return
		}
		who := &caller{conn: c, control: http.NewResponseController(w)}
		defer who.forget(false)
		request = request.WithContext(context.WithValue(request.Context(), callerKey{}, who))
		if request.TLS != nil && len(request.TLS.VerifiedChains) > 0 {
			Known(request.Context())
		}
		if request.Body != nil && request.Body != http.NoBody {
			if !who.isKnown() {
				// If the deadline cannot be set, the server's deadline holds.
				_ = who.control.SetReadDeadline(time.Now().Add(r.limits.Patience))
			}
			request.Body = &body{request.Body, who}
		}
		next.ServeHTTP(w, request)
	})
}

// body counts what is read.
type body struct {
	io.ReadCloser
	who *caller
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && !b.who.takes(int64(n)) {
		return 0, ErrFull
	}
	return n, err
}

func (w *caller) isKnown() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known
}

func (w *caller) takes(n int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known {
		return true
	}
	if !w.conn.room.take(w.conn.from, n) {
		return false
	}
	w.held += n
	return true
}
