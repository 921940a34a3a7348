// Package dial reaches the PostgreSQL and the Patroni of a host's members, as the host's agent.
package dial

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"howdah/internal/host/agent"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
)

// Monitor is for a connection as rdsmon, over TCP and TLS, with the server's
// certificate verified for its address.
func Monitor(a *agent.Agent, target member.Assignment) (*pgx.ConnConfig, error) {
	config, err := a.Identity.ClientTLS()
	if err != nil {
		return nil, err
	}
	return Config(target.Address, target.Port, "rdsmon", config)
}

// Config is for a connection of the platform to rdsadmin, by TLS if tls is given.
func Config(host string, port int, user string, tls *tls.Config) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig("sslmode=disable database=rdsadmin application_name=howdah")
	if err != nil {
		return nil, fmt.Errorf("configure connection: %w", err)
	}
	config.Host, config.Port, config.User = host, uint16(port), user
	if tls != nil {
		tls = tls.Clone()
		tls.ServerName = host
	}
	config.TLSConfig = tls
	// What users set for their sessions by a parameter group is not for the platform's.
	for name, value := range map[string]string{
		"statement_timeout": "0", "lock_timeout": "0", "idle_session_timeout": "0", "idle_in_transaction_session_timeout": "0",
		"default_transaction_read_only": "off", "default_transaction_isolation": "read committed", "search_path": `"$user", public`,
	} {
		config.RuntimeParams[name] = value
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return config, nil
}

// ErrOther says that somebody else than the member's PostgreSQL is behind its socket.
var ErrOther = errors.New("another user's process is behind the member's socket")

// AdminConfig is for a connection as rdsadmin through the private socket. That lies in a
// directory of the member's user, who may have put a link to another member's in its
// place: nothing is said to a server of another user.
func AdminConfig(a *agent.Agent, target member.Assignment) (*pgx.ConnConfig, error) {
	config, err := Config(a.SocketDir(target.ID), target.Port, "rdsadmin", nil)
	if err != nil {
		return nil, err
	}
	uid := os.Geteuid()
	if u := a.UserOf(target.ID); u != nil {
		uid = u.UID
	}
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if peer, err := peerOf(conn); err != nil || int(peer.Uid) != uid {
			conn.Close()
			return nil, fmt.Errorf("%s: %w", address, errors.Join(ErrOther, err))
		}
		return conn, nil
	}
	return config, nil
}

// Admin connects as rdsadmin through the private socket.
func Admin(ctx context.Context, a *agent.Agent, target member.Assignment) (*pgx.Conn, error) {
	config, err := AdminConfig(a, target)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect as administrator: %w", err)
	}
	return conn, nil
}

// Socket is where a member's PostgreSQL listens for its own host.
func Socket(a *agent.Agent, m member.Assignment) string {
	return filepath.Join(a.SocketDir(m.ID), fmt.Sprintf(".s.PGSQL.%d", m.Port))
}

// LeadsTo reports whether it is this process that listens on a socket. A server that is too busy to
// be asked is given the benefit of the doubt.
func LeadsTo(ctx context.Context, socket string, server proc.Process) bool {
	conn, err := (&net.Dialer{Timeout: Patience}).DialContext(ctx, "unix", socket)
	if err != nil {
		return !gone(err)
	}
	defer conn.Close()
	peer, err := peerOf(conn)
	return err != nil || int(peer.Pid) == server.PID
}

// peerOf is who listens where a connection through a socket leads.
func peerOf(conn net.Conn) (peer *unix.Ucred, err error) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	failed := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return peer, errors.Join(failed, err)
}

// gone: there is no such socket, or nobody behind it.
func gone(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED)
}

// Answers asks a server whether it speaks TLS: the first message of the
// protocol, which the postmaster answers with one byte before any login.
func Answers(ctx context.Context, address string, patience time.Duration) bool {
	dialer := net.Dialer{Timeout: patience}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(patience)) != nil {
		return false
	}
	// SSLRequest: length 8, code 80877103 (PostgreSQL protocol documentation, 55.7).
	request := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), 80877103)
	if _, err := conn.Write(request); err != nil {
		return false
	}
	answer := make([]byte, 1)
	n, err := conn.Read(answer)
	return err == nil && n == 1
}
