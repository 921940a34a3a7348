// Package etcdgate stands between members and etcd. etcd knows callers by their certificates.
// Through its JSON gateway, which Patroni uses, it lets everybody do everything. Here a member
// reaches the keys of its own database, its own leases, and nothing else. Patroni asks by JSON
// (this file). The program that runs before a promotion (package gate) asks by gRPC (grpc.go).
//
// Invariants:
//   - Only what was checked is passed on: a request is made anew of its parts.
//   - Only certain members may keep a lease alive and put it under keys: those of the database that
//     it was granted to, or whose keys it has. The lease of a primary says that it may write.
//   - One database can neither fill etcd for others nor keep it busy: see budget.
package etcdgate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// Config is the configuration of a gate. A gate needs all fields. A door needs neither Member nor
// Gates.
type Config struct {
	// Etcd is the URL of an etcd with a JSON gateway. HTTP and Client reach it with all rights.
	// Client has a connection of its own.
	Etcd   string
	HTTP   *http.Client
	Client *clientv3.Client
	// Member returns the id of the member that calls, or "" if none does.
	Member func(r *http.Request) string
	// Gates returns the URLs of all gates. Patroni takes them for those of etcd.
	Gates func() []string
	Log   *slog.Logger
}

// Gate is the handler, for HTTP/1.1 and for HTTP/2.
type Gate struct {
	Config
	who     func(r *http.Request) (caller, bool)
	grpc    *grpc.Server
	granted grants
	budget  budget
	// forHosts says that callers are hosts, whose rights change.
	forHosts bool
}

// New returns a gate.
func New(cfg Config) *Gate {
	g := &Gate{Config: cfg, budget: budget{limits: ofDatabase}}
	g.who = func(r *http.Request) (caller, bool) { return rightsOf(cfg.Member(r)) }
	g.grpc = grpc.NewServer(grpc.MaxRecvMsgSize(mostBody))
	pb.RegisterKVServer(g.grpc, &kvServer{gate: g, etcd: pb.NewKVClient(cfg.Client.ActiveConnection())})
	pb.RegisterWatchServer(g.grpc, &watchServer{gate: g, etcd: pb.NewWatchClient(cfg.Client.ActiveConnection())})
	return g
}

// These are bounds. Patroni's requests are small, except for the history of many timelines.
const (
	mostBody    = 256 << 10
	callTimeout = 10 * time.Second // Patroni gives up earlier
	mostKey     = 512
)

// ServeHTTP answers as etcd does.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	own, ok := g.who(r)
	if !ok {
		refuse(w, http.StatusForbidden, permissionDenied, "the certificate is of nobody who may ask")
		return
	}
	leave, ok := g.budget.enter(own.account())
	if !ok {
		w.Header().Set("Connection", "close") // what waits on a connection takes memory too
		refuse(w, http.StatusTooManyRequests, exhausted, "etcdserver: too many requests")
		return
	}
	defer leave()
	r = r.WithContext(withCaller(r.Context(), own))
	switch {
	case r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc"):
		// The gRPC server reads on while it answers, and keeps all that it read.
		r.Body = http.MaxBytesReader(w, r.Body, mostBody)
		g.grpc.ServeHTTP(w, r)
	case r.Method == http.MethodGet && r.URL.Path == "/version":
		g.forward(w, r, "/version", nil)
	default:
		g.serveJSON(w, r, own)
	}
}

// callerKey is the key of the caller in a request's context.
type callerKey struct{}

func withCaller(ctx context.Context, own caller) context.Context {
	return context.WithValue(ctx, callerKey{}, own)
}

// callerOf returns nil if nobody was let in.
func callerOf(ctx context.Context) caller {
	own, _ := ctx.Value(callerKey{}).(caller)
	return own
}

