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
	"runtime/debug"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"howdah/api"
	"howdah/api/rds"
	"howdah/api/sts"
	"howdah/internal/home"
	"howdah/internal/plan"
	"howdah/internal/spec"
	"howdah/internal/state"
	"howdah/internal/wire"
	"howdah/internal/wire/sigv4"
)

// callTimeout bounds a call: all of them only read or write state.
const callTimeout = 15 * time.Second

// Config is what an API server needs. All fields are required.
type Config struct {
	Home    *home.Home
	Store   *state.Store
	Cache   *state.Cache
	Policy  plan.Policy
	Pool    string // CIDR of endpoint addresses
	Version string
	Log     *slog.Logger
}

var errPool = errors.New("it must be an IPv4 network of at least four addresses")

// Server is an http.Handler.
type Server struct {
	Config
	pool netip.Prefix
	now  func() time.Time
}

// New makes a server.
func New(cfg Config) (*Server, error) {
	pool, err := netip.ParsePrefix(cfg.Pool)
	if err != nil {
		return nil, fmt.Errorf("endpoint pool: %w", err)
	}
	if !pool.Addr().Is4() || pool.Bits() > 30 {
		return nil, fmt.Errorf("endpoint pool %s: %w", cfg.Pool, errPool)
	}
	return &Server{Config: cfg, pool: pool.Masked(), now: time.Now}, nil
}

// call is one request on its way.
type call struct {
	spec.Scope
	accessKey string
	id        string // request id
	now       time.Time
}

// ServeHTTP answers one request: read, verify, find the action, decode, do,
// encode. Whatever goes wrong on the way becomes an error document.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := requestID()
	service := &rds.Service
	answer, err := s.answer(r, id, &service)
	if err != nil {
		s.refuse(w, service, id, err)
		return
	}
	w.Header().Set("Content-Type", wire.ContentType)
	w.Header().Set("x-amzn-RequestId", id)
	w.Write(answer)
}

func (s *Server) answer(r *http.Request, id string, service **api.Service) (answer []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("handler panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("handler panicked: %v", p)
		}
	}()
	name, values, body, err := wire.ReadRequest(r, wire.MaxBody)
	if err != nil {
		return nil, err
	}
	identity, account, err := s.authenticate(r, body)
	if err != nil {
		return nil, err
	}
	if identity.Service == "sts" {
		*service = &sts.Service
	}
	do, err := find(identity.Service, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
	defer cancel()
	c := call{
		Scope:     spec.Scope{Account: account, Region: identity.Region},
		accessKey: identity.AccessKeyID, id: id, now: s.now().UTC(),
	}
	out, err := do(ctx, s, c, values)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := wire.EncodeResult(&text, name, id, out); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// authenticate finds out who calls. Credentials are read for each call: a key
// that was added counts at once.
func (s *Server) authenticate(r *http.Request, body []byte) (sigv4.Identity, string, error) {
	all, err := s.Home.Credentials()
	if err != nil {
		return sigv4.Identity{}, "", err
	}
	account := ""
	identity, err := sigv4.Verify(r, body, func(key string) (string, bool) {
		for _, c := range all {
			if c.AccessKey == key {
				account = c.Account
				return c.Secret, true
			}
		}
		return "", false
	}, s.now())
	return identity, account, err
}

// refuse answers an error. What is not the API's own error is ours: it is logged
// in full, and the caller gets an id to find it by.
func (s *Server) refuse(w http.ResponseWriter, service *api.Service, id string, err error) {
	var known *wire.Error
	if !errors.As(err, &known) {
		known = translate(err)
	}
	if known == nil {
		s.Log.Error("call failed", "request", id, "error", err)
		known = wire.NewError(api.ErrInternalFailure, "An internal error has occurred; see request %s in the log of howdah serve.", id)
	}
	w.Header().Set("Content-Type", wire.ContentType)
	w.Header().Set("x-amzn-RequestId", id)
	w.WriteHeader(known.Status)
	if err := known.Encode(w, service.XMLNS, id); err != nil {
		s.Log.Debug("answer error", "error", err)
	}
}

// translate turns errors of the layers below into the API's.
func translate(err error) *wire.Error {
	var invalid *spec.Invalid
	switch {
	case errors.As(err, &invalid):
		return wire.NewError(invalid.Code, "%s", invalid.Message)
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

// fresh makes reads see all that was written before the call, by anyone.
func (s *Server) fresh(ctx context.Context) error {
	answer, err := s.Store.Client.Get(ctx, state.MetaRoot)
	if err != nil {
		return fmt.Errorf("ask for the newest state: %w", err)
	}
	return s.Cache.WaitRevision(ctx, answer.Header.Revision)
}

// commit writes, and makes later reads of this process see it.
func (s *Server) commit(ctx context.Context, ops ...state.Op) error {
	revision, err := s.Store.Commit(ctx, ops...)
	if err != nil {
		return err
	}
	return s.Cache.WaitRevision(ctx, revision)
}

// retry runs a read-modify-write until nobody was quicker.
func (s *Server) retry(ctx context.Context, attempt func() error) error {
	for {
		if err := s.fresh(ctx); err != nil {
			return err
		}
		err := attempt()
		if !errors.Is(err, state.ErrConflict) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
