// Package etcdtest gives tests a real etcd of their own, on loopback. It is gone when the test
// ends.
package etcdtest

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
	"howdah/internal/testkit"
)

// Store starts an etcd with one member.
func Store(t testing.TB) *state.Store {
	t.Helper()
	ca, err := certs.New("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(certs.Subject{CommonName: "s1", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := pair.Write(dir); err != nil {
		t.Fatal(err)
	}
	m, err := etcd.Start(t.Context(), etcd.Config{
		Name: "s1", Dir: t.TempDir(), CertDir: dir, ClientAddr: testkit.FreeAddr(t), PeerAddr: testkit.FreeAddr(t),
		Tick: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return &state.Store{Client: m.Client}
}

// Cache mirrors the state and Patroni's keys until the test ends. prepare, if not nil, is called
// before the cache runs.
func Cache(t testing.TB, s *state.Store, prepare func(*state.Cache)) *state.Cache {
	t.Helper()
	c := state.NewCache(s.Client, slog.New(slog.DiscardHandler), state.Root, patroni.Namespace)
	if prepare != nil {
		prepare(c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Errorf("run the cache: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	if err := c.Loaded(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// Put writes values. If there is a cache, it waits until the cache has them.
func Put(t testing.TB, s *state.Store, c *state.Cache, ops ...state.Op) {
	t.Helper()
	revision, err := s.Commit(t.Context(), ops...)
	if err == nil && c != nil {
		err = c.WaitRevision(t.Context(), revision)
	}
	if err != nil {
		t.Fatal(err)
	}
}
