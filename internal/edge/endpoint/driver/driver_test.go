package driver

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/endpoint/conformance"
	"howdah/internal/edge/endpoint/haproxy"
	"howdah/internal/edge/endpoint/nft"
	"howdah/internal/testkit"
)

func TestMain(m *testing.M) {
	os.Exit(conformance.Isolate(m, func(ctx context.Context, home, runDir string) (endpoint.Forwarder, error) {
		fw, _, err := Open(ctx, endpoint.Config{Home: home, RunDir: runDir})
		return fw, err
	}))
}

func configFor(t testing.TB, driver string) endpoint.Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "ep")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return endpoint.Config{Home: "test", RunDir: filepath.Join(dir, "run"), Driver: driver}
}

// opens makes one endpoint real with the driver that Open picks.
func opens(t *testing.T, forced, want string, visible bool) {
	t.Helper()
	fw, info, err := Open(t.Context(), configFor(t, forced))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fw.Remove(context.Background()); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	if info.Driver != want || info.ClientAddressVisible != visible || info.Cost == "" {
		t.Errorf("opened %+v, want %s", info, want)
	}
	listen, server := conformance.SomeListen(), conformance.NewServer(t)
	if _, err := fw.Sync(t.Context(), []endpoint.Endpoint{{ID: "test", Listen: listen, Targets: []netip.AddrPort{server}}}); err != nil {
		t.Fatal(err)
	}
	conformance.Join(t, listen, server)
}

func TestAsRoot(t *testing.T) {
	testkit.NeedRoot(t)
	testkit.NeedProgram(t, "nft")
	testkit.NeedProgram(t, "haproxy")
	t.Run("picked", func(t *testing.T) { opens(t, "", nft.Name, true) })
	t.Run("nft", func(t *testing.T) { opens(t, nft.Name, nft.Name, true) })
	t.Run("haproxy", func(t *testing.T) { opens(t, haproxy.Name, haproxy.Name, false) })
}

func TestAsNobody(t *testing.T) {
	testkit.NeedProgram(t, "nft")
	testkit.NeedProgram(t, "haproxy")
	if conformance.AsNobody(t) {
		return
	}
	t.Run("picked", func(t *testing.T) { opens(t, "", haproxy.Name, false) })
	if _, _, err := Open(t.Context(), configFor(t, nft.Name)); !errors.Is(err, endpoint.ErrUnavailable) {
		t.Errorf("nft as nobody: %v", err)
	}
}

// What a driver made that Open would not pick is removed, too.
func TestRemoveOfAnyDriver(t *testing.T) {
	testkit.NeedRoot(t)
	testkit.NeedProgram(t, "nft")
	testkit.NeedProgram(t, "haproxy")
	for _, name := range []string{nft.Name, haproxy.Name} {
		cfg := configFor(t, name)
		fw, _, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		listen, server := conformance.SomeListen(), conformance.NewServer(t)
		if _, err := fw.Sync(t.Context(), []endpoint.Endpoint{{ID: "test", Listen: listen, Targets: []netip.AddrPort{server}}}); err != nil {
			t.Fatal(err)
		}
		conformance.Join(t, listen, server)
		for range 2 { // the second time there is nothing
			if err := Remove(t.Context(), endpoint.Config{Home: cfg.Home, RunDir: cfg.RunDir}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if c, err := conformance.Dial(listen); err == nil {
			c.Close()
			t.Errorf("%s: the endpoint is still there", name)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, cfg := range map[string]endpoint.Config{
		"unknown driver": {Home: "test", RunDir: "/nowhere", Driver: "ipvs"},
		"bad home":       {Home: "not/a/home", RunDir: "/nowhere"},
		"bad directory":  {Home: "test", RunDir: "relative", Driver: haproxy.Name},
	} {
		if _, _, err := Open(t.Context(), cfg); !errors.Is(err, endpoint.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
