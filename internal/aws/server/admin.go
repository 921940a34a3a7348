package server

import (
	"context"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/etcd"
	"howdah/internal/admin/operation"
	adminserver "howdah/internal/admin/server"
	"howdah/internal/admin/verb"
)

// adminVerbs are those that have no package yet.
func (s *Server) adminVerbs() verb.Table {
	return verb.Table{
		admin.VerbStatus:     verb.On(verb.OfHome, s.adminStatus),
		admin.VerbDatabase:   verb.On(verb.OfAccount, s.adminDatabase),
		admin.VerbFailovers:  verb.On(verb.OfHome, s.adminFailovers),
		admin.VerbDrain:      verb.On(verb.OfHome, s.adminDrain),
		admin.VerbUndrain:    verb.On(verb.OfHome, s.adminUndrain),
		admin.VerbForgetHost: verb.On(verb.OfHome, s.adminForgetHost),
		admin.VerbHostOff:    verb.On(verb.OfHome, s.adminHostOff),
		admin.VerbWipe:       verb.On(verb.OfHome, s.adminWipe).Within(wipeTimeout),
		admin.VerbHeld:       verb.On(verb.OfHome, s.adminHeld),
		admin.VerbTakeOver:   verb.On(verb.OfHome, s.adminTakeOver),
	}
}

// Admin serves the admin API, everything below admin.Path.
func (s *Server) Admin() *adminserver.Server {
	return adminserver.New(adminserver.Config{
		Home: s.Home, State: s.client, Front: s.front, Looks: s.looks, Authorities: s.authorities, Etcd: s.Etcd, Log: s.Log, More: s.adminVerbs(),
	})
}

// etcdOut asks every member of etcd how it is, all at once.
func (s *Server) etcdOut(ctx context.Context) []admin.EtcdMember {
	members := &etcd.Members{Client: s.Store.Client, CertDir: s.Home.CertDir()}
	return members.Ask(ctx)
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// lateOperations are problems of operations that should have ended, of one database or of all.
func (s *Server) lateOperations(now time.Time, database string) []admin.Problem {
	return operation.Late(s.Cache, now, database)
}
