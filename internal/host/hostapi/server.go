package hostapi

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
	"howdah/internal/model/zone"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
	"howdah/internal/state/format"
)

// Server answers hosts. All fields except Login, Authority, Storage, Placed, Repository and Bucket
// are required.
type Server struct {
	Home  *home.Home
	CA    *certs.CA
	Store *state.Store
	Etcd  *clientv3.Client
	// Login decides whether a token lets a user into a database. It returns nil, an error of
	// RefuseToken, or an error which says that nobody can tell. Without Login nobody is let in.
	Login func(ctx context.Context, database, user, token string) error
	// Authority returns the authority of databases with this name. Without it the home's own
	// authority signs all certificates.
	Authority func(ctx context.Context, name string) (*certs.CA, error)
	// Members returns the authority of members.
	Members func(ctx context.Context) (*certs.CA, error)
	// Storage returns the key of a member's encrypted directory. Without it nobody gets one.
	Storage func(ctx context.Context, database, member string) ([]byte, error)
	// Placed returns the host that a database's layout has for a member, or "" if there is no such
	// member. Without it nobody gets a key for a look.
	Placed func(ctx context.Context, database, name string) (host string, err error)
	// Repository returns what opens a repository for a database, without a passphrase for the
	// database "". Without it nobody gets to a repository.
	Repository func(ctx context.Context, name, database string) (member.Repository, error)
	// Bucket returns what lets a database into a bucket for a feature, or member.ErrNoRole. Without it
	// no database has a role.
	Bucket func(ctx context.Context, database, feature string) (member.Bucket, error)
	// Beat is called for each heartbeat. agent is the process that sent it, or "" if its release
	// does not say. Beat must not block.
	Beat func(host, agent string)
	Log  *slog.Logger
}

var (
	errForbidden = errors.New("not allowed")
	errBad       = errors.New("bad request")
)

