package haproxy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/endpoint/conformance"
	"howdah/internal/testkit"
)

func TestMain(m *testing.M) {
	conformance.Main(open)
	os.Exit(m.Run())
}

func open(ctx context.Context, home, runDir string) (endpoint.Forwarder, error) {
	return New(ctx, endpoint.Config{Home: home, RunDir: runDir})
}

// TestConformance runs the suite as an ordinary user.
func TestConformance(t *testing.T) {
	testkit.NeedProgram(t, "haproxy")
	if conformance.AsNobody(t) {
		return
	}
	conformance.Run(t, conformance.Driver{
		Open:   open,
		Break:  killAll,
		Traces: traces,
	})
}

// killAll kills the proxies of one home.
func killAll(t *testing.T, _, runDir string) {
	t.Helper()
	found, err := running(runDir)
	if err != nil {
		t.Fatal(err)
	}
	for config, pids := range found {
		for _, pid := range pids {
			p, err := hold(pid, config)
			if err != nil || p == nil {
				t.Fatalf("hold %d: %v", pid, err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if !p.ended(stopTime) {
				t.Fatalf("%d outlived SIGKILL", pid)
			}
			syscall.Close(p.fd)
		}
	}
}

// traces returns the proxies and files of one home.
func traces(t *testing.T, _, runDir string) string {
	t.Helper()
	found, err := running(runDir)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for config, pids := range found {
		lines = append(lines, fmt.Sprint(config, pids))
	}
	err = filepath.WalkDir(runDir, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			lines = append(lines, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
