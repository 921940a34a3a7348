// Package e2e takes the journeys of users through a Howdah that was started as
// users start it: with boto3, with the AWS CLI, and with the Go SDK. Journeys run
// at the same time, each in a region of its own: they do not see each other.
package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/testkit"
)

const (
	upTimeout      = 2 * time.Minute
	journeyTimeout = 4 * time.Minute
)

// journeys of api_journey.py, the longest first.
var journeys = []string{"cluster", "instance", "replica", "multi-az-cluster", "deleting", "refusals"}

func TestJourneys(t *testing.T) {
	python, aws := program(t, "HOWDAH_TEST_PYTHON", "python3"), program(t, "HOWDAH_TEST_AWS", "aws")
	testkit.NeedProgram(t, "psql")
	needModule(t, python, "boto3")
	h := start(t)
	t.Run("all", func(t *testing.T) {
		for n, name := range journeys {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				h.run(t, n, "", python, "api_journey.py", name)
			})
		}
		t.Run("cli", func(t *testing.T) {
			t.Parallel()
			h.run(t, len(journeys), "HOWDAH_TEST_AWS="+aws, "./cli_journey.sh")
		})
		t.Run("go", func(t *testing.T) {
			t.Parallel()
			goJourney(t, h.in(len(journeys)+1))
		})
	})
}

// program is that of an environment variable, or the one in the PATH.
func program(t *testing.T, variable, name string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	return testkit.NeedProgram(t, name)
}

func needModule(t *testing.T, python, module string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := exec.CommandContext(ctx, python, "-c", "import "+module).Run(); err != nil {
		t.Skipf("needs the module %s of %s: install it, or set HOWDAH_TEST_PYTHON", module, python)
	}
}

// howdah is a home that runs.
type howdah struct {
	binary, home string
	env          map[string]string // what `howdah env` prints
}

// start brings a home up that is gone when the test ends; its logs are shown when
// the test fails.
func start(t *testing.T) *howdah {
	t.Helper()
	dir, err := os.MkdirTemp("", "howdah-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	// The user that PostgreSQL runs as must be able to pass.
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h := &howdah{binary: filepath.Join(dir, "howdah"), home: filepath.Join(dir, "home"), env: map[string]string{}}
	must(t, upTimeout, "go", "build", "-o", h.binary, "howdah/cmd/howdah")
	t.Cleanup(func() {
		if t.Failed() {
			showLogs(t, h.home)
		}
		must(t, upTimeout, h.binary, "down", "--purge", "--home", h.home)
	})
	must(t, upTimeout, h.binary, "up", "--home", h.home, "--detach", "--disposable", "--credential", "AKID:secret:123456789012")
	lines := bufio.NewScanner(strings.NewReader(must(t, upTimeout, h.binary, "env", "--home", h.home)))
	for lines.Scan() {
		if name, value, ok := strings.Cut(strings.TrimPrefix(lines.Text(), "export "), "="); ok {
			h.env[name] = strings.Trim(value, "'")
		}
	}
	return h
}

// must runs a command that has to succeed, and answers what it printed.
func must(t *testing.T, within time.Duration, name string, args ...string) string {
	t.Helper()
	// Not the test's context: that has ended when a test cleans up.
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// in is the environment of a journey: it has a region of its own.
func (h *howdah) in(n int) map[string]string {
	env := map[string]string{}
	for name, value := range h.env {
		env[name] = value
	}
	env["AWS_REGION"] = fmt.Sprintf("test-north-%d", n+1)
	env["AWS_DEFAULT_REGION"] = env["AWS_REGION"]
	return env
}

// run runs a journey, and shows its steps when it fails.
func (h *howdah) run(t *testing.T, n int, more, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), journeyTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	// A journey that is too late still deletes what it created.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 30 * time.Second
	command.Env = append(os.Environ(), more)
	for name, value := range h.in(n) {
		command.Env = append(command.Env, name+"="+value)
	}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
		return
	}
	t.Logf("%s", out)
}

// showLogs prints the end of every log of a home.
func showLogs(t *testing.T, home string) {
	for _, pattern := range []string{"log/*.log", "hosts/*/members/*/log/patroni.log"} {
		files, err := filepath.Glob(filepath.Join(home, pattern))
		if err != nil {
			continue
		}
		for _, f := range files {
			if out, err := exec.Command("tail", "-n", "40", f).Output(); err == nil {
				t.Logf("---- %s\n%s", f, out)
			}
		}
	}
}
