package etcdgate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"howdah/internal/identity/certs"
	"howdah/internal/identity/stranger"
	"howdah/internal/state"
)

// DoorConfig is the configuration of a door. All fields are required.
type DoorConfig struct {
	Config
	// TLS takes certificates of the home's authority, and no connection without a certificate.
	TLS *tls.Config
	// ControlPlane is the common name of control planes, which may do everything. Inside connects
	// to etcd for them.
	ControlPlane string
	Inside       func(ctx context.Context) (net.Conn, error)
	// Cache mirrors the state, which says what hosts run. CatchUp returns once the mirror has all
	// that was written before.
	Cache   *state.Cache
	CatchUp func(ctx context.Context) error
	// Room is for callers who have not shown a certificate yet.
	Room *stranger.Room
}

// Door is etcd's port. A control plane passes through it. Agents and edges reach what their host
// needs, and nothing else (host.go). The same holds for a Patroni that an older release started,
// which shows its host's certificate.
type Door struct {
	DoorConfig
	gate *Gate
	grpc *grpc.Server
	http *http.Server

	mu    sync.Mutex
	conns map[string]int // guarded by mu: by whose certificate opened them, and what they speak
}

// How many connections one host may have. A connection of an agent has a handful of streams, and one
// for each call that is under way. mostConns bounds those that speak gRPC. mostPatronis bounds those
// of members of an older release, all of them together.
const (
	mostConns    = 16
	mostStreams  = 1024
	mostPatronis = 1024
)

// handshakeWithin is how long a caller may take to show a certificate.
const handshakeWithin = 10 * time.Second

// NewDoor returns a door. Serve opens it.
func NewDoor(cfg DoorConfig) *Door {
	cfg.TLS = cfg.TLS.Clone()
	cfg.TLS.NextProtos = []string{"h2", "http/1.1"}
	d := &Door{DoorConfig: cfg, conns: map[string]int{}}
	d.gate = New(cfg.Config)
	d.gate.budget.limits, d.gate.forHosts = ofHost, true
	d.gate.who = func(r *http.Request) (caller, bool) { return d.callerBy(certs.Caller(r.TLS)) }
	d.grpc = grpc.NewServer(
		grpc.Creds(shown{}), grpc.MaxRecvMsgSize(mostMessage), grpc.MaxConcurrentStreams(mostStreams), grpc.MaxHeaderListSize(stranger.MaxHeader),
		grpc.UnaryInterceptor(d.unary), grpc.StreamInterceptor(d.stream),
		// As with etcd itself, hosts quickly find out that a connection is dead.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return errNotForHosts }),
	)
	conn := cfg.Client.ActiveConnection()
	pb.RegisterKVServer(d.grpc, &hostKV{kvServer{gate: d.gate, etcd: pb.NewKVClient(conn)}})
	pb.RegisterWatchServer(d.grpc, &watchServer{gate: d.gate, etcd: pb.NewWatchClient(conn)})
	pb.RegisterLeaseServer(d.grpc, &leaseServer{gate: d.gate, etcd: pb.NewLeaseClient(conn)})
	pb.RegisterClusterServer(d.grpc, &clusterServer{etcd: pb.NewClusterClient(conn)})
	d.http = &http.Server{
		Handler: d.gate, MaxHeaderBytes: stranger.MaxHeader, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 20 * time.Second,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	return d
}

// mostMessage is more than etcd takes at once, in bytes.
const mostMessage = 2 << 20

var errNotForHosts = status.Error(codes.PermissionDenied, "etcdserver: permission denied")

// Serve lets callers in until ctx ends. Then it hangs up on all.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	l = d.Room.Listen(l)
	forGRPC, forHTTP := newHall(l.Addr()), newHall(l.Addr())
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all.Go(func() { _ = d.grpc.Serve(forGRPC) })
	all.Go(func() { _ = d.http.Serve(forHTTP) })
	defer d.grpc.Stop()
	defer func() { _ = d.http.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		raw, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept at etcd's port: %w", err)
		case err != nil:
			pause(ctx) // too many open files, or a client that left while it waited
		default:
			all.Go(func() { d.receive(ctx, raw, forGRPC, forHTTP) })
		}
	}
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(50 * time.Millisecond):
	}
}

