package target

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

func given(t *testing.T, s *pgtest.Server) *Address {
	t.Helper()
	server, err := address.Parse("postgresql://"+s.User+"@"+s.Addr+"/"+s.Database+"?sslmode=disable", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &Address{Server: server}
}

// The lab writes to its own schema, and to no database that has somebody's data, unless it is told to.
func TestTheLabTouchesItsOwn(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{Settings: "max_connections = 20\n"})
	a := given(t, s)
	expect := func(what string, clients int, want error) {
		t.Helper()
		if err := a.Prepare(t.Context(), clients); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	expect("an empty database", 10, nil)
	expect("with its own schema", 10, nil)
	expect("more clients than it takes", 16, ErrClients)
	s.Exec("CREATE TABLE howdah_lab.own AS SELECT 1")
	s.Exec("CREATE EXTENSION pg_stat_statements")
	expect("with its own table, and an extension's", 1, nil)
	s.Exec("CREATE SCHEMA shop")
	s.Exec("CREATE TABLE shop.orders ()")
	expect("somebody's data", 1, ErrForeign)
	if err := a.Prepare(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "shop.orders") {
		t.Errorf("it does not say whose: %v", err)
	}
	a.Writes = true
	expect("somebody lets it", 1, nil)

	described, err := a.Describe(t.Context())
	if err != nil || !strings.HasPrefix(described.Version, "PostgreSQL ") {
		t.Errorf("%+v, %v", described, err)
	}
	for range 2 {
		if err := a.Clear(t.Context()); err != nil {
			t.Error(err)
		}
	}
	conn, err := pgx.ConnectConfig(t.Context(), s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var orders, own *string
	err = conn.QueryRow(t.Context(), "SELECT to_regclass('shop.orders')::text, to_regclass('howdah_lab.own')::text").Scan(&orders, &own)
	if err != nil || orders == nil || own != nil {
		t.Errorf("after it was cleared: %v, %v, %v", orders, own, err)
	}

	s.Exec("CREATE SCHEMA howdah_lab")
	expect("a schema of somebody else's", 1, ErrSchema)
	if err := a.Clear(t.Context()); !errors.Is(err, ErrSchema) {
		t.Errorf("clear it: %v", err)
	}
}

// Two runs never measure one database at once. One that ended, or was killed, is in nobody's way.
func TestOneRunMeasures(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{Settings: "idle_session_timeout = '200ms'\n"})
	first, second := given(t, s), given(t, s)
	if err := first.Open(t.Context(), experiment.Wanted{}); err != nil {
		t.Fatal(err)
	}
	var rests bool
	testkit.Eventually(t, time.Minute, func() error { // for longer than a session may rest by default
		const sql = "SELECT count(*) FILTER (WHERE now() - state_change > '500ms') > 0 FROM pg_stat_activity a JOIN pg_locks l USING (pid) WHERE l.locktype = 'advisory'"
		conn, err := pgx.ConnectConfig(t.Context(), s.Config())
		if err == nil {
			defer conn.Close(t.Context())
			err = conn.QueryRow(t.Context(), sql).Scan(&rests)
		}
		if err == nil && !rests {
			err = errors.New("nobody rests")
		}
		return err
	})
	if err := second.Open(t.Context(), experiment.Wanted{}); !errors.Is(err, ErrBusy) {
		t.Errorf("the second run: %v", err)
	}
	if err := errors.Join(second.Close(t.Context()), first.Close(t.Context()), first.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if err := second.Open(t.Context(), experiment.Wanted{}); err != nil {
		t.Errorf("after the first one: %v", err)
	}
	if err := second.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAStandbyIsNoTarget(t *testing.T) {
	t.Parallel()
	a := given(t, pgtest.Start(t, pgtest.Options{Standby: true}))
	if err := a.Prepare(t.Context(), 1); !errors.Is(err, ErrStandby) {
		t.Error(err)
	}
}

// pooled has an address of something before a server that drops what sessions ask for when they begin, as
// poolers do, or refuses it.
func pooled(t *testing.T, s *pgtest.Server, refuses bool) *Address {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go pool(client, s.Addr, refuses)
		}
	}()
	server, err := address.Parse("postgresql://"+s.User+"@"+listener.Addr().String()+"/"+s.Database+"?sslmode=disable", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &Address{Server: server}
}

func pool(client net.Conn, to string, refuses bool) {
	defer client.Close()
	begin, err := pgproto3.NewBackend(client, client).ReceiveStartupMessage()
	asked, ok := begin.(*pgproto3.StartupMessage)
	if err != nil || !ok {
		return
	}
	before := len(asked.Parameters)
	delete(asked.Parameters, "search_path")
	delete(asked.Parameters, "options")
	if refuses && len(asked.Parameters) < before {
		says, _ := (&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter"}).Encode(nil)
		_, _ = client.Write(says)
		return
	}
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	front := pgproto3.NewFrontend(server, server)
	front.Send(asked)
	if front.Flush() != nil {
		return
	}
	go func() { _, _ = io.Copy(server, client); server.Close() }()
	_, _ = io.Copy(client, server)
}

// Where sessions do not get the search path that they ask for, pgbench would drop and make its tables in
// somebody's schema.
func TestSessionsFindTheLabsSchema(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	for what, refuses := range map[string]bool{"dropped": false, "refused": true} {
		if err := pooled(t, s, refuses).Prepare(t.Context(), 1); !errors.Is(err, ErrPath) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := given(t, s).Prepare(t.Context(), 1); err != nil {
		t.Errorf("the server itself: %v", err)
	}
}

// A server that says too much at once is not believed, before it fills the memory.
func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	a := given(t, pgtest.Start(t, pgtest.Options{}))
	for bytes, most := range map[int]bool{15 << 20: true, 17 << 20: false} {
		conn, err := pgx.ConnectConfig(t.Context(), a.Server.In(Schema).Config())
		if err != nil {
			t.Fatal(err)
		}
		var text string
		err = conn.QueryRow(t.Context(), "SELECT repeat('x', $1)", bytes).Scan(&text)
		var long *pgproto3.ExceededMaxBodyLenErr
		if most != (err == nil) || !most && !errors.As(err, &long) || most && len(text) != bytes {
			t.Errorf("%d bytes: %d were read, %v", bytes, len(text), err)
		}
		_ = conn.Close(t.Context()) // it may be of no use any more
	}
}
