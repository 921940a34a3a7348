// Package hometest makes homes for tests: with a real authority, real tokens, and an embedded etcd
// that serves clients by mutual TLS. The test adds what else it needs of a control plane.
package hometest

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
	"howdah/internal/testkit"
)

// Home is a home with a running etcd. Everything is gone when the test ends.
type Home struct {
	*home.Home
	CA     *certs.CA
	Store  *state.Store
	Etcd   []string // client URLs
	Member *etcd.Member
	// StopEtcd ends etcd. Its data stay. It is idempotent.
	StopEtcd func()
}

// New makes a home below a directory that every user can reach.
func New(t testing.TB) *Home {
	t.Helper()
	return NewSmall(t, 0)
}

// NewSmall makes a home whose etcd takes no more writes once it is as large as quota, in bytes.
func NewSmall(t testing.TB, quota int64) *Home {
	t.Helper()
	h, err := home.Ensure(filepath.Join(Dir(t), "home"), home.Options{Listen: testkit.FreeAddr(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Purge(); err != nil {
			t.Error(err)
		}
	})
	ca, err := h.CA()
	if err != nil {
		t.Fatal(err)
	}
	client := testkit.FreeAddr(t)
	m, err := etcd.Start(t.Context(), etcd.Config{
		Name: "s1", Dir: h.EtcdDir(), CertDir: h.CertDir(), ClientAddr: client, PeerAddr: testkit.FreeAddr(t),
		Tick: 10 * time.Millisecond, Quota: quota, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return &Home{
		Home: h, CA: ca, Member: m, Store: &state.Store{Client: m.Client}, Etcd: []string{"https://" + client}, StopEtcd: m.Close,
	}
}

// Dir returns an empty directory that every user can reach. Not every user can reach t.TempDir.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "howdah-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Issue makes a certificate with this name. Servers on loopback may show it, too.
func (h *Home) Issue(t testing.TB, name string) certs.Pair {
	t.Helper()
	pair, err := h.CA.Issue(certs.Subject{CommonName: name, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	return pair
}
