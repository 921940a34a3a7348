// Package server answers the admin API: it puts the verbs of all domains together, and does for
// their calls what package front does for those of AWS's services, by front's own means.
//
// Invariants: no verb is done before the caller's signature, key and policies were found to allow
// it; every call leaves a record before its answer is sent.
package server

import (
	"log/slog"
	"maps"

	"howdah/internal/admin/authority"
	"howdah/internal/admin/etcd"
	"howdah/internal/admin/key"
	"howdah/internal/admin/operation"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/identity/home"
	"howdah/internal/state"
)

// Config is what a server of the admin API needs. All fields are required that do not say
// otherwise.
type Config struct {
	Home  *home.Home
	State *state.Client
	Front *front.Front
	Looks *look.Source
	// Authorities are those that sign the certificates of databases.
	Authorities authority.Authorities
	// Etcd may be nil: then nobody makes room in it.
	Etcd etcd.Upkeep
	Log  *slog.Logger
	// More are verbs that are in no package of their own yet.
	More verb.Table
}

// Server is an http.Handler.
type Server struct {
	front   *front.Front
	account string // of the home
	verbs   verb.Table
	log     *slog.Logger
}

// New makes a server of the verbs of all domains.
func New(cfg Config) *Server {
	s := &Server{front: cfg.Front, account: cfg.Home.Account, verbs: verb.Table{}, log: cfg.Log}
	members := &etcd.Members{Client: cfg.State.Store.Client, CertDir: cfg.Home.CertDir()}
	for _, table := range []verb.Table{
		key.Verbs(key.Config{State: cfg.State, Home: cfg.Home, Log: cfg.Log}),
		authority.Verbs(authority.Config{State: cfg.State, Authorities: cfg.Authorities, Log: cfg.Log}),
		operation.Verbs(operation.Config{State: cfg.State, Now: cfg.Looks.Now, Log: cfg.Log}),
		etcd.Verbs(etcd.Config{Members: members, Upkeep: cfg.Etcd, Log: cfg.Log}),
		cfg.More,
	} {
		maps.Copy(s.verbs, table)
	}
	return s
}

// Verb is one by its name.
func (s *Server) Verb(name string) (verb.Verb, bool) {
	known, ok := s.verbs[name]
	return known, ok
}
