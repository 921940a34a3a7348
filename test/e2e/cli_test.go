// Package e2e takes the journeys of users through a real Howdah.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

// cli is a person at a shell with a home of its own.
type cli struct {
	*testing.T
	program, home string
}

// newCLI prepares a home. It is purged when the test ends, and its logs
// are shown when the test has failed.
func newCLI(t *testing.T) *cli {
	t.Helper()
	testkit.NeedRoot(t)
	testkit.NeedProgram(t, "psql")
	dir, err := os.MkdirTemp("", "howdah-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	// Databases run as another user, who has to get through.
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	c := &cli{T: t, program: binary, home: filepath.Join(dir, "home")}
	t.Cleanup(c.tidy)
	return c
}

func (c *cli) tidy() {
	if c.Failed() {
		logs, _ := filepath.Glob(filepath.Join(c.home, "log", "*.log"))
		for _, path := range logs {
			text, _ := os.ReadFile(path)
			c.Logf("%s:\n%s", filepath.Base(path), text[max(len(text)-4000, 0):])
		}
	}
	if _, err := os.Stat(c.home); err == nil {
		c.try(context.Background(), 90*time.Second, "down", "--purge", "--yes")
	}
}

// said is what a command wrote, and its exit code.
type said struct {
	out, err string
	code     int
}

// try runs a command without anyone at the terminal.
func (c *cli) try(ctx context.Context, within time.Duration, words ...string) said {
	c.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience.For(within))
	defer cancel()
	cmd := exec.CommandContext(ctx, c.program, append(words[:len(words):len(words)], "--home", c.home)...)
	if words[0] == "db" && words[1] == "connect" { // what follows the name is psql's
		cmd = exec.CommandContext(ctx, c.program, append([]string{"--home", c.home}, words...)...)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		c.Fatalf("howdah %s took longer than %s\n%s", strings.Join(words, " "), within, errs.String())
	case ended:
		return said{out.String(), errs.String(), exit.ExitCode()}
	case err != nil:
		c.Fatal(err)
	}
	return said{out.String(), errs.String(), 0}
}

// does runs a command that must succeed, and returns its output.
func (c *cli) does(within time.Duration, words ...string) string {
	c.Helper()
	got := c.try(c.Context(), within, words...)
	if got.code != 0 {
		c.Fatalf("howdah %s: exit %d\n%s%s", strings.Join(words, " "), got.code, got.out, got.err)
	}
	return got.out
}

// refuses runs a command that must fail with this code. The last line that it writes must say this.
func (c *cli) refuses(code int, text string, words ...string) {
	c.Helper()
	got := c.try(c.Context(), 30*time.Second, words...)
	lines := strings.Split(strings.TrimSpace(got.err), "\n")
	last := lines[len(lines)-1]
	if got.code != code || !strings.HasPrefix(last, "howdah: ") || !strings.Contains(last, text) {
		c.Errorf("howdah %s: exit %d, %q", strings.Join(words, " "), got.code, got.err)
	}
}

// reads runs a command with -o json and decodes its output.
func reads[T any](c *cli, words ...string) T {
	c.Helper()
	var v T
	text := c.does(30*time.Second, append(words, "-o", "json")...)
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		c.Fatalf("howdah %s: %v\n%s", strings.Join(words, " "), err, text)
	}
	return v
}

// sql runs a statement through the endpoint, as `howdah db connect` does.
func (c *cli) sql(name, statement string) string {
	c.Helper()
	return strings.TrimSpace(c.does(20*time.Second, "db", "connect", name, "-XqAtc", statement))
}

// well waits until nothing is wrong.
func (c *cli) well(within time.Duration) {
	c.Helper()
	testkit.Eventually(c, within, func() error {
		if got := c.try(c.Context(), 30*time.Second, "status", "--check"); got.code != 0 {
			return fmt.Errorf("%s%s", got.out, got.err)
		}
		return nil
	})
}

// parts returns the home's lasting processes. What they start, such as initdb for a spare, comes
// and goes, and looks like its parent until it is another program.
func (c *cli) parts() []int {
	return slices.DeleteFunc(c.processesOf(c.program), func(pid int) bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if err != nil || len(fields) < 2 {
			return true // it has ended
		}
		own, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		parents, _ := os.ReadFile(fmt.Sprintf("/proc/%s/cmdline", fields[1]))
		return bytes.Equal(own, parents)
	})
}