func (g *Gate) serveJSON(w http.ResponseWriter, r *http.Request, own caller) {
	call, known := calls[strings.TrimPrefix(r.URL.Path, "/v3")]
	if !known || r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, "/v3/") {
		refuse(w, http.StatusNotFound, notFound, "Patroni asks nothing like that")
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(callTimeout))
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	if err == nil {
		_ = control.SetReadDeadline(time.Time{}) // a watch goes on
	} else {
		w.Header().Set("Connection", "close") // what is left of it is not waited for
	}
	var request any
	if err == nil {
		request, err = call(g, r.Context(), text, own)
	}
	switch {
	case errors.Is(err, errScope):
		g.warn(own, err)
		refuse(w, http.StatusForbidden, permissionDenied, "etcdserver: permission denied")
	case errors.Is(err, errLease) && r.URL.Path == "/v3/lease/keepalive":
		expired(w, request)
	case errors.Is(err, errLease):
		refuse(w, http.StatusNotFound, notFound, "etcdserver: requested lease not found")
	case errors.Is(err, errUnknown):
		refuse(w, http.StatusServiceUnavailable, unavailable, "etcd does not answer")
	case errors.Is(err, errBudget):
		refuse(w, http.StatusTooManyRequests, exhausted, "etcdserver: too many requests")
	case err != nil:
		refuse(w, http.StatusBadRequest, invalidArgument, err.Error())
	default:
		g.forward(w, r, r.URL.Path, request)
	}
}

// warn logs that a member asked for a key that is not its own. Its Patroni would not do so.
func (g *Gate) warn(own caller, err error) {
	if g.budget.warns(own.account()) {
		g.Log.Warn("refused a key that is not the caller's", "caller", own.String(), "error", err)
	}
}

// expired answers as etcd does for a lease that has ended: without its time to live. Then Patroni
// asks for another lease. It would take an error for an outage, and go on with the old lease.
func expired(w http.ResponseWriter, request any) {
	q, _ := request.(keepAliveRequest)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"result": map[string]any{"ID": q.ID}})
}

// These are codes of gRPC that Patroni looks at.
const (
	invalidArgument  = 3
	notFound         = 5
	permissionDenied = 7
	exhausted        = 8
	unavailable      = 14
)

func refuse(w http.ResponseWriter, status, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": text, "message": text, "code": code}) // whoever hung up needs none
}

// calls has for each call a function that checks a request and returns it in the form that may be
// passed on.
var calls = map[string]func(g *Gate, ctx context.Context, text []byte, own caller) (any, error){
	"/kv/range":            checked(func(q rangeRequest) ([]need, error) { return []need{{keys: q.keys}}, nil }),
	"/kv/deleterange":      checked(func(q keys) ([]need, error) { return []need{{keys: q, deed: deletes}}, nil }),
	"/kv/put":              checked(func(q putRequest) ([]need, error) { return []need{q.need()}, nil }),
	"/kv/txn":              checked(func(q txnRequest) ([]need, error) { return q.needs(0) }),
	"/watch":               checked(watchRequest.needs),
	"/cluster/member/list": checked(func(listRequest) ([]need, error) { return nil, nil }),
	"/lease/grant": func(g *Gate, _ context.Context, text []byte, own caller) (any, error) {
		if !g.budget.spend(own.account(), leaseCost) {
			return nil, errBudget
		}
		var q grantRequest
		if err := decode(text, &q); err != nil {
			return nil, err
		}
		return q.bounded(own.account())
	},
	"/lease/keepalive": func(g *Gate, ctx context.Context, text []byte, own caller) (any, error) {
		var q keepAliveRequest
		err := decode(text, &q)
		if err == nil {
			err = g.mayUse(ctx, q.ID, own)
		}
		return q, err
	},
}

// checked returns such a function for requests whose needs are known.
func checked[T any](needs func(T) ([]need, error)) func(*Gate, context.Context, []byte, caller) (any, error) {
	return func(g *Gate, ctx context.Context, text []byte, own caller) (any, error) {
		var q T
		if err := decode(text, &q); err != nil {
			return nil, err
		}
		all, err := needs(q)
		if err != nil {
			return nil, err
		}
		return q, g.may(ctx, own, all, len(text))
	}
}

