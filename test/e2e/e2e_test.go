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

	"howdah/internal/identity/home"
	"howdah/internal/testkit"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/patience"
	"howdah/test/script"
)

const (
	upTimeout      = 2 * time.Minute
	journeyTimeout = 4 * time.Minute
)

// journeys of api_journey.py, the longest first.
var journeys = []string{"cluster", "instance", "replica", "multi-az-cluster", "deleting", "refusals", "parameter-groups", "cluster-parameter-groups"}

func TestJourneys(t *testing.T) {
	t.Parallel()
	python, aws, aws2 := program(t, "HOWDAH_TEST_PYTHON", "python3"), program(t, "HOWDAH_TEST_AWS", "aws"), program(t, "HOWDAH_TEST_AWS2", "aws")
	testkit.NeedProgram(t, "psql")
	testkit.NeedProgram(t, "pgbench")
	testkit.NeedProgram(t, "pg_dumpall")
	needModule(t, python, "boto3")
	needCLI(t, aws, "aws-cli/1.")
	needCLI(t, aws2, "aws-cli/2.")
	h := start(t)
	h.checked(t)
	t.Run("all", func(t *testing.T) {
		h.walks(t, python, aws, aws2)
		regions := 0
		// journey runs one journey beside the others, in the next region that nobody has yet.
		journey := func(name string, take func(t *testing.T, region int)) {
			region := regions
			regions++
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				take(t, region)
			})
		}
		script := func(name, extra, program string, arguments ...string) {
			journey(name, func(t *testing.T, region int) { h.run(t, region, extra, program, arguments...) })
		}
		for _, name := range journeys {
			script(name, "", python, "api_journey.py", name)
		}
		script("cli", "HOWDAH_TEST_AWS="+aws, "./cli_journey.sh")
		script("notifications", "", python, "notify_journey.py")
		script("networks", "HOWDAH_TEST_HOME="+h.home, python, "network_journey.py")
		script("public", "HOWDAH_TEST_HOME="+h.home, python, "public_journey.py")
		journey("coming", func(t *testing.T, region int) { comingJourney(t, h.in(region)) })
		journey("go", func(t *testing.T, region int) { goJourney(t, h.in(region)) })
		script("logs", "HOWDAH_TEST_BINARY="+h.binary, python, "logs_journey.py")
		script("tokens", "HOWDAH_TEST_BINARY="+h.binary, python, "tokens_journey.py")
		script("secrets", "", python, "secrets_journey.py")
		script("backups", "HOWDAH_TEST_AWS="+aws, python, "backup_journey.py")
		script("warm-cache", "", python, "warm_journey.py")
		script("access", "HOWDAH_TEST_BINARY="+h.binary, python, "access_journey.py")
		script("certificates", "HOWDAH_TEST_BINARY="+h.binary, python, "certificates_journey.py")
	})
}

// walks runs the walks over every action, by all clients.
func (h *howdah) walks(t *testing.T, python, aws, aws2 string) {
	const first = 100 // of their regions
	for n, name := range depth.Some(t, 2, script.Clients) {
		t.Run("actions-"+name, func(t *testing.T) {
			t.Parallel()
			env := h.in(first + n)
			var client script.Client
			switch name {
			case script.Boto3:
				client = newBoto3(t, env, python)
			case script.CLI1:
				client = newCommandLine(t, env, aws)
			case script.CLI2:
				client = newCommandLine(t, env, aws2)
			case script.GoSDK:
				client = newGoSDK(t, env)
			}
			walkActions(t, env, name, client)
		})
	}
}

// program returns the program that an environment variable names, or the one in the PATH.
func program(t *testing.T, variable, name string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	return testkit.NeedProgram(t, name)
}

func needModule(t *testing.T, python, module string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.For(30*time.Second))
	defer cancel()
	if err := exec.CommandContext(ctx, python, "-c", "import "+module).Run(); err != nil {
		testkit.Missing(t, fmt.Sprintf("the module %s of %s: install it, or set HOWDAH_TEST_PYTHON", module, python))
	}
}

func needCLI(t *testing.T, program, version string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.For(30*time.Second))
	defer cancel()
	if out, err := exec.CommandContext(ctx, program, "--version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), version) {
		testkit.Missing(t, fmt.Sprintf("%s to be %s*, it is %q: set HOWDAH_TEST_AWS and HOWDAH_TEST_AWS2", program, version, out))
	}
}

// howdah is a home that runs.
type howdah struct {
	binary, home string
	env          map[string]string // what `howdah env` prints
}

// start starts a home that is gone when the test ends. If the test fails, it shows the home's logs.
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
	h := &howdah{binary: binary, home: filepath.Join(dir, "home"), env: map[string]string{}}
	t.Cleanup(func() {
		if t.Failed() {
			showLogs(t, h.home)
		}
		must(t, upTimeout, h.binary, "down", "--purge", "--home", h.home)
	})
	must(t, upTimeout, h.binary, "up", "--home", h.home, "--detach", "--disposable", "--credential", "AKID:secret:123456789012")
	// Now its network is known, and which addresses in it are free.
	must(t, upTimeout, h.binary, "down", "--home", h.home)
	must(t, upTimeout, h.binary, "up", "--home", h.home, "--detach", "--public-pool", network(t, h.home)+".16.0/24")
	h.env["HOWDAH_TEST_STATUS"] = h.binary + " status --home " + h.home // for a journey that fails
	lines := bufio.NewScanner(strings.NewReader(must(t, upTimeout, h.binary, "env", "--home", h.home)))
	for lines.Scan() {
		if name, value, ok := strings.Cut(strings.TrimPrefix(lines.Text(), "export "), "="); ok {
			h.env[name] = strings.Trim(value, "'")
		}
	}
	return h
}

// network returns the home's part of the loopback network, such as "127.93".
func network(t *testing.T, dir string) string {
	t.Helper()
	h, err := home.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return h.Network
}

// must runs a command that has to succeed, and returns what it printed.
func must(t *testing.T, within time.Duration, name string, args ...string) string {
	t.Helper()
	// This is not the test's context: that has ended when a test cleans up.
	ctx, cancel := context.WithTimeout(context.Background(), patience.For(within))
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// in returns the environment of a journey, which has a region of its own.
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
	ctx, cancel := context.WithTimeout(t.Context(), patience.For(journeyTimeout))
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	// A journey that is too late still deletes what it created.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 30 * time.Second
	command.Env = append(environ(h.in(n)), more)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
		return
	}
	t.Logf("%s", out)
}

// showLogs prints the beginning and the end of every log of a home. The reason why a database never
// came up is at the beginning.
func showLogs(t *testing.T, home string) {
	for _, pattern := range []string{"log/*.log", "hosts/*/members/*/log/patroni.log"} {
		files, err := filepath.Glob(filepath.Join(home, pattern))
		if err != nil {
			continue
		}
		for _, f := range files {
			if out, err := exec.Command("sh", "-c", `head -n 25 "$1"; echo …; tail -n 40 "$1"`, "sh", f).Output(); err == nil {
				t.Logf("---- %s\n%s", f, out)
			}
		}
	}
}