// processes returns the processes of the home, found by its directory in their arguments.
func (c *cli) processes() []int { return c.processesOf("") }

// processesOf returns those whose arguments begin with a program.
func (c *cli) processesOf(program string) []int {
	var all []int
	entries, err := os.ReadDir("/proc")
	if err != nil {
		c.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		args, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && bytes.Contains(args, []byte(c.home)) && bytes.HasPrefix(args, []byte(program)) {
			all = append(all, pid)
		}
	}
	return all
}

// show is the part of `howdah db show -o json` that journeys look at.
type show struct {
	Database struct {
		Members []struct{ Name, Host, Zone, Role, Sync string }
	}
}

// primary returns the host of a database's primary.
func (c *cli) primary(name string) string {
	c.Helper()
	for _, m := range reads[show](c, "db", "show", name).Database.Members {
		if m.Role == "primary" {
			return m.Host
		}
	}
	c.Fatalf("%s has no primary", name)
	return ""
}

// TestCommandLine is the life of a home by its commands alone.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.refuses(1, "no Howdah home here", "status")
	c.refuses(2, "--listen", "up", "--listen", "nowhere", "--detach")

	t.Log("up makes a home, and again changes nothing")
	c.does(60*time.Second, "up", "--detach", "--disposable", "--credential", "AKIDE2E:e2e-secret:123456789012")
	first := c.parts()
	c.does(20*time.Second, "up", "--detach", "--disposable", "--credential", "AKIDE2E:e2e-secret:123456789012")
	if again := c.parts(); len(first) == 0 || !slices.Equal(first, again) {
		t.Errorf("the second up changed processes: %v, then %v", first, again)
	}
	if env := c.does(10*time.Second, "env"); !strings.Contains(env, "export AWS_ACCESS_KEY_ID='AKIDE2E'\n") {
		t.Errorf("env says\n%s", env)
	}

	t.Log("demo makes a database, and its line works when pasted")
	told := c.does(90*time.Second, "demo")
	if again := c.does(20*time.Second, "demo"); again != told {
		t.Errorf("the second demo says something else:\n%s", again)
	}
	c.pastes(told)
	c.well(30 * time.Second)
	// As soon as there is a backup, its key has to be kept elsewhere.
	if key := c.does(20*time.Second, "repository", "key", "export", "default"); !strings.Contains(key, "check:") {
		t.Errorf("the key is %q", key)
	}

	c.databaseJourney()
	c.snapshotJourney()
	c.hostJourney()
	c.restartJourney()

	t.Log("a wipe deletes everything; down leaves nothing")
	c.does(20*time.Second, "admin", "wipe", "--yes")
	if left := reads[[]any](c, "db", "list"); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	c.does(90*time.Second, "down", "--purge")
	if left := c.processes(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if _, err := os.Stat(c.home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the home is left: %v", err)
	}
}

// pastes runs the psql line that was printed, in a shell without our environment.
func (c *cli) pastes(told string) {
	c.Helper()
	for line := range strings.Lines(told) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "PGPASSFILE=") {
			continue
		}
		ctx, cancel := context.WithTimeout(c.Context(), patience.For(20*time.Second))
		defer cancel()
		shell := exec.CommandContext(ctx, "sh", "-c", line+" -XAtc 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()'")
		shell.Env = []string{"PATH=" + os.Getenv("PATH")}
		out, err := shell.CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "t" {
			c.Errorf("%s\n%s%v", line, out, err)
		}
		return
	}
	c.Errorf("no line to paste in\n%s", told)
}