// may checks what a request of this size needs. etcd puts the answer together in memory, with each
// key as often as it is asked for.
func (g *Gate) may(ctx context.Context, own caller, all []need, size int) error {
	changes, gets, ranges := 0, 0, 0
	for _, n := range all {
		if len(n.RangeEnd) > 0 {
			ranges++
		}
		if n.deed == reads && !n.compares && !n.names {
			gets++
		}
		if n.deed != reads {
			changes++
		}
		if len(n.Key) > mostKey || len(n.RangeEnd) > mostKey || len(n.value) > g.budget.value {
			return fmt.Errorf("%w: a key of %d bytes, a value of %d", errForm, len(n.Key), len(n.value))
		}
	}
	if len(all) > g.budget.needs || ranges > g.budget.ranges || gets > g.budget.gets {
		return fmt.Errorf("%w: too much at once", errForm)
	}
	for _, n := range all {
		if err := own.may(ctx, n); err != nil {
			return err
		}
		if n.deed == writes && !agrees(n, hostOf(own)) {
			return fmt.Errorf("%w: the value does not agree with its key %.100q", errScope, n.Key)
		}
		if n.lease != "" {
			if err := g.mayUse(ctx, n.lease, own); err != nil {
				return err
			}
		}
	}
	if changes > 0 && !g.budget.spend(own.account(), size+(changes-1)*overhead) {
		return errBudget
	}
	return nil
}

// forward passes a checked request on, and passes the answer back as it comes. A watch goes on
// until one side hangs up.
func (g *Gate) forward(w http.ResponseWriter, r *http.Request, path string, request any) {
	ctx := r.Context()
	if path != "/v3/watch" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTimeout)
		defer cancel()
	}
	size := 0
	if path == "/v3/kv/range" || path == "/v3/kv/txn" {
		done, err := g.budget.read(ctx, callerOf(ctx).account())
		if err != nil {
			refuse(w, http.StatusTooManyRequests, exhausted, "etcdserver: too many requests")
			return
		}
		defer func() { done(size) }()
		// A caller who does not read keeps nobody else from reading.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(callTimeout))
	}
	var body io.Reader
	if request != nil {
		text, err := json.Marshal(request)
		if err != nil {
			refuse(w, http.StatusBadRequest, invalidArgument, err.Error())
			return
		}
		body = bytes.NewReader(text)
	}
	out, err := http.NewRequestWithContext(ctx, r.Method, g.Etcd+path, body)
	if err != nil {
		refuse(w, http.StatusBadRequest, invalidArgument, err.Error())
		return
	}
	out.Header.Set("Content-Type", "application/json")
	answer, err := g.HTTP.Do(out)
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, unavailable, "etcd does not answer")
		return
	}
	defer answer.Body.Close()
	switch {
	case path == "/v3/cluster/member/list" && g.Gates != nil && answer.StatusCode == http.StatusOK:
		g.list(w, answer.Body)
	default:
		size = pass(w, answer)
	}
}

// pass returns how many bytes came.
func pass(w http.ResponseWriter, answer *http.Response) (size int) {
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	w.WriteHeader(answer.StatusCode)
	flusher := http.NewResponseController(w)
	part := make([]byte, 32<<10)
	for {
		n, err := answer.Body.Read(part)
		size += n
		if n > 0 {
			if _, failed := w.Write(part[:n]); failed != nil || flusher.Flush() != nil {
				return size
			}
		}
		if err != nil {
			return size
		}
	}
}

// list names the gates in place of etcd's members, because Patroni goes to those next.
func (g *Gate) list(w http.ResponseWriter, body io.Reader) {
	var answer struct {
		Header json.RawMessage `json:"header"`
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		refuse(w, http.StatusServiceUnavailable, unavailable, "etcd's answer cannot be read")
		return
	}
	type listed struct {
		URLs []string `json:"clientURLs"`
	}
	members := []listed{}
	for _, url := range g.Gates() {
		members = append(members, listed{[]string{url}})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"header": answer.Header, "members": members})
}
