// Package server answers the API: it verifies who calls, decodes by the public
// model, and turns a request into a change of the desired state, or the state
// into an answer. It does nothing to databases: reconcile does, afterwards.
//
// A file holds a resource's action or two; actions.go is the table of them all.
package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"howdah/api"
	"howdah/api/ec2"
	"howdah/api/rds"
	"howdah/api/sns"
	"howdah/internal/aws/audit"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/control/plan"
	"howdah/internal/identity/home"
	"howdah/internal/identity/stranger"
	"howdah/internal/model/spec"
	"howdah/internal/model/topic"
	"howdah/internal/state"
	"howdah/internal/state/backup"
	"howdah/internal/view"
)

// callTimeout bounds a call. Calls read and write state. One that sets parameters also asks
// PostgreSQL what it takes, and one for a log file asks the host that has it.
const callTimeout = 15 * time.Second

// Config is what an API server needs. All fields are required that do not say otherwise.
type Config struct {
	Home   *home.Home
	Store  *state.Store
	Cache  *state.Cache
	Policy plan.Policy
	Pool   string // CIDR of endpoint addresses
	// PublicPool is the CIDR of those of publicly accessible endpoints; "": there is none.
	PublicPool string
	Version    string
	Log        *slog.Logger
	Logs       Logs
	// Settings may be nil: then nobody is asked but PostgreSQL beside the server.
	Settings Settings
	// Audit may be nil: then calls are not recorded.
	Audit *audit.Log
	// Newest is etcd.Member.Newest.
	Newest func(ctx context.Context) (int64, error)
	// Etcd may be nil: then nobody asks for room in it.
	Etcd Upkeep
	// Backups are those of the home; nil: none are taken.
	Backups *backup.Schedule
	// Hearing knows who was heard since this control plane started; nil: everyone was.
	Hearing Hearing
	// Began is the revision at which it told of itself, which edges answer; 0: none did so
	// in vain.
	Began int64
}

var (
	errPool    = errors.New("it must be an IPv4 network of at least four addresses")
	errOverlap = errors.New("it has addresses of the pool of all other endpoints")
)

// Server is an http.Handler.
type Server struct {
	Config
	pool   netip.Prefix
	public netip.Prefix // not valid: there is none
	now    func() time.Time
	client *state.Client
	keys   *keyring
	looks  *looks
	places *view.Places
	start  *start
}

// New makes a server.
func New(cfg Config) (*Server, error) {
	pool, err := parsePool(cfg.Pool)
	if err != nil {
		return nil, fmt.Errorf("endpoint pool: %w", err)
	}
	var public netip.Prefix
	if cfg.PublicPool != "" {
		if public, err = parsePool(cfg.PublicPool); err != nil {
			return nil, fmt.Errorf("public pool: %w", err)
		}
		if public.Overlaps(pool) {
			return nil, fmt.Errorf("public pool %s: %w (%s)", public, errOverlap, pool)
		}
	}
	s := &Server{
		Config: cfg, pool: pool, public: public, now: time.Now, keys: &keyring{home: cfg.Home, cache: cfg.Cache},
		looks: &looks{}, places: &view.Places{Cache: cfg.Cache}, start: &start{at: time.Now()},
	}
	s.client = &state.Client{Store: cfg.Store, Cache: cfg.Cache, Newest: cfg.Newest, Settle: s.settle}
	return s, nil
}

// parsePool reads a pool of endpoint addresses.
func parsePool(text string) (netip.Prefix, error) {
	pool, err := netip.ParsePrefix(text)
	if err != nil {
		return pool, err
	}
	if !pool.Addr().Is4() || pool.Bits() > 30 {
		return pool, fmt.Errorf("%s: %w", text, errPool)
	}
	return pool.Masked(), nil
}

// call is one request on its way.
type call struct {
	spec.Scope
	who       principal
	action    string // with its service: "rds:CreateDBInstance"
	source    string // address of the caller
	secure    bool   // over TLS
	id        string // request id
	now       time.Time
	anonymous bool // by a link, perhaps one that was sent to the caller
	record    *record
}

// sent notes of a call by a link that the caller did know what only the endpoint of
// a subscription was sent.
func (c call) sent(sub topic.Subscription) {
	if c.anonymous {
		c.record.sent(sub.Scope)
	}
}

// ServeHTTP answers one request: read, verify, find the action, decode, do,
// encode. Whatever goes wrong on the way becomes an error document.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if json, ok := jsonServices[sigv4.ClaimedService(r)]; ok {
		s.serveJSON(w, r, json)
		return
	}
	id := requestID()
	service := &rds.Service
	record := s.record(r, id)
	answer := answers.Get().(*bytes.Buffer)
	defer answers.Put(answer)
	answer.Reset()
	if err := s.answer(answer, r, id, &service, record); err != nil {
		known := s.known(id, err)
		if service == &ec2.Service {
			known = ec2Error(known)
		}
		record.end(known.Status, known.Code)
		s.refuse(w, service, id, known)
		return
	}
	record.end(http.StatusOK, "")
	w.Header().Set("Content-Type", wire.ContentType)
	w.Header().Set("x-amzn-RequestId", id)
	w.Write(answer.Bytes())
}