// databaseJourney makes, uses, changes and deletes a database.
func (c *cli) databaseJourney() {
	c.Log("a database is made, fails over, restarts, changes, and is deleted")
	c.does(90*time.Second, "db", "create", "orders", "--multi-az", "--dbname", "shop")
	c.refuses(1, "DBInstanceAlreadyExists", "db", "create", "orders")
	c.sql("orders", "CREATE TABLE t AS SELECT 42 AS n")
	before := c.primary("orders")
	if out := c.does(60*time.Second, "db", "failover", "orders"); !strings.Contains(out, "writes again after") {
		c.Errorf("failover says %q", out)
	}
	if after := c.primary("orders"); after == before {
		c.Errorf("the primary is on %s still", after)
	}
	if n := c.sql("orders", "SELECT n FROM t"); n != "42" {
		c.Errorf("the row is %q", n)
	}
	testkit.Eventually(c, 10*time.Second, func() error {
		records := reads[[]struct{ Cause, Method string }](c, "failovers", "orders")
		if len(records) != 1 || records[0].Method != "killed" {
			return fmt.Errorf("post-mortems: %+v", records)
		}
		return nil
	})
	c.well(30 * time.Second)
	c.does(60*time.Second, "db", "reboot", "orders")
	c.does(60*time.Second, "db", "modify", "orders", "--port", "6000", "--apply-immediately")
	if n := c.sql("orders", "SELECT n FROM t"); n != "42" {
		c.Errorf("at the new port the row is %q", n)
	}
	c.refuses(1, "no instance and no cluster", "db", "show", "nothing")
	c.refuses(2, "--skip-final-snapshot", "db", "delete", "orders", "--yes")
	c.refuses(2, "give --yes", "db", "delete", "orders", "--skip-final-snapshot")
	c.does(60*time.Second, "db", "delete", "orders", "--skip-final-snapshot", "--yes")
}

// hostJourney empties the host of a primary.
func (c *cli) hostJourney() {
	c.Log("a host is drained, and takes members again")
	host := c.primary("demo")
	c.refuses(1, "HostNotFound", "host", "drain", "zone-x")
	if out := c.does(20*time.Second, "host", "drain", host, "--dry-run"); !strings.Contains(out, "demo") {
		c.Errorf("a dry run says %q", out)
	}
	c.does(120*time.Second, "host", "drain", host)
	if now := c.primary("demo"); now == host {
		c.Errorf("the primary is on %s still", host)
	}
	c.does(20*time.Second, "host", "undrain", host)
	c.well(60 * time.Second)
}

// restartJourney freezes an agent, and then kills everything.
func (c *cli) restartJourney() {
	c.Log("status names a host that is silent, while clients are served")
	c.sql("demo", "CREATE TABLE kept AS SELECT 7 AS n")
	zone := strings.TrimPrefix(c.primary("demo"), "zone-")
	agent := c.holder(filepath.Join(c.home, "hosts", zone, "agent.lock"))
	if err := syscall.Kill(agent, syscall.SIGSTOP); err != nil {
		c.Fatal(err)
	}
	testkit.Eventually(c, 15*time.Second, func() error {
		got := c.try(c.Context(), 30*time.Second, "status", "--check")
		if got.code != 3 || !strings.Contains(got.out, "docs/runbook/host-lost.md") {
			return fmt.Errorf("exit %d\n%s", got.code, got.out)
		}
		return nil
	})
	if n := c.sql("demo", "SELECT n FROM kept"); n != "7" {
		c.Errorf("the row is %q", n)
	}
	if err := syscall.Kill(agent, syscall.SIGCONT); err != nil {
		c.Fatal(err)
	}
	c.well(60 * time.Second)

	c.Log("everything is killed, and up brings everything back")
	for left := c.processes(); len(left) > 0; left = c.processes() {
		for _, pid := range left {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	c.refuses(1, "start it: ", "status")
	c.does(60*time.Second, "up", "--detach")
	c.well(90 * time.Second)
	if n := c.sql("demo", "SELECT n FROM kept"); n != "7" {
		c.Errorf("after everything was killed the row is %q", n)
	}
}

// holder returns the process whose id is in a lock.
func (c *cli) holder(lock string) int {
	c.Helper()
	text, err := os.ReadFile(lock)
	if err != nil {
		c.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		c.Fatal(err)
	}
	return pid
}

// TestHomesSideBySide checks that two homes on one machine do not touch each other.
func TestHomesSideBySide(t *testing.T) {
	t.Parallel()
	one := newCLI(t)
	two := &cli{T: t, program: one.program, home: one.home + "-2"}
	t.Cleanup(two.tidy)
	one.does(60*time.Second, "up", "--detach", "--disposable")
	two.does(60*time.Second, "up", "--detach")
	one.does(90*time.Second, "db", "create", "same")
	two.does(90*time.Second, "db", "create", "same")
	two.sql("same", "CREATE TABLE mine AS SELECT 2 AS n")
	two.refuses(1, "NotDisposable", "admin", "wipe", "--yes")
	two.refuses(2, "give --yes", "down", "--purge")
	one.does(90*time.Second, "down", "--purge")
	if n := two.sql("same", "SELECT n FROM mine"); n != "2" {
		t.Errorf("the row of the other home is %q", n)
	}
	two.well(30 * time.Second)
}
