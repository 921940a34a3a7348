// Package wire is a session of a virtual user. It speaks the protocol with pgx's messages and copies
// nothing that nobody reads: a driver shares cores with its server, and must not cost it any.
package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"golang.org/x/sys/unix"

	"howdah/internal/lab/heard"
)

// ErrLost is in every error after which a session is of no use.
var ErrLost = errors.New("the session is lost")

// NoState stands for the SQLSTATE of an error that no server told of: a connection that was cut, was
// refused, or went silent.
const NoState = "no_sqlstate"

// Session is one connection. One goroutine uses it. Only Break may be called by another one.
type Session struct {
	conn  *pgconn.PgConn
	front *pgproto3.Frontend
	open  bool // a transaction is

	// What is sent, kept so that sending allocates nothing.
	bind    pgproto3.Bind
	execute pgproto3.Execute
	sync    pgproto3.Sync
}

// AppName is what sessions of the driver call themselves in pg_stat_activity, if their configuration
// does not say otherwise.
const AppName = "howdah_lab"

// Prepared returns a copy of a configuration that suits sessions of the driver. A server that went
// silent, or a host that is gone, is noticed after about ten seconds.
func Prepared(config *pgx.ConnConfig) *pgx.ConnConfig {
	own := config.Copy()
	if own.RuntimeParams == nil {
		own.RuntimeParams = map[string]string{}
	}
	if own.RuntimeParams["application_name"] == "" {
		own.RuntimeParams["application_name"] = AppName
	}
	dial := own.DialFunc
	own.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			if err := noticeSilence(tcp); err != nil {
				conn.Close()
				return nil, err
			}
		}
		return conn, nil
	}
	return own
}

// What is sent is acknowledged within silence. An idle peer is asked every second after half of it.
const silence = 10 * time.Second

func noticeSilence(conn *net.TCPConn) error {
	err := conn.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: silence / 2, Interval: time.Second, Count: 5})
	if err != nil {
		return err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
	})
	return errors.Join(err, set)
}

// Connect begins a session.
func Connect(ctx context.Context, config *pgx.ConnConfig) (*Session, error) {
	conn, err := pgconn.ConnectConfig(ctx, &config.Config)
	if err != nil {
		return nil, err
	}
	return &Session{conn: conn, front: conn.Frontend()}, nil
}

// Prepare makes a statement that Exec runs by its name.
func (s *Session) Prepare(ctx context.Context, name, sql string) error {
	_, err := s.conn.Prepare(ctx, name, sql, nil)
	return err
}

// InTransaction is whether a transaction is open, failed or not.
func (s *Session) InTransaction() bool { return s.open }

// Query runs one statement by the simple protocol. row, if it is set, gets each row. It must not keep
// the values. What Query returns is a *pgconn.PgError, or has ErrLost in it, or both.
func (s *Session) Query(sql string, row func(values [][]byte) error) error {
	s.front.SendQuery(&pgproto3.Query{String: sql})
	return s.finish(row)
}

// Exec runs a prepared statement. Its parameters and the values that row gets are texts; nil is null.
// It is otherwise like Query.
func (s *Session) Exec(name string, params [][]byte, row func(values [][]byte) error) error {
	s.bind.PreparedStatement, s.bind.Parameters = name, params
	s.front.SendBind(&s.bind)
	s.front.SendExecute(&s.execute)
	s.front.SendSync(&s.sync)
	return s.finish(row)
}

// finish sends what waits to be sent, and reads until the server is ready again.
func (s *Session) finish(row func(values [][]byte) error) error {
	if err := s.front.Flush(); err != nil {
		return lost(err)
	}
	var failed error
	for {
		message, err := s.front.Receive()
		if err != nil {
			return lost(errors.Join(failed, err))
		}
		switch message := message.(type) {
		case *pgproto3.DataRow:
			if row != nil && failed == nil {
				failed = row(message.Values)
			}
		case *pgproto3.ErrorResponse:
			told := pgconn.ErrorResponseToPgError(message)
			if ends(told) {
				return lost(told)
			}
			failed = told
		case *pgproto3.ReadyForQuery:
			s.open = message.TxStatus != 'I'
			return failed
		}
	}
}

// ends is whether the server ends the session after an error. It then says no more.
func ends(told *pgconn.PgError) bool {
	severity := told.SeverityUnlocalized
	if severity == "" {
		severity = told.Severity
	}
	return severity == "FATAL" || severity == "PANIC"
}

func lost(err error) error { return fmt.Errorf("%w: %w", ErrLost, err) }

// Break ends what the session waits for, now and later, with an error.
func (s *Session) Break() {
	_ = s.conn.Conn().SetDeadline(time.Unix(1, 0)) // one that is closed waits for nothing
}

// closeTime is how long a session may take to say that it ends.
const closeTime = time.Second

// Close ends the session. It is idempotent.
func (s *Session) Close() {
	// With a context, closing would set a deadline of its own and remove that of Break.
	_ = s.conn.Conn().SetDeadline(time.Now().Add(closeTime))
	_ = s.conn.Close(context.Background())
}

// State returns the SQLSTATE of an error, or NoState.
func State(err error) string { return heard.State(err, NoState) }

// Retryable is whether the same transaction may be tried again: the server ended it for the sake of
// another one.
func Retryable(err error) bool {
	const serializationFailure, deadlock = "40001", "40P01"
	state := State(err)
	return (state == serializationFailure || state == deadlock) && !errors.Is(err, ErrLost)
}

// Text returns what an error says, in one line.
func Text(err error) string { return heard.Text(err.Error()) }
