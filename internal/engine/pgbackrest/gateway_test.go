package pgbackrest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/engine/backup/conformance"
	"howdah/internal/identity/certs"
	"howdah/internal/repository/gateway"
	"howdah/internal/repository/store"
	"howdah/internal/testkit"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/hometest"
	"howdah/internal/testkit/pgtest"
)

// otherKey opens what KEY does, to another host.
const otherKey = "OTHER"

// Members reach repositories only through a gateway, with TLS.
func TestConformanceThroughTheGateway(t *testing.T) {
	t.Parallel()
	engines := installed(t)
	for n, engine := range engines {
		t.Run(engine.Version.String(), func(t *testing.T) {
			t.Parallel()
			// What is left out here, TestConformance does with it.
			brief := engine.Version == Oldest
			conformance.Run(t, conformance.Config{Engine: engine, Other: engines[1-n], Brief: brief, Open: throughGateway, Copies: true})
		})
	}
}

func throughGateway(t testing.TB, s *pgtest.Server, name, database string) conformance.Repository {
	t.Helper()
	return throughHandler(t, s, name, database, func(h http.Handler) http.Handler { return h })
}

// throughHandler has requests go through what around makes of the gateway.
func throughHandler(t testing.TB, s *pgtest.Server, name, database string, around func(http.Handler) http.Handler) conformance.Repository {
	t.Helper()
	dir := hometest.Dir(t)
	root := filepath.Join(dir, name)
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	open := func(id string) store.Store {
		d, err := store.OpenDirectory(root, id)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if err := store.WriteMarker(t.Context(), open(""), store.Marker{ID: "id-" + name, Home: "home", Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	var written atomic.Int64
	g := gateway.New(gateway.Config{Log: slog.New(slog.DiscardHandler), Written: func(gateway.Object) { written.Add(1) }})
	g.SetRepository(name, open("id-"+name))
	for _, key := range []string{"KEY", otherKey} {
		g.SetKey(key, "a secret of "+name, []gateway.Grant{{Repository: name, Database: database}})
	}
	t.Cleanup(func() {
		if written.Load() == 0 {
			t.Error("the gateway told of no object")
		}
	})
	ca := filepath.Join(dir, "ca.crt")
	server := g.Server()
	server.Handler = around(server.Handler)
	addr := serve(t, server, ca)
	return conformance.Repository{
		Access: backup.Access{
			Name: name, Endpoint: "https://" + addr, Bucket: name, CAFile: ca, Key: "KEY", Secret: "a secret of " + name,
			Path: "/" + database, Passphrase: "a passphrase of " + name,
		},
		Remove:  remover(root),
		Spoil:   spoiler(root),
		Away:    mover(root),
		Objects: open("id-" + name),
	}
}

// serve serves with a certificate that has the address as an IP and, for 2.45, as a name.
func serve(t testing.TB, server *http.Server, ca string) (addr string) {
	t.Helper()
	authority, err := certs.New("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(certs.Subject{CommonName: "agent:a", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ca, pair.CAPEM, 0o644); err != nil { //nolint:gosec // the server's user reads it
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", testkit.FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		_ = server.Close() // what is under way ends with it
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// A connection that breaks in the middle of a file, however often, is no damage.
func TestABrokenConnectionIsNoDamage(t *testing.T) {
	depth.Deep(t)
	t.Parallel()
	var breaks atomic.Bool
	breaking := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if breaks.Load() && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/bundle/") {
				w = &broken{ResponseWriter: w, left: 1000}
			}
			next.ServeHTTP(w, r)
		})
	}
	open := func(t testing.TB, s *pgtest.Server, name, database string) conformance.Repository {
		r := throughHandler(t, s, name, database, breaking)
		r.Away = func(testing.TB) func() {
			breaks.Store(true)
			return func() { breaks.Store(false) }
		}
		return r
	}
	conformance.RunAway(t, conformance.Config{Engine: installed(t)[0], Open: open})
}

// broken is an answer that breaks off.
type broken struct {
	http.ResponseWriter
	left int
}

func (b *broken) Write(p []byte) (int, error) {
	if len(p) > b.left {
		p = p[:b.left]
	}
	n, err := b.ResponseWriter.Write(p)
	if b.left -= n; b.left <= 0 {
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// pgBackRest writes four files when it prepares a repository, and may be killed before each.
func TestAPreparationThatIsKilledIsDoneLater(t *testing.T) {
	t.Parallel()
	for _, engine := range installed(t) {
		for _, after := range depth.Some(t, 1, []int{0, 1, 2, 3}) {
			t.Run(fmt.Sprintf("%s, after %d", engine.Version, after), func(t *testing.T) {
				t.Parallel()
				var g gate
				open := func(t testing.TB, s *pgtest.Server, name, database string) conformance.Repository {
					return throughHandler(t, s, name, database, g.around)
				}
				conformance.RunKilled(t, conformance.Config{Engine: engine, Open: open}, g.hold, after)
			})
		}
	}
}

// A host that was frozen while it prepared a repository spoils no backup of the next primary.
func TestAFrozenPreparationReplacesNothing(t *testing.T) {
	t.Parallel()
	for _, engine := range depth.Some(t, 1, installed(t)) {
		t.Run(engine.Version.String(), func(t *testing.T) {
			t.Parallel()
			var g gate
			open := func(t testing.TB, s *pgtest.Server, name, database string) conformance.Repository {
				return throughHandler(t, s, name, database, g.around)
			}
			conformance.RunFrozen(t, conformance.Config{Engine: engine, Open: open}, g.hold, func(a backup.Access) backup.Access {
				a.Key = otherKey
				return a
			})
		})
	}
}

// gate holds one write, and lets all others through.
type gate struct {
	mu   sync.Mutex
	left int
	held chan struct{}
	end  chan bool
}

func (g *gate) hold(after int) (<-chan struct{}, func(bool)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left, g.held, g.end = after, make(chan struct{}), make(chan bool, 1)
	return g.held, func(through bool) { g.end <- through }
}

func (g *gate) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && g.holds() && !<-g.end {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

// holds reports whether this write is held.
func (g *gate) holds() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held == nil {
		return false
	}
	if g.left--; g.left == -1 {
		close(g.held)
	}
	return g.left == -1
}
