// Package testserver runs a real control plane inside a test: etcd, reconcile, judge and API, at a
// home of its own. Only the hosts pretend. They report what real hosts would, and send heartbeats,
// but run nothing. So everything that a client sees is the true answer of the true server.
package testserver

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/control/plan"
	"howdah/internal/control/serve"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

// detection is how long a pretended host may be silent before it counts as lost, and replaceAfter
// how long it may be lost before others have its members. On a busy machine any host is silent for
// a second, and a test that loses none must not find one lost.
const (
	detection    = 20 * time.Second
	replaceAfter = time.Minute
)

// Losing has hosts be lost soon, for tests that lose some.
var Losing = Options{Detection: 500 * time.Millisecond, ReplaceAfter: time.Second}

// Version of the control plane and of the hosts.
const Version = "test"

// Options say what a server is like. The zero value has hosts in three zones.
type Options struct {
	Permanent bool // not disposable
	NoHosts   bool
	// Detection, by patience.For, and ReplaceAfter have defaults for tests that lose no hosts. 0
	// means the default.
	Detection, ReplaceAfter time.Duration
}

// Server is a running control plane with pretended hosts.
type Server struct {
	Home   *home.Home
	Store  *state.Store
	Client *client.Client

	hosts *pretend
	pair  certs.Pair
}

// Zones are the zones of the hosts. The host of zone a is called zone-a.
var Zones = []string{"a", "b", "c"}

// Start starts a server. It ends with the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{Home: newHome(t, o)}
	var err error
	if s.Client, err = client.FromHome(s.Home); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	running.Go(func() {
		err := serve.Run(ctx, serve.Config{
			Home: s.Home, Name: "s1", Address: s.Home.Address(0, 1), Pool: s.Home.EndpointPool(), Detection: patience.For(cmp.Or(o.Detection, detection)),
			Policy: plan.Policy{Overcommit: true, ReplaceAfter: cmp.Or(o.ReplaceAfter, replaceAfter)}, Version: Version, Log: quiet(),
		})
		if err != nil && ctx.Err() == nil {
			t.Errorf("the control plane ended: %v", err)
		}
	})
	testkit.Eventually(t, 30*time.Second, func() error { _, err := s.status(); return err })
	s.connect(t)
	s.hosts = newPretend(s)
	if !o.NoHosts {
		for i, zone := range Zones {
			s.hosts.add(t, "zone-"+zone, zone, s.Home.Address(1, i+1))
		}
	}
	if !o.NoHosts {
		running.Go(func() { s.hosts.run(ctx) })
	}
	testkit.Eventually(t, 20*time.Second, s.allAlive)
	return s
}

// newHome makes a home that has a part of the loopback network to itself as long as the test runs.
func newHome(t testing.TB, o Options) *home.Home {
	t.Helper()
	for n := 0; ; n++ {
		dir := filepath.Join(t.TempDir(), "home")
		h, err := home.Ensure(dir, home.Options{
			Disposable: !o.Permanent, Credential: &home.Credential{AccessKey: "TESTKEY", Secret: Secret, Account: "123456789012"},
		})
		if err != nil {
			t.Fatal(err)
		}
		release, err := home.Claim(h.Network)
		if errors.Is(err, home.ErrLocked) && n < 10 {
			continue // another test was quicker
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(release)
		return h
	}
}

// Secret is the secret of the access key. It must never be seen anywhere.
const Secret = "verysecretaccesskey"

func quiet() *slog.Logger {
	out := io.Discard
	if os.Getenv("HOWDAH_DEBUG") != "" {
		out = os.Stderr
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (s *Server) connect(t testing.TB) {
	t.Helper()
	var err error
	if s.pair, err = certs.Load(s.Home.CertDir()); err != nil {
		t.Fatal(err)
	}
	etcdClient, err := etcd.Dial(context.Background(), []string{"https://" + s.Home.Address(0, 1) + ":2379"}, s.pair)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { etcdClient.Close() })
	s.Store = &state.Store{Client: etcdClient}
}

func (s *Server) status() (admin.Status, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var out admin.Status
	return out, s.Client.Admin(ctx, admin.VerbStatus, admin.Nothing{}, &out)
}

func (s *Server) allAlive() error {
	status, err := s.status()
	if err != nil {
		return err
	}
	for _, h := range status.Hosts {
		if h.State != admin.HostAlive {
			return errors.New(h.Name + " is " + h.State)
		}
	}
	if len(status.Hosts) != s.hosts.number() {
		return errors.New("not all hosts are there")
	}
	return nil
}

// Lose makes a host fall silent for good. What it reported stays.
func (s *Server) Lose(host string) { s.hosts.setLost(host, true) }

// Return makes a lost host come back as it was.
func (s *Server) Return(host string) { s.hosts.setLost(host, false) }

// Hold keeps hosts from doing anything that they are assigned, or lets them go on. A test can then
// look at what is going on.
func (s *Server) Hold(held bool) { s.hosts.setHeld(held) }

// Break makes a member report a problem, or none.
func (s *Server) Break(member, problem, detail string) { s.hosts.setProblem(member, problem, detail) }
