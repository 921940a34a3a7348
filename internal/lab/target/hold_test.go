package target

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
	"howdah/internal/testkit/pgtest"
)

// behind has an address that leads to one server, and later to another one.
func behind(t *testing.T, first *pgtest.Server) (a *Address, lead func(to *pgtest.Server)) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var to atomic.Pointer[pgtest.Server]
	to.Store(first)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := new(net.Dialer).DialContext(context.Background(), "tcp", to.Load().Addr)
			if err != nil {
				client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client); server.Close() }()
			go func() { _, _ = io.Copy(client, server); client.Close() }()
		}
	}()
	server, err := address.Parse("postgresql://"+first.User+"@"+listener.Addr().String()+"/"+first.Database+"?sslmode=disable", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &Address{Server: server}, func(s *pgtest.Server) { to.Store(s) }
}

// An address may lead to another server after a while. What is measured there is another thing, and its data
// may be somebody's.
func TestAnotherServerBehindAnAddress(t *testing.T) {
	t.Parallel()
	first, second := pgtest.Start(t, pgtest.Options{}), pgtest.Start(t, pgtest.Options{})
	a, lead := behind(t, first)
	become := func() error { _, err := a.Become(t.Context(), experiment.Wanted{}); return err }
	if err := a.Open(t.Context(), experiment.Wanted{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(context.Background()) })
	if err := become(); err != nil {
		t.Error(err)
	}
	lead(second)
	if err := become(); !errors.Is(err, ErrOther) {
		t.Errorf("the other one: %v", err)
	}
	lead(first)
	if err := become(); err != nil {
		t.Errorf("the first one again: %v", err)
	}
	// So does another database of the same name on the same server.
	conn, err := pgx.ConnectConfig(t.Context(), given(t, first).Server.In("x").Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	one, err := systemOf(t.Context(), conn)
	if err != nil || one != a.system {
		t.Errorf("%s, not %s, %v", one, a.system, err)
	}
}

// A session that was cut has lost its lock. It is taken again, also if the server still believes in the
// session from before.
func TestTheLockIsTakenAgain(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	a, other := given(t, s), given(t, s)
	if err := a.Open(t.Context(), experiment.Wanted{}); err != nil {
		t.Fatal(err)
	}
	for _, cut := range []func(){
		func() { s.Exec("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'") },
		func() { // only we know of it: the server's half of the connection lives
			live := a.held.conn
			dead, err := pgx.ConnectConfig(t.Context(), a.Server.Config())
			if err == nil {
				err = dead.Close(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = live.Close(context.Background()) })
			a.held.conn = dead
		},
	} {
		cut()
		if _, err := a.Become(t.Context(), experiment.Wanted{}); err != nil {
			t.Fatal(err)
		}
		if err := other.Open(t.Context(), experiment.Wanted{}); !errors.Is(err, ErrBusy) {
			t.Errorf("another run: %v", err)
		}
		if err := other.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := a.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
