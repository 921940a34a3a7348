package proc

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"howdah/internal/host/proc/cgroup"
	"howdah/internal/host/proc/table"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

// nobody is the ordinary user of these tests.
const nobody = 65534

// world is a host with one member. Its processes are shell scripts that play Patroni and
// PostgreSQL. At its end nothing is left of it.
type world struct {
	t     *testing.T
	host  *Host
	group *Group
	dir   string // everything of the member; its name is in every process of it
	data  string // PostgreSQL's data directory
	log   string
}

// kind is a containment that this machine really has, and what to ignore to get it.
type kind struct {
	name   string
	config Config
	want   Containment
}

// best is the containment that this machine gives without being asked.
var best = kind{name: "best"}

// kinds lists the containments to run a test in. For root these are all that this machine has. For
// an ordinary user it is the one that this user gets.
func kinds() []kind {
	if os.Geteuid() != 0 {
		return []kind{{name: "tree as an ordinary user", want: Tree}}
	}
	return []kind{
		{name: "cgroup2", want: Cgroup2},
		{name: "cgroup2 without cgroup.kill", config: Config{noKillFile: true}, want: Cgroup2},
		{name: "freezer", config: Config{only: Freezer}, want: Freezer},
		{name: "tree", config: Config{only: Tree}, want: Tree},
	}
}

func newWorld(t *testing.T, k kind) *world {
	t.Helper()
	dir := sharedDir(t)
	k.config.Parent = parentName()
	k.config.StateDir = filepath.Join(dir, "state")
	w := openWorld(t, k.config, dir)
	if got := w.host.Describe().Containment; k.want != "" && got != k.want {
		t.Skipf("needs the containment %s; this machine gives %s", k.want, w.host.Describe())
	}
	if err := os.MkdirAll(w.data, 0o777); err != nil {
		t.Fatal(err)
	}
	return w
}

// parentName returns a name that no other test has, nor another run on this machine.
func parentName() string { return "howdah-proc-test-" + strings.ToLower(rand.Text()[:10]) }

// sharedDir returns a temporary directory that other users may enter, too.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "howdah-proc-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil { // any user writes its log there
		t.Fatal(err)
	}
	return dir
}

// openWorld opens a host on a directory that may have been another host's before.
func openWorld(t *testing.T, config Config, dir string) *world {
	t.Helper()
	host, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	group, err := host.Group("orders-1")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, host: host, group: group, dir: dir, data: filepath.Join(dir, "data"), log: filepath.Join(dir, "log")}
	t.Cleanup(w.clean)
	return w
}

func (w *world) clean() {
	if _, err := w.group.Kill(context.Background()); err != nil {
		w.t.Errorf("clean up: %v", err)
	}
	if err := w.group.Remove(); err != nil {
		w.t.Errorf("clean up: %v", err)
	}
	for _, hierarchy := range glob(w.t, "/sys/fs/cgroup/*/"+w.host.config.Parent) {
		w.t.Errorf("clean up: %s is left", hierarchy)
	}
	if left := w.traces(); len(left) > 0 {
		w.t.Errorf("clean up: processes are left: %v", left)
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// traces lists every live process that has the world's directory in its command line, environment
// or working directory. This is a second opinion: it shares nothing with how the package looks for
// them.
func (w *world) traces() []table.Entry {
	all, err := table.System.All()
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(entry table.Entry) bool {
		base := fmt.Sprintf("/proc/%d/", entry.PID)
		command, _ := os.ReadFile(base + "cmdline")
		environment, _ := os.ReadFile(base + "environ")
		dir, _ := os.Readlink(base + "cwd")
		text := bytes.Join([][]byte{command, environment, []byte(dir)}, []byte{0})
		return entry.PID == os.Getpid() || !bytes.Contains(text, []byte(w.dir))
	})
}

// start runs a script as the member's Patroni. The script finds $DATA. $0 is a file of the script
// that it may start again.
func (w *world) start(script string) Process {
	w.t.Helper()
	process, err := w.group.Start(context.Background(), w.command(script))
	if err != nil {
		w.t.Fatal(err)
	}
	return process
}

func (w *world) command(script string) Command {
	w.t.Helper()
	path := filepath.Join(w.dir, "patroni-"+rand.Text()+".sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	return Command{
		Path: "/bin/sh", Args: []string{path}, LogFile: w.log, DataDir: w.data, Dir: w.dir,
		Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DATA=" + w.data},
	}
}

// running waits until a second opinion sees at least n processes of the member, and returns how
// many there are.
func (w *world) running(n int) int {
	w.t.Helper()
	seen := 0
	testkit.Eventually(w.t, 20*time.Second, func() error {
		if seen = len(w.traces()); seen < n {
			return fmt.Errorf("%d of %d processes run; log: %s", seen, n, w.logged())
		}
		return nil
	})
	return seen
}

func (w *world) logged() string {
	text, _ := os.ReadFile(w.log)
	return string(text)
}

// exists waits for a file that a script makes.
func (w *world) exists(name string) {
	w.t.Helper()
	testkit.Eventually(w.t, 30*time.Second, func() error {
		_, err := os.Stat(filepath.Join(w.dir, name))
		if err != nil {
			return fmt.Errorf("%w; log: %s", err, w.logged())
		}
		return nil
	})
}

// touch makes a file that a script waits for.
func (w *world) touch(name string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), nil, 0o666); err != nil {
		w.t.Fatal(err)
	}
}

