// Package login answers the question that PostgreSQL asks for users of the role rds_iam: is this
// token good for this user? (Or this password: PostgreSQL also asks about the passwords of users
// who only administer such users.) PostgreSQL asks as an LDAP client that makes a simple bind, over
// TLS. Of all its ways to have a password checked elsewhere, only this one has room for a token,
// and needs nothing installed on the host.
//
// Nothing else of LDAP is spoken here. The name of a bind says which member asks: see Affixes. A
// token is never logged and never kept.
package login

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strings"
	"time"
)

// ErrRefused says that a token is not good. Any other error of a Check means that nobody could
// tell.
var ErrRefused = errors.New("the token is refused")

// Check decides about a login. It returns nil, ErrRefused, or an error that says why nobody could
// tell.
type Check func(ctx context.Context, member, user, token string) error

// A connection makes one bind and ends.
const (
	connTimeout = 15 * time.Second
	// atOnce bounds the connections at a time, because each waits for a control plane.
	atOnce = 256
)

// These texts stand around a user's name in the name of a bind. A user's name may hold anything, so
// what follows it has a known length.
const (
	namePrefix = "user="
	memberPart = ",member="
)

// Affixes returns what PostgreSQL has to write around the user's name.
func Affixes(member string) (prefix, suffix string) { return namePrefix, memberPart + member }

// split takes the name of a bind apart.
func split(name string) (member, user string, ok bool) {
	rest, ok := strings.CutPrefix(name, namePrefix)
	at := strings.LastIndex(rest, memberPart)
	if !ok || at < 0 {
		return "", "", false
	}
	return rest[at+len(memberPart):], rest[:at], true
}

// Server answers binds.
type Server struct {
	Check Check
	Log   *slog.Logger
}

// Serve answers on l, with this TLS configuration, until ctx ends. It answers only callers on this
// host.
func (s *Server) Serve(ctx context.Context, l net.Listener, config *tls.Config) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	slots := make(chan struct{}, atOnce)
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case slots <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		go func() {
			defer func() { <-slots }()
			defer conn.Close()
			if sameHost(conn) {
				s.converse(ctx, tls.Server(conn, config))
			}
		}()
	}
}

// sameHost reports whether the caller has the address that it called, or one of loopback.
func sameHost(conn net.Conn) bool {
	from, errFrom := hostOf(conn.RemoteAddr())
	to, errTo := hostOf(conn.LocalAddr())
	return errFrom == nil && errTo == nil && (from.Equal(to) || from.IsLoopback())
}

func hostOf(a net.Addr) (net.IP, error) {
	host, _, err := net.SplitHostPort(a.String())
	return net.ParseIP(host), err
}

// converse answers the messages of one connection.
func (s *Server) converse(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithTimeout(ctx, connTimeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	if conn.SetDeadline(deadline) != nil {
		return
	}
	r := bufio.NewReader(conn)
	for {
		message, err := readMessage(r)
		if err != nil || message.tag != tagSequence {
			return
		}
		answer := s.answer(ctx, message.body)
		if answer == nil {
			return
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// answer returns the answer to a message. nil ends the connection.
func (s *Server) answer(ctx context.Context, message []byte) []byte {
	b := &bytesOf{message}
	id, err := b.next(tagInteger)
	if err != nil {
		return nil
	}
	operation, err := b.next(0)
	if err != nil || operation.tag != tagBind {
		return nil // an unbind too
	}
	var done []byte
	done = encode(done, tagEnum, []byte{s.bind(ctx, operation.body)})
	done = encode(done, tagOctets, nil)
	done = encode(done, tagOctets, nil)
	return encode(nil, tagSequence, append(encode(nil, tagInteger, id.body), encode(nil, tagBindDone, done)...))
}

// bind returns the result code of a bind.
func (s *Server) bind(ctx context.Context, request []byte) byte {
	b := &bytesOf{request}
	_, errVersion := b.next(tagInteger)
	name, errName := b.next(tagOctets)
	password, errPassword := b.next(0)
	if errors.Join(errVersion, errName, errPassword) != nil {
		return resultProtocol
	}
	if password.tag != tagSimple {
		return resultAuthMethod
	}
	member, user, ok := split(string(name.body))
	// In LDAP a bind without a password is anonymous, and succeeds. Here it never does.
	if !ok || user == "" || len(password.body) == 0 {
		return resultCredentials
	}
	switch err := s.Check(ctx, member, user, string(password.body)); {
	case err == nil:
		return resultSuccess
	case errors.Is(err, ErrRefused):
		s.Log.Info("token refused", "member", member, "user", user, "why", err)
		return resultCredentials
	default:
		s.Log.Warn("check a token", "member", member, "user", user, "error", err)
		return resultUnavailable
	}
}
