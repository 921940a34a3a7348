// Package server answers the API: it verifies who calls, decodes by the public
// model, and turns a request into a change of the desired state, or the state
// into an answer. It does nothing to databases: reconcile does, afterwards.
//
// Each service is a package of its own. They are put together here. What happens before and
// after a handler is package front's.
package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"howdah/internal/aws/audit"
	"howdah/internal/aws/ec2"
	"howdah/internal/aws/front"
	"howdah/internal/aws/kms"
	"howdah/internal/aws/rds"
	"howdah/internal/aws/rds/address"
	"howdah/internal/aws/rds/certificate"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/group"
	"howdah/internal/aws/rds/log"
	"howdah/internal/aws/rds/login"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/upkeep"
	"howdah/internal/aws/secretsmanager"
	"howdah/internal/aws/sns"
	"howdah/internal/aws/sts"
	"howdah/internal/control/plan"
	"howdah/internal/identity/home"
	"howdah/internal/state"
	"howdah/internal/view"
)

// Config is what an API server needs. All fields are required that do not say otherwise.
type Config struct {
	Home   *home.Home
	Store  *state.Store
	Cache  *state.Cache
	Policy plan.Policy
	Pool   string // CIDR of endpoint addresses
	// PublicPool is the CIDR of those of publicly accessible endpoints; "": there is none.
	PublicPool string
	Log        *slog.Logger
	Logs       log.Reader
	// Settings may be nil: then nobody is asked but PostgreSQL beside the server.
	Settings group.Settings
	// Audit may be nil: then calls are not recorded.
	Audit *audit.Log
	// Newest is etcd.Member.Newest.
	Newest func(ctx context.Context) (int64, error)
	// Scarce reports whether the state has only room left for what failovers need; nil: it never
	// does.
	Scarce func() bool
	// Hearing knows who was heard since this control plane started; nil: everyone was.
	Hearing look.Hearing
	// Began is the revision at which it told of itself, which edges answer; 0: none did so
	// in vain.
	Began int64
}

// Server is an http.Handler.
type Server struct {
	Config
	pools  address.Pools
	now    func() time.Time
	client *state.Client
	front  *front.Front
	looks  *look.Source
	rds    *rds.Parts
}

// New makes a server.
func New(cfg Config) (*Server, error) {
	pools, err := address.Parse(cfg.Cache, cfg.Pool, cfg.PublicPool)
	if err != nil {
		return nil, err
	}
	s := &Server{Config: cfg, pools: pools, now: time.Now}
	s.looks = &look.Source{
		Cache: cfg.Cache, Records: &view.Records{Cache: cfg.Cache}, Places: &view.Places{Cache: cfg.Cache}, Policy: cfg.Policy, Now: func() time.Time { return s.now() },
		Hearing: cfg.Hearing, Began: cfg.Began, Started: time.Now(),
	}
	s.client = &state.Client{Store: cfg.Store, Cache: cfg.Cache, Newest: cfg.Newest, Settle: s.looks.Settle}
	s.rds = rds.New(rds.Config{
		State: s.client, Looks: s.looks, Pools: &s.pools, Home: cfg.Home, Now: s.looks.Now, Log: cfg.Log, Logs: cfg.Logs, Settings: cfg.Settings,
	})
	s.front = front.New(front.Config{
		Home: cfg.Home, Cache: cfg.Cache, Log: cfg.Log, Audit: cfg.Audit, Now: func() time.Time { return s.now() },
		Scarce: func() bool { return s.Scarce != nil && s.Scarce() },
	}, s.services()...)
	return s, nil
}

// services are those that Howdah speaks. The first one's language is that of answers to what is
// for none of them.
func (s *Server) services() []*front.Service {
	return []*front.Service{
		s.rds.Service(),
		ec2.Service(ec2.Config{State: s.client, Block: s.pools.Private.String(), Zones: s.looks.Zones, User: s.rds.Databases.UserOf}),
		sns.Service(sns.Config{State: s.client, Mails: func() bool { return s.Home.SMTP != nil }}),
		sts.Service(),
		secretsmanager.Service(secretsmanager.Config{State: s.client, Looks: s.looks, Seal: s.sealKey, Rotate: s.rds.Upkeep.RotatePassword}),
		kms.Service(kms.Config{State: s.client, Seal: s.sealKey}),
	}
}

// Upkeep is what the control plane that leads does to databases by itself.
func (s *Server) Upkeep() *upkeep.Upkeep { return s.rds.Upkeep }

// Login decides whether a token lets a user into a database: see login.Gate.
func (s *Server) Login(ctx context.Context, database, user, token string) error {
	gate := login.Gate{State: s.client, Front: s.front, Looks: s.looks}
	return gate.Login(ctx, database, user, token)
}

// State, Front, Looks, Records and Authorities are what the admin API shares with this one.

// State is how both read and write.
func (s *Server) State() *state.Client { return s.client }

// Front knows who calls, and records calls.
func (s *Server) Front() *front.Front { return s.front }

// Looks tell of databases.
func (s *Server) Looks() *look.Source { return s.looks }

// Records make and change databases.
func (s *Server) Records() *database.Source { return s.rds.Databases }

// Authorities are those that sign the certificates of databases.
func (s *Server) Authorities() *certificate.Authorities { return s.rds.Authorities }

// sealKey is what secrets of the state are sealed with.
func (s *Server) sealKey() ([]byte, error) { return s.Home.SealKey() }

// Bundle is what clients of the API and of databases are to trust, in PEM.
func (s *Server) Bundle() []byte { return s.rds.Authorities.Bundle() }

// ServeHTTP answers one request of any of the services.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.front.ServeHTTP(w, r) }
