package database

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"howdah/internal/engine/patroni/config"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/dial"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/login"
	"howdah/internal/identity/scram"
	"howdah/internal/model/member"
)

const (
	// loginPort is where PostgreSQL asks about tokens; see ListenFrom.
	loginPort = agent.KindPort
	// loginTry bounds the question to one control plane.
	loginTry = 4 * time.Second
	// ldapFile is where the LDAP library that PostgreSQL uses looks, in the directory
	// that is its HOME.
	ldapFile = ".ldaprc"
)

// listenForLogins has the agent answer the PostgreSQLs of this host about tokens.
// Where it cannot listen, users of rds_iam cannot log in, and all else goes on.
func (a *Host) listenForLogins(ctx context.Context) (answer func(context.Context) error) {
	l, err := a.ListenFrom(ctx, loginPort)
	if err != nil {
		a.Log.Warn("listen for logins: IAM tokens do not work on this host", "error", err)
		return func(context.Context) error { return nil }
	}
	a.logins = l.Addr().(*net.TCPAddr).Port
	server := &login.Server{Check: a.checkLogin, Log: a.Log}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: a.certificate.get}
	return func(ctx context.Context) error {
		if err := server.Serve(ctx, l, config); err != nil {
			a.Log.Warn("answer logins", "error", err)
		}
		return nil
	}
}

// checkLogin decides about a user whom PostgreSQL takes for a member of rds_iam. If it
// only administers members it has a password, and no token lets it in.
func (a *Host) checkLogin(ctx context.Context, id, user, secret string) error {
	how, err := a.loginOf(ctx, id, user)
	switch {
	case err != nil: // as a member of rds_iam then: who is none has no token
		a.Log.Warn("look how a user logs in", "member", id, "error", err)
	case how.ByPassword && scram.Matches(secret, how.Verifier):
		return nil
	case how.ByPassword:
		return fmt.Errorf("%w: it is not this user's password", login.ErrRefused)
	}
	return a.checkToken(ctx, id, user, secret)
}

// loginOf asks the member's own PostgreSQL, if that is one whose administrators of roles
// count as their members.
func (a *Host) loginOf(ctx context.Context, id, user string) (postgres.Login, error) {
	m := a.Find(id)
	if m == nil {
		return postgres.Login{}, nil
	}
	r := runnerOf(m)
	if r.probe.Target().Major < administratorsAreMembers {
		return postgres.Login{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, loginTry)
	defer cancel()
	conn, err := dial.Admin(ctx, a.Agent, r.probe.Target())
	if err != nil {
		return postgres.Login{}, err
	}
	defer conn.Close(ctx)
	return postgres.LoginOf(ctx, conn, user)
}

// administratorsAreMembers is the first PostgreSQL in which whoever creates a role is a
// member of it.
const administratorsAreMembers = 16

// checkToken asks the control planes, until one of them has decided.
func (a *Host) checkToken(ctx context.Context, id, user, token string) error {
	last := hostapi.ErrNoHost
	for _, c := range a.Controls() {
		try, cancel := context.WithTimeout(ctx, loginTry)
		answer, err := c.Login(try, hostapi.LoginRequest{Member: id, User: user, Token: token})
		cancel()
		switch {
		case err != nil:
			last = err
		case answer.Allowed:
			return nil
		default:
			return fmt.Errorf("%w: %s", login.ErrRefused, answer.Why)
		}
	}
	return fmt.Errorf("ask control planes: %w", last)
}

// tokens is how a member's PostgreSQL has tokens checked; nil: it has no such users.
func (a *Host) tokens(as member.Assignment) *config.Tokens {
	if !as.IAMAuth {
		return nil
	}
	prefix, suffix := login.Affixes(as.ID)
	return &config.Tokens{Address: a.Address, Port: a.logins, Prefix: prefix, Suffix: suffix}
}

// ldapPatience, in seconds, is how long a login waits for an answer.
const ldapPatience = 15