// answers are used again: a page of instances is of 300 kB.
var answers = sync.Pool{New: func() any { return &bytes.Buffer{} }}

func (s *Server) answer(text *bytes.Buffer, r *http.Request, id string, service **api.Service, record *record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("handler panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("handler panicked: %v", p)
		}
	}()
	// Until it is proved who calls, the answer is at least in the caller's language.
	*service = serviceNamed(sigv4.ClaimedService(r), *service)
	body, err := s.body(r, record)
	if err != nil {
		return err
	}
	speaks, name, values, c, err := s.caller(r, body, id, record)
	if err != nil {
		return err
	}
	*service = serviceNamed(speaks, *service)
	do, err := find(speaks, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
	defer cancel()
	out, err := do(ctx, s, c, values)
	if err != nil {
		return err
	}
	return wire.EncodeResult(text, name, id, out)
}

// serviceNamed is the service of that name, or what stands for one that nobody knows.
func serviceNamed(name string, otherwise *api.Service) *api.Service {
	for _, known := range wire.Services() {
		if known.Name == name {
			return known
		}
	}
	return otherwise
}

// caller finds out who calls, what, and of which service: a signature says so, or the
// link of a message. Both are noted in the record of the call. What is signed is taken
// apart only when its signature was found to be right.
func (s *Server) caller(r *http.Request, body []byte, id string, record *record) (service, name string, values url.Values, c call, err error) {
	if !sigv4.Signed(r) {
		name, values, err = wire.Parse(r, body)
		c, ok := s.withoutSignature(name, values)
		if err == nil && ok {
			record.asks(sns.Service.Name, name, values)
			c.record = record
			c.action, c.source, c.secure, c.id, c.now = sns.Service.Name+":"+name, sourceOf(r), r.TLS != nil, id, s.now().UTC()
			return sns.Service.Name, name, values, c, nil
		}
		if err != nil {
			return "", "", nil, call{}, err
		}
	}
	identity, who, err := s.authenticate(r, body, record)
	if err != nil {
		return "", "", nil, call{}, err
	}
	if name, values, err = wire.Parse(r, body); err != nil {
		return "", "", nil, call{}, err
	}
	record.asks(identity.Service, name, values)
	return identity.Service, name, values, s.call(r, identity, who, name, id), nil
}

// mostMessage bounds what an error says: values are shown in it, as long as they are.
const mostMessage = 2000

// known is the API's own error for any. What is none is ours: it is logged in full,
// and the caller gets an id to find it by.
func (s *Server) known(id string, err error) *wire.Error {
	var known *wire.Error
	if !errors.As(err, &known) {
		known = translate(err)
	}
	if known == nil {
		s.Log.Error("call failed", "request", id, "error", err)
		known = wire.NewError(api.ErrInternalFailure, "An internal error has occurred; see request %s in the log of howdah serve.", id)
	}
	if len(known.Message) > mostMessage {
		short := *known
		short.Message = strings.ToValidUTF8(known.Message[:mostMessage], "") + "..."
		return &short
	}
	return known
}

// refuse answers an error.
func (s *Server) refuse(w http.ResponseWriter, service *api.Service, id string, known *wire.Error) {
	w.Header().Set("Content-Type", wire.ContentType)
	w.Header().Set("x-amzn-RequestId", id)
	w.WriteHeader(known.Status)
	if err := known.EncodeFor(w, service, id); err != nil {
		s.Log.Debug("answer error", "error", err)
	}
}

// translate turns errors of the layers below into the API's.
func translate(err error) *wire.Error {
	var invalid *spec.Invalid
	switch {
	case errors.As(err, &invalid):
		return wire.NewError(invalid.Code, "%s", invalid.Message)
	case errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace), errors.Is(err, rpctypes.ErrNoSpace):
		return errFull()
	case errors.Is(err, stranger.ErrFull):
		return wire.NewError(api.ErrServiceUnavailable, "The request was not read: too many are at this moment of callers who have not been authenticated yet. Try again.")
	case storeIsSilent(err):
		return wire.NewError(api.ErrServiceUnavailable, "The state store did not answer in time: see `howdah status`, and try again.")
	default:
		return nil
	}
}

// storeIsSilent: etcd did not answer in time, or has no leader just now.
func storeIsSilent(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	code := status.Code(err)
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		code = e.Code()
	}
	return code == codes.Unavailable || code == codes.DeadlineExceeded || code == codes.Canceled
}

func requestID() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("server: no randomness: " + err.Error())
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// fresh is state.Client.Fresh.
func (s *Server) fresh(ctx context.Context) error { return s.client.Fresh(ctx) }

// commit is state.Client.Commit.
func (s *Server) commit(ctx context.Context, ops ...state.Op) error {
	return s.client.Commit(ctx, ops...)
}

// retry is state.Client.Retry.
func (s *Server) retry(ctx context.Context, attempt func() error) error {
	return s.client.Retry(ctx, attempt)
}