// receive finds out who opened a connection, and passes it to whatever serves it.
func (d *Door) receive(ctx context.Context, raw net.Conn, forGRPC, forHTTP *hall) {
	conn := tls.Server(raw, d.TLS)
	patience, cancel := context.WithTimeout(ctx, handshakeWithin)
	defer cancel()
	if err := conn.HandshakeContext(patience); err != nil {
		d.Log.Debug("at etcd's port", "from", raw.RemoteAddr().String(), "error", err)
		_ = raw.Close()
		return
	}
	d.Room.Proved(raw)
	state := conn.ConnectionState()
	name := certs.Caller(&state)
	if name == d.ControlPlane {
		d.passOn(ctx, conn)
		return
	}
	most := mostPatronis
	if state.NegotiatedProtocol == "h2" {
		most = mostConns
	}
	leave, ok := d.enter(name, state.NegotiatedProtocol, most)
	if !ok {
		if d.gate.budget.warns("connections") {
			d.Log.Warn("refused a connection to etcd", "caller", name, "from", raw.RemoteAddr().String())
		}
		_ = conn.Close()
		return
	}
	counted := &countedConn{Conn: conn, leave: leave}
	if state.NegotiatedProtocol == "h2" {
		forGRPC.take(ctx, counted)
		return
	}
	forHTTP.take(ctx, counted)
}

// enter counts a connection of a host that speaks a protocol, until leave is called.
func (d *Door) enter(name, protocol string, most int) (leave func(), ok bool) {
	if _, known := d.callerBy(name); !known {
		return nil, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if name += " " + protocol; d.conns[name] >= most {
		return nil, false
	}
	d.conns[name]++
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.conns[name]--; d.conns[name] == 0 {
			delete(d.conns, name)
		}
	}), true
}

// passOn connects a control plane to etcd itself, until one of the two hangs up.
func (d *Door) passOn(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	inside, err := d.Inside(ctx)
	if err != nil {
		d.Log.Warn("connect to etcd for a control plane", "error", err)
		return
	}
	defer inside.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close(); _ = inside.Close() })
	defer stop()
	done := make(chan struct{}, 2)
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		done <- struct{}{}
	}
	go pass(inside, conn)
	go pass(conn, inside)
	<-done
	_, _ = conn.Close(), inside.Close()
	<-done
}

// hall is a listener for connections that were let in.
type hall struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newHall(addr net.Addr) *hall {
	return &hall{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

// take hands a connection to whatever serves it, or closes it.
func (h *hall) take(ctx context.Context, conn net.Conn) {
	select {
	case h.conns <- conn:
	case <-h.done:
		_ = conn.Close()
	case <-ctx.Done():
		_ = conn.Close()
	}
}

// Accept implements net.Listener.
func (h *hall) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *hall) Close() error { h.once.Do(func() { close(h.done) }); return nil }

// Addr implements net.Listener.
func (h *hall) Addr() net.Addr { return h.addr }

// countedConn is a connection that was let in.
type countedConn struct {
	net.Conn
	leave func()
}

// Close gives back what the connection takes.
func (c *countedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// ConnectionState makes net/http pass the certificate on to a handler.
func (c *countedConn) ConnectionState() tls.ConnectionState {
	return c.Conn.(*tls.Conn).ConnectionState()
}

// shown are the credentials of connections whose certificate was shown before gRPC gets them.
type shown struct{}

func (shown) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	counted, ok := conn.(*countedConn)
	if !ok {
		return nil, nil, errNotForHosts
	}
	return conn, credentials.TLSInfo{
		State:          counted.ConnectionState(),
		CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
	}, nil
}

func (shown) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errNotForHosts
}

func (shown) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

func (s shown) Clone() credentials.TransportCredentials { return s }

func (shown) OverrideServerName(string) error { return nil }

// letIn begins a call of a host.
func (d *Door) letIn(ctx context.Context) (inside context.Context, leave func(), err error) {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return nil, nil, errNobody
	}
	info, ok := from.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return nil, nil, errNobody
	}
	own, ok := d.callerBy(certs.Caller(&info.State))
	if !ok {
		return nil, nil, errNobody
	}
	leave, ok = d.gate.budget.enter(own.account())
	if !ok {
		if d.gate.budget.warns(own.account()) {
			d.Log.Warn("a host asks too much of etcd", "caller", own.String())
		}
		return nil, nil, asStatus(errBudget)
	}
	return withCaller(ctx, own), leave, nil
}

func (d *Door) unary(ctx context.Context, q any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	ctx, leave, err := d.letIn(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	answer, err := next(ctx, q)
	return answer, refusal(err)
}

func (d *Door) stream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	ctx, leave, err := d.letIn(stream.Context())
	if err != nil {
		return err
	}
	defer leave()
	return refusal(next(srv, knownStream{stream, ctx}))
}

// refusal makes calls that hosts never make be refused like keys that are not theirs.
func refusal(err error) error {
	if status.Code(err) == codes.Unimplemented {
		return errNotForHosts
	}
	return err
}

// knownStream is a stream whose caller is known.
type knownStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s knownStream) Context() context.Context { return s.ctx }
