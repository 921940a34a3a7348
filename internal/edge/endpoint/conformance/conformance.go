// Package conformance is the suite that every endpoint.Forwarder passes, with the
// servers, clients and child processes it takes: real TCP, real processes, no
// fakes. Tests of a driver call Main from TestMain and Run from a test.
package conformance

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"howdah/internal/edge/endpoint"
	"howdah/internal/testkit/patience"
)

// Driver is what the suite must know of an implementation.
type Driver struct {
	// Open makes a Forwarder. The suite also calls it in a child process.
	Open func(ctx context.Context, home, runDir string) (endpoint.Forwarder, error)
	// Break destroys what the Forwarder made, behind its back, as an administrator's command or a
	// crash might.
	Break func(t *testing.T, home, runDir string)
	// SessionsSurviveBreak says whether open sessions go on once the damage is mended.
	SessionsSurviveBreak bool
	// Traces returns everything that drivers of this kind have on the machine for the home and its
	// directory, or "".
	Traces func(t *testing.T, home, runDir string) string
}

// CutTime bounds the time from the call of Cut until the last client has seen its reset. It is ten
// times what the specification promises and make bench-ha measures, because a test shares its
// machine with others. A client that is not cut hangs for minutes.
var CutTime = patience.For(time.Second)

// bench is one test's home: a Forwarder that is removed when the test ends.
type bench struct {
	*testing.T
	Driver
	ctx  context.Context
	home string
	dir  string
	fw   endpoint.Forwarder
}

// newBench opens a home of its own for a test.
func newBench(t *testing.T, d Driver) *bench {
	t.Helper()
	b := &bench{T: t, Driver: d, ctx: t.Context(), home: randomHome(), dir: shortDir(t)}
	b.fw = b.open()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := b.fw.Remove(ctx); err != nil {
			t.Errorf("clean up: %v", err)
		}
		if left := d.Traces(t, b.home, b.dir); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
	})
	return b
}

func (b *bench) open() endpoint.Forwarder {
	b.Helper()
	fw, err := b.Open(b.ctx, b.home, b.dir)
	if err != nil {
		b.Fatal(err)
	}
	return fw
}

// sync makes endpoints real and returns what was mended.
func (b *bench) sync(all ...endpoint.Endpoint) []string {
	b.Helper()
	mended, err := b.fw.Sync(b.ctx, all)
	if err != nil {
		b.Fatalf("sync: %v", err)
	}
	return mended
}

func (b *bench) point(listen netip.AddrPort, targets ...netip.AddrPort) {
	b.Helper()
	if err := b.fw.Point(b.ctx, at(listen, targets...)); err != nil {
		b.Fatalf("point: %v", err)
	}
}

// cut resets the sessions and checks how many they were.
func (b *bench) cut(listen, target netip.AddrPort, want int) {
	b.Helper()
	got, err := b.fw.Cut(b.ctx, listen, target)
	if err != nil || got != want {
		b.Fatalf("cut %s from %s: %d sessions, error %v; want %d", listen, target, got, err, want)
	}
}

func at(listen netip.AddrPort, targets ...netip.AddrPort) endpoint.Endpoint {
	return endpoint.Endpoint{ID: listen.String(), Listen: listen, Targets: targets}
}

// SomeListen returns an address that nobody else uses. The port is always the same, as it is for
// databases.
func SomeListen() netip.AddrPort { return netip.AddrPortFrom(SomeAddr(), 5432) }

// given has each address that SomeAddr returned.
var given sync.Map

// SomeAddr returns an address that it has not returned before. It leaves out the first and last
// networks, which people use by hand.
func SomeAddr() netip.Addr {
	b := func() byte { return byte(16 + rand.IntN(224)) }
	for {
		addr := netip.AddrFrom4([4]byte{127, b(), b(), b()})
		if _, used := given.LoadOrStore(addr, true); !used {
			return addr
		}
	}
}

func randomHome() string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	home := make([]byte, 8)
	for i := range home {
		home[i] = letters[rand.IntN(len(letters))]
	}
	return string(home)
}

// shortDir returns a directory whose path leaves room for the name of a socket. t.TempDir with a
// long test name does not.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ep")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "run")
}
