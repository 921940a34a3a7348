package nft

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/endpoint/conformance"
	"howdah/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(conformance.Isolate(m, open)) }

var pool = netip.MustParsePrefix("10.99.0.0/16")

func config(home, runDir string) endpoint.Config {
	return endpoint.Config{Home: home, RunDir: runDir, Pools: []netip.Prefix{pool}}
}

func open(ctx context.Context, home, runDir string) (endpoint.Forwarder, error) {
	return New(ctx, config(home, runDir))
}

func TestConformance(t *testing.T) {
	testkit.NeedRoot(t)
	testkit.NeedProgram(t, "nft")
	// If Run mends something at once, it heard of it.
	before := tick
	tick = time.Hour
	t.Cleanup(func() { tick = before })
	conformance.Run(t, conformance.Driver{
		Open:                 open,
		Break:                func(t *testing.T, _, _ string) { nft(t, "flush", "ruleset") },
		SessionsSurviveBreak: true,
		Traces: func(t *testing.T, home, _ string) string {
			if rules := nft(t, "list", "ruleset"); strings.Contains(rules, home) {
				return rules
			}
			return ""
		},
	})
}

func nft(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command(testkit.NeedProgram(t, "nft"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("nft %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
