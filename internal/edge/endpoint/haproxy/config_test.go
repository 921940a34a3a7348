package haproxy

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/edge/endpoint"
	"howdah/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestConfig checks configurations against golden files, which hold the endpoint and its
// configuration. haproxy checks the configurations, too.
func TestConfig(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, want, _ := strings.Cut(string(content), "----\n")
			words := strings.Fields(input)
			e := endpoint.Endpoint{Listen: netip.MustParseAddrPort(words[0])}
			for _, w := range words[1:] {
				e.Targets = append(e.Targets, netip.MustParseAddrPort(w))
			}
			got := render(e, "/run/howdah/x.sock", os.DevNull, 5000)
			if *update {
				if err := os.WriteFile(file, []byte(input+"----\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if err := run(t.Context(), testkit.NeedProgram(t, "haproxy"), got, "-c", "-f", "/dev/stdin"); err != nil {
				t.Error(err)
			}
		})
	}
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