// kill kills the member, and checks what may be believed afterwards.
func (w *world) kill() Proof {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience.For(20*time.Second))
	defer cancel()
	proof, err := w.group.Kill(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	if left := w.traces(); len(left) > 0 {
		w.t.Errorf("proved dead (%s), but these run: %+v", proof.Evidence, left)
	}
	if left, err := w.group.Processes(); err != nil || len(left) > 0 {
		w.t.Errorf("processes after a proof: %v, %v", left, err)
	}
	if proof.At.Before(proof.Began) || proof.Evidence == "" || proof.Containment != w.host.containment {
		w.t.Errorf("proof is %+v", proof)
	}
	return proof
}

// watch returns the exit of a process, or fails when it does not end in time.
func (w *world) watch(process Process) Exit {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience.For(30*time.Second))
	defer cancel()
	exits, err := w.host.Watch(ctx, process)
	if err != nil {
		w.t.Fatal(err)
	}
	exit, ok := <-exits
	if !ok {
		w.t.Fatalf("process %s has not ended", process)
	}
	return exit
}

// frozenElsewhere puts a process into a frozen group that the package does not know. The process is
// uninterruptible until thaw is called.
func frozenElsewhere(t *testing.T, pid int) (thaw func()) {
	t.Helper()
	layout, err := cgroup.Detect("/proc", "howdah-proc-test-ice-"+strings.ToLower(rand.Text()[:10]))
	if err != nil {
		t.Fatal(err)
	}
	dir := layout.Freezer
	if dir == "" {
		t.Skip("needs the freezer of version 1: " + layout.FreezerReason)
	}
	if err := cgroup.Make(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		testkit.Eventually(t, 10*time.Second, func() error {
			return errors.Join(cgroup.Freeze(cgroup.V1, dir, false), cgroup.Remove(dir))
		})
	})
	if err := errors.Join(cgroup.Add(dir, pid), cgroup.Freeze(cgroup.V1, dir, true)); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if frozen, err := cgroup.Frozen(cgroup.V1, dir); err != nil || !frozen {
			return fmt.Errorf("frozen is %v, %w", frozen, err)
		}
		return nil
	})
	return func() {
		if err := cgroup.Freeze(cgroup.V1, dir, false); err != nil {
			t.Fatal(err)
		}
	}
}

// frozenAbove freezes the top group of all members.
func frozenAbove(t *testing.T, top string) (thaw func()) {
	t.Helper()
	if err := cgroup.Freeze(cgroup.V1, top, true); err != nil {
		t.Fatal(err)
	}
	thaw = func() {
		if err := cgroup.Freeze(cgroup.V1, top, false); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(thaw)
	testkit.Eventually(t, 10*time.Second, func() error {
		if frozen, err := cgroup.Frozen(cgroup.V1, top); err != nil || !frozen {
			return fmt.Errorf("frozen is %v, %w", frozen, err)
		}
		return nil
	})
	return thaw
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// writes waits until the member has written so many lines into its log.
func (w *world) writes(lines int) {
	w.t.Helper()
	testkit.Eventually(w.t, 20*time.Second, func() error {
		if n := strings.Count(w.logged(), "\n"); n < lines {
			return fmt.Errorf("%d of %d lines", n, lines)
		}
		return nil
	})
}

// writesNoMore checks that the log does not grow while the process table is read many times.
func (w *world) writesNoMore() {
	w.t.Helper()
	before := len(w.logged())
	for range 20 {
		w.traces()
	}
	if after := len(w.logged()); after != before {
		w.t.Errorf("a process that was proved dead wrote %d bytes", after-before)
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	value, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