// hostNameForm is a form that fits into names of cgroups, kernel tables and certificates.
var hostNameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,30}$`)

// ValidName reports whether a host or zone may have this name.
func ValidName(name string) bool { return hostNameForm.MatchString(name) }

// Handler serves everything below Path.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Path+"join", handle(s, s.join))
	mux.HandleFunc("POST "+Path+"join-server", handle(s, s.joinServer))
	mux.HandleFunc("POST "+Path+"certificate", handle(s, s.certificate))
	mux.HandleFunc("POST "+Path+"login", handle(s, s.login))
	mux.HandleFunc("POST "+Path+storageKeyPath, handle(s, s.storageKey))
	mux.HandleFunc("POST "+Path+repositoryPath, handle(s, s.repository))
	mux.HandleFunc("POST "+Path+bucketPath, handle(s, s.bucket))
	mux.HandleFunc("POST "+Path+"heartbeat", s.heartbeat)
	return mux
}

type call struct {
	caller string // common name of the certificate, or ""
}

// agent returns the host whose agent calls, or errForbidden.
func (c call) agent() (host string, err error) {
	kind, host, _ := strings.Cut(c.caller, ":")
	if Kind(kind) != Agent {
		return "", fmt.Errorf("%w: only an agent has members", errForbidden)
	}
	return host, nil
}

// handle returns a handler that decodes a request, calls f, and encodes its answer or its error.
func handle[In, Out any](s *Server, f func(context.Context, call, In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&in); err != nil {
			s.refuse(w, r, fmt.Errorf("%w: %w", errBad, err))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
		defer cancel()
		out, err := f(ctx, call{certs.Caller(r.TLS)}, in)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(out)
	}
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusServiceUnavailable
	switch {
	case errors.Is(err, errForbidden):
		status = http.StatusForbidden
	case errors.Is(err, errBad):
		status = http.StatusBadRequest
	}
	s.Log.Warn("host request refused", "path", r.URL.Path, "from", r.RemoteAddr, "error", err)
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(failure{err.Error()})
}

func sameToken(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(strings.TrimSpace(a)), []byte(b)) == 1
}

func (s *Server) join(ctx context.Context, _ call, in JoinRequest) (JoinAnswer, error) {
	tokens, err := s.Home.Join()
	if err != nil {
		return JoinAnswer{}, err
	}
	if !sameToken(in.Token, tokens.AgentToken) {
		return JoinAnswer{}, fmt.Errorf("%w: the token is not valid here", errForbidden)
	}
	if (in.Kind != Agent && in.Kind != Edge) || !ValidName(in.Name) {
		return JoinAnswer{}, fmt.Errorf("%w: a name has 1 to 31 lower-case letters, digits and hyphens", errBad)
	}
	cert, err := s.CA.Sign(in.CSR, certs.Subject{CommonName: string(in.Kind) + ":" + in.Name})
	if err != nil {
		return JoinAnswer{}, fmt.Errorf("%w: %w", errBad, err)
	}
	urls, err := etcd.ClientURLs(ctx, s.Etcd)
	if err != nil {
		return JoinAnswer{}, err
	}
	control, err := ControlURLs(ctx, s.Store)
	if err != nil {
		return JoinAnswer{}, err
	}
	return JoinAnswer{HomeID: s.Home.ID, CA: s.CA.CertPEM, Certificate: cert, Etcd: urls, Control: control}, nil
}

func (s *Server) joinServer(ctx context.Context, _ call, in ServerJoinRequest) (ServerJoinAnswer, error) {
	tokens, err := s.Home.Join()
	if err != nil {
		return ServerJoinAnswer{}, err
	}
	if !sameToken(in.Token, tokens.ServerToken) {
		return ServerJoinAnswer{}, fmt.Errorf("%w: the token is not a control plane's", errForbidden)
	}
	if _, _, err := net.SplitHostPort(in.PeerAddr); err != nil || !ValidName(in.Name) {
		return ServerJoinAnswer{}, fmt.Errorf("%w: a name and a peer address are needed", errBad)
	}
	key, err := s.CA.KeyPEM()
	if err != nil {
		return ServerJoinAnswer{}, err
	}
	credentials, err := s.Home.Credentials()
	if err != nil {
		return ServerJoinAnswer{}, err
	}
	if tokens.SealKey, err = s.Home.SealKey(); err != nil {
		return ServerJoinAnswer{}, err
	}
	if err := s.keepsFormat(ctx, in); err != nil {
		return ServerJoinAnswer{}, err
	}
	peers, err := etcd.Add(ctx, s.Etcd, in.Name, in.PeerAddr)
	if err != nil {
		return ServerJoinAnswer{}, err
	}
	return ServerJoinAnswer{
		Home: s.Home.Config, Join: tokens, Credentials: credentials,
		CACert: s.CA.CertPEM, CAKey: key, Peers: peers,
	}, nil
}

// keepsFormat refuses a control plane that would drop fields of records which it does not know.
func (s *Server) keepsFormat(ctx context.Context, in ServerJoinRequest) error {
	now, err := state.Get[format.Record](ctx, s.Store, state.HomeFormat)
	if errors.Is(err, state.ErrNotFound) {
		return nil
	}
	if err == nil && in.Reads < now.Value.Format {
		err = fmt.Errorf("%w: the records of this home have format %d, and the control plane that would join reads %d: start howdah %s or newer there",
			errBad, now.Value.Format, in.Reads, now.Value.Release)
	}
	return err
}

// heartbeat handles the one call that comes often: next to no body, no answer.
func (s *Server) heartbeat(w http.ResponseWriter, r *http.Request) {
	kind, host, _ := strings.Cut(certs.Caller(r.TLS), ":")
	if Kind(kind) != Agent {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	var in heartbeat
	if err := json.NewDecoder(io.LimitReader(r.Body, maxHeartbeat)).Decode(&in); err != nil {
		in = heartbeat{} // the host lives all the same
	}
	s.Beat(host, in.Agent)
	w.WriteHeader(http.StatusNoContent)
}

// ControlMember is what a control plane says of itself.
type ControlMember struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	// OwnNames says that it knows members by names that no other database has.
	OwnNames bool `json:"own_names,omitempty"`
	format.Said
	// Gate is where members reach etcd with keys of their own, as host:port. It is "" in an older
	// release, which has no gate.
	Gate string `json:"gate,omitempty"`
	// Zone is the DNS zone in which databases have names (zone.Said).
	Zone zone.Zone `json:"dns_zone,omitempty"`
}

// ControlURLs lists where the control planes answer hosts.
func ControlURLs(ctx context.Context, store *state.Store) ([]string, error) {
	records, err := state.List[ControlMember](ctx, store, state.ControlRoot)
	if err != nil {
		return nil, err
	}
	urls := make([]string, len(records))
	for i, r := range records {
		urls[i] = r.Value.URL
	}
	return urls, nil
}
