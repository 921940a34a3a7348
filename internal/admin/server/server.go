// Package server answers the admin API. It puts the verbs of all domains together. For their calls
// it does what package front does for those of AWS's services, with front's own means.
//
// Invariants: no verb is done before the caller's signature, key and policies were found to allow
// it. Every call leaves a record before its answer is sent.
package server

import (
	"log/slog"
	"maps"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/authority"
	"howdah/internal/admin/backup"
	"howdah/internal/admin/database"
	"howdah/internal/admin/etcd"
	"howdah/internal/admin/home"
	"howdah/internal/admin/host"
	"howdah/internal/admin/key"
	"howdah/internal/admin/operation"
	"howdah/internal/admin/repository"
	"howdah/internal/admin/restore"
	"howdah/internal/admin/role"
	"howdah/internal/admin/snapshot"
	"howdah/internal/admin/status"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	records "howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	identity "howdah/internal/identity/home"
	"howdah/internal/state"
)

// Config is what a server of the admin API needs. All fields are required unless they say
// otherwise.
type Config struct {
	Home  *identity.Home
	State *state.Client
	Front *front.Front
	Looks *look.Source
	// Records make and change databases as the API does.
	Records *records.Source
	// Authorities has the authorities that sign the certificates of databases.
	Authorities authority.Authorities
	// Etcd may be nil: then nobody makes room in it.
	Etcd etcd.Upkeep
	// NoBackup returns why the last backup of the home was not taken, or "".
	NoBackup func() string
	// Repositories asks hosts about repositories, and NoRepository and Away know what is wrong with
	// them: see repository.Problems.
	Repositories repository.Prober
	NoRepository func() string
	Away         func() map[string]string
	// Fetches fetches from hosts what they made ready.
	Fetches snapshot.Fetcher
	// Low knows in which repositories little is free, and how much. nil: in none.
	Low     func() map[string]string
	Version string
	Log     *slog.Logger
}

// Server is an http.Handler.
type Server struct {
	front   *front.Front
	account string // of the home
	verbs   verb.Table
	log     *slog.Logger
}

// New returns a server with the verbs of all domains.
func New(cfg Config) *Server {
	s := &Server{front: cfg.Front, account: cfg.Home.Account, verbs: verb.Table{}, log: cfg.Log}
	databases := database.New(cfg.Looks)
	members := &etcd.Members{Client: cfg.State.Store.Client, CertDir: cfg.Home.CertDir()}
	held := &home.Held{Cache: cfg.State.Cache, Databases: databases, SealKey: cfg.Home.SealKey}
	late := func(now time.Time, id string) []admin.Problem { return operation.Late(cfg.State.Cache, now, id) }
	repositories := func() []admin.Problem {
		return repository.Problems(cfg.State.Cache, cfg.Home.Disposable, cfg.NoRepository, cfg.Away, cfg.Low)
	}
	backups := func() status.Backups { return backup.Look(cfg.Looks) }
	for _, table := range []verb.Table{
		key.Verbs(key.Config{State: cfg.State, Home: cfg.Home, Log: cfg.Log}),
		authority.Verbs(authority.Config{State: cfg.State, Authorities: cfg.Authorities, Log: cfg.Log}),
		operation.Verbs(operation.Config{State: cfg.State, Now: cfg.Looks.Now, Log: cfg.Log}),
		repository.Verbs(repository.Config{State: cfg.State, Home: cfg.Home, Databases: databases, Hosts: cfg.Repositories, Log: cfg.Log}),
		role.Verbs(role.Config{State: cfg.State, Home: cfg.Home, Log: cfg.Log}),
		backup.Verbs(backup.Config{State: cfg.State, Looks: cfg.Looks, Databases: databases, Log: cfg.Log}),
		snapshot.Verbs(snapshot.Config{Records: cfg.Records, Hosts: cfg.Fetches, Log: cfg.Log}),
		restore.Verbs(restore.Config{Records: cfg.Records, Log: cfg.Log}),
		etcd.Verbs(etcd.Config{Members: members, Upkeep: cfg.Etcd, Log: cfg.Log}),
		host.Verbs(host.Config{State: cfg.State, Databases: databases, Held: held, Now: cfg.Looks.Now}),
		home.Verbs(home.Config{
			State: cfg.State, Databases: databases, Held: held, Now: cfg.Looks.Now, Log: cfg.Log, Disposable: cfg.Home.Disposable,
		}),
		status.Verbs(status.Config{
			State: cfg.State, Home: cfg.Home, Looks: cfg.Looks, Databases: databases, Held: held, Etcd: members,
			Late: late, NoBackup: cfg.NoBackup, Repositories: repositories, Backups: backups, Version: cfg.Version,
		}),
	} {
		maps.Copy(s.verbs, table)
	}
	return s
}

// Verb returns a verb by its name.
func (s *Server) Verb(name string) (verb.Verb, bool) {
	known, ok := s.verbs[name]
	return known, ok
}
