package haproxy

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"howdah/internal/edge/endpoint"
	"howdah/internal/testkit"
	"howdah/internal/testkit/golden"
)

// TestConfig checks configurations against golden files, which hold the endpoint and its
// configuration. haproxy checks the configurations, too.
func TestConfig(t *testing.T) {
	golden.Each(t, func(t *testing.T, f *golden.File) {
		words := strings.Fields(f.Input)
		e := endpoint.Endpoint{Listen: netip.MustParseAddrPort(words[0])}
		for _, w := range words[1:] {
			e.Targets = append(e.Targets, netip.MustParseAddrPort(w))
		}
		got := render(e, "/run/howdah/x.sock", os.DevNull, 5000)
		f.Check(got)
		if err := run(t.Context(), testkit.NeedProgram(t, "haproxy"), got, "-c", "-f", "/dev/stdin"); err != nil {
			t.Error(err)
		}
	})
}

func TestFiles(t *testing.T) {
	listen := netip.MustParseAddrPort("127.255.255.255:65535")
	f := filesOf(strings.Repeat("/d", maxDir/2), listen)
	const most = 107 - len(".4194304.tmp") // haproxy makes a socket under another name first
	if len(f.socket()) > most {
		t.Errorf("the path of a socket may have %d bytes", len(f.socket()))
	}
	if got, err := listenOf(f.config()); err != nil || got != listen {
		t.Errorf("from %s: %v, %v", f.config(), got, err)
	}
	if got, err := listenOf("/d/other.cfg"); err == nil {
		t.Errorf("from another file: %v", got)
	}
}

func TestAlerts(t *testing.T) {
	const complaint = "[NOTICE]   (1) : version\n[WARNING]  (1) : missing timeouts\n[ALERT]    (1) : cannot bind\n[ALERT]    (1) : fatal\n"
	if got := alerts(complaint); got != "(1) : cannot bind; (1) : fatal" {
		t.Errorf("alerts: %q", got)
	}
}
