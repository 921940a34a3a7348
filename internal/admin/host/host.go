// Package host has the admin API's verbs on hosts: to empty one, to forget one, and to swear that
// one is off. It only records what is wanted. The control plane that leads carries it out.
package host

import (
	"fmt"
	"strings"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/database"
	"howdah/internal/admin/verb"
	"howdah/internal/state"
)

// Held knows what hosts have told since the home was restored: home.Held.
type Held interface {
	// Awaited reports whether databases wait for the word of a host that only other hosts know.
	Awaited(host string) bool
	// Told reports whether a host has said what it has.
	Told(host string) bool
	// Elsewhere reports whether another host has told of data of a database that is held.
	Elsewhere(database, host string) bool
}

// Config is what the verbs need. All fields are required.
type Config struct {
	State     *state.Client
	Databases *database.Source
	Held      Held
	Now       func() time.Time
}

// service has the handlers.
type service struct {
	*state.Client
	databases *database.Source
	held      Held
	now       func() time.Time
}

// Verbs returns the verbs on hosts.
func Verbs(cfg Config) verb.Table {
	s := &service{cfg.State, cfg.Databases, cfg.Held, cfg.Now}
	return verb.Table{
		admin.VerbDrain:      verb.On(verb.OfHome, s.drain),
		admin.VerbUndrain:    verb.On(verb.OfHome, s.undrain),
		admin.VerbForgetHost: verb.On(verb.OfHome, s.forget),
		admin.VerbHostOff:    verb.On(verb.OfHome, s.off),
	}
}

// known refuses a host that has not joined.
func (s *service) known(name string) error {
	if _, _, known := s.Cache.Raw(state.Host(name)); known {
		return nil
	}
	names := s.Cache.Names(state.HostRoot)
	hint := "no host has joined yet"
	if len(names) > 0 {
		hint = "there are " + strings.Join(names, ", ")
	}
	return admin.NewError(admin.CodeHostNotFound, fmt.Sprintf("There is no host %q.", name), hint)
}
