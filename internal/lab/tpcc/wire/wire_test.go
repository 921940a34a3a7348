package wire

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sys/unix"

	"howdah/internal/testkit/pgtest"
)

func connect(t *testing.T, server *pgtest.Server) *Session {
	t.Helper()
	s, err := Connect(t.Context(), Prepared(server.Config()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// keep is a row function that copies all values.
func keep(all *[]string) func([][]byte) error {
	return func(values [][]byte) error {
		for _, v := range values {
			*all = append(*all, string(v))
		}
		return nil
	}
}

func TestSession(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	t.Run("a simple query", func(t *testing.T) {
		s := connect(t, server)
		var got []string
		if err := s.Query("SELECT n, current_setting('application_name') FROM generate_series(1, 2) AS n", keep(&got)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"1", AppName, "2", AppName}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("prepared statements", func(t *testing.T) {
		s := connect(t, server)
		if err := s.Prepare(t.Context(), "sum", "SELECT $1::integer + coalesce($2::integer, 0), $3::integer[]"); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, second := range [][]byte{[]byte("3"), nil} {
			if err := s.Exec("sum", [][]byte{[]byte("2"), second, []byte("{4,5}")}, keep(&got)); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{"5", "{4,5}", "2", "{4,5}"}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("transactions", func(t *testing.T) { testTransactions(t, connect(t, server)) })
	t.Run("a row that nobody can read", func(t *testing.T) {
		s := connect(t, server)
		unreadable := errors.New("unreadable")
		rows := 0
		err := s.Query("SELECT generate_series(1, 3)", func([][]byte) error { rows++; return unreadable })
		if !errors.Is(err, unreadable) || rows != 1 || errors.Is(err, ErrLost) {
			t.Errorf("%v after %d rows", err, rows)
		}
		if err := s.Query("SELECT 1", nil); err != nil {
			t.Errorf("the next statement: %v", err)
		}
	})
	t.Run("a session that is ended", func(t *testing.T) {
		s := connect(t, server)
		err := s.Query("SELECT pg_terminate_backend(pg_backend_pid())", nil)
		if !errors.Is(err, ErrLost) || State(err) != "57P01" {
			t.Errorf("%v has the state %s", err, State(err))
		}
		if err := s.Query("SELECT 1", nil); !errors.Is(err, ErrLost) {
			t.Errorf("the next statement: %v", err)
		}
		s.Close()
		s.Close()
	})
	t.Run("a wait that is broken off", func(t *testing.T) {
		s := connect(t, server)
		go s.Break()
		if err := s.Query("SELECT pg_sleep(1000)", nil); !errors.Is(err, ErrLost) || State(err) != NoState {
			t.Errorf("%v has the state %s", err, State(err))
		}
	})
}

func testTransactions(t *testing.T, s *Session) {
	for _, step := range []struct {
		sql   string
		state string // of its error
		open  bool   // after it
	}{
		{"SELECT 1", "", false},
		{"BEGIN", "", true},
		{"SELECT 1/0", "22012", true},
		{"SELECT 1", "25P02", true},
		{"ROLLBACK", "", false},
		{"no statement", "42601", false},
		{"DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$", "40P01", false},
	} {
		err := s.Query(step.sql, nil)
		if (err != nil) != (step.state != "") || err != nil && State(err) != step.state {
			t.Errorf("%s: %v", step.sql, err)
		}
		if s.InTransaction() != step.open {
			t.Errorf("%s: a transaction is open: %t", step.sql, s.InTransaction())
		}
		if Retryable(err) != (step.state == "40P01") {
			t.Errorf("%s: retryable is %t", step.sql, Retryable(err))
		}
	}
}

func TestStates(t *testing.T) {
	deadlock := &pgconn.PgError{Code: "40P01", Message: "deadlock"}
	for _, c := range []struct {
		err       error
		state     string
		retryable bool
	}{
		{errors.New("x"), NoState, false},
		{deadlock, "40P01", true},
		{fmt.Errorf("commit: %w", deadlock), "40P01", true},
		{lost(deadlock), "40P01", false},
		{&pgconn.PgError{Code: "40001"}, "40001", true},
		{&pgconn.PgError{Code: "23505"}, "23505", false},
	} {
		if got := State(c.err); got != c.state {
			t.Errorf("%v has the state %s, not %s", c.err, got, c.state)
		}
		if got := Retryable(c.err); got != c.retryable {
			t.Errorf("%v: retryable is %t", c.err, got)
		}
	}
	if got := Text(errors.New("two\n\tlines")); got != "two lines" {
		t.Errorf("the text is %q", got)
	}
}

// Sessions notice that a peer is silent, and a configuration is not changed by that.
func TestPrepared(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	config, err := pgx.ParseConfig("postgres://lab@127.0.0.1/lab?application_name=mine")
	if err != nil {
		t.Fatal(err)
	}
	own := Prepared(config)
	if own.RuntimeParams["application_name"] != "mine" {
		t.Errorf("it is called %s", own.RuntimeParams["application_name"])
	}
	conn, err := own.DialFunc(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		if err != nil || time.Duration(got)*time.Millisecond != silence {
			t.Errorf("%d ms (%v)", got, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
