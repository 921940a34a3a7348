package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

// The child tells about itself. Every line is one thing that Start promises.
func TestStartGivesACleanChild(t *testing.T) {
	// A careless parent may leave such a descriptor to us.
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(pipe[0]); _ = unix.Close(pipe[1]) })
	t.Setenv("HOWDAH_TEST_SECRET", "inherited")
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			command := w.command(`echo umask $(umask)
echo cwd $(pwd)
echo session $(cut -d' ' -f6 /proc/$$/stat) group $(cut -d' ' -f5 /proc/$$/stat) self $$
echo stdin $(readlink /proc/$$/fd/0)
echo environment $(tr '\0' ' ' </proc/$$/environ)
echo error >&2
exec ls /proc/self/fd`)
			command.Env = []string{"B=2", "A=1"}
			process, err := w.group.Start(context.Background(), command)
			if err != nil {
				t.Fatal(err)
			}
			if exit := w.watch(process); !exit.Known || exit.Code != 0 {
				t.Fatalf("%s; log: %s", exit, w.logged())
			}
			// The last program has opened the directory that it lists as 3.
			want := fmt.Sprintf("umask 0077\ncwd %[1]s\nsession %[2]d group %[2]d self %[2]d\nstdin /dev/null\n"+
				"environment HOWDAH_MEMBER=%[3]s/orders-1 B=2 A=1\nerror\n0\n1\n2\n3\n", w.dir, process.PID, w.host.config.Parent)
			if diff := cmp.Diff(want, w.logged()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStartPutsTheChildInItsGroupFromTheBeginning(t *testing.T) {
	testkit.NeedRoot(t)
	for _, k := range kinds() {
		if k.want == Tree {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			w.watch(w.start("cat /proc/$$/cgroup"))
			want := ":/" + w.host.config.Parent + "/orders-1.member"
			if !strings.Contains(w.logged(), want) {
				t.Errorf("%q not in %s", want, w.logged())
			}
			own := read(t, "/proc/self/cgroup")
			if strings.Contains(own, w.host.config.Parent) {
				t.Errorf("we are in a group of ours: %s", own)
			}
			for _, task := range glob(t, "/proc/self/task/*/cgroup") {
				if text, err := os.ReadFile(task); err == nil && strings.Contains(string(text), "orders-1") {
					t.Errorf("a thread of ours is in the member's group: %s", text)
				}
			}
		})
	}
}

func TestStartAsAnotherUser(t *testing.T) {
	testkit.NeedRoot(t)
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			// What is in brackets has ended when it is echoed.
			command := w.command("echo $(id -u; id -g; id -G); exec sleep 1000")
			command.User = &User{UID: nobody, GID: nobody, Groups: []uint32{4, 24}}
			if _, err := w.group.Start(context.Background(), command); err != nil {
				t.Fatal(err)
			}
			w.writes(1)
			if got, want := strings.Fields(w.logged()), strings.Fields("65534 65534 65534 4 24"); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if proof := w.kill(); proof.Found != 1 {
				t.Errorf("found %d", proof.Found)
			}
		})
	}
}

func TestStartAfterKill(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			for range 3 {
				w.start("exec sleep 1000")
				w.running(1)
				w.kill()
			}
			if exit := w.watch(w.start("exit 0")); exit.Code != 0 || !exit.Known {
				t.Errorf("the first process after a kill: %s", exit)
			}
		})
	}
}

func TestStartAppendsToTheLog(t *testing.T) {
	w := newWorld(t, best)
	w.watch(w.start("echo one"))
	w.watch(w.start("echo two"))
	if got := w.logged(); got != "one\ntwo\n" {
		t.Errorf("log is %q", got)
	}
	if info, err := os.Stat(w.log); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("log: %v, %v", info.Mode(), err)
	}
	if err := os.Remove(w.log); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/null", w.log); err != nil {
		t.Fatal(err)
	}
	if _, err := w.group.Start(context.Background(), w.command("echo")); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a log that is a symbolic link: %v", err)
	}
}

func TestStartRefuses(t *testing.T) {
	w := newWorld(t, best)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	good := w.command("exit 0")
	with := func(change func(*Command)) Command { c := good; change(&c); return c }
	for name, c := range map[string]struct {
		ctx     context.Context
		command Command
		want    error
	}{
		"no program":        {context.Background(), with(func(c *Command) { c.Path = "" }), ErrCommand},
		"no log":            {context.Background(), with(func(c *Command) { c.LogFile = "" }), ErrCommand},
		"missing program":   {context.Background(), with(func(c *Command) { c.Path = "/no/such/program" }), os.ErrNotExist},
		"missing directory": {context.Background(), with(func(c *Command) { c.Dir = "/no/such/directory" }), os.ErrNotExist},
		"too late":          {over, good, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			if process, err := w.group.Start(c.ctx, c.command); !errors.Is(err, c.want) {
				t.Errorf("got %s, %v", process, err)
			}
			if left, err := w.group.Processes(); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

func TestNoZombies(t *testing.T) {
	w := newWorld(t, best)
	process := w.start("exit 3")
	if exit := w.watch(process); !exit.Known || exit.Code != 3 {
		t.Errorf("got %s", exit)
	}
	if entry, err := w.host.processes.Get(process.PID); err == nil && entry.ID == process {
		t.Errorf("there is still an entry: %+v", entry)
	}
}

// The data plane outlives the agent. A member that an agent started goes on when the agent is
// killed, and the next agent finds, watches and kills it.
func TestAdopt(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			started := w.startByAnother(k, `(cd $DATA; env -i setsid sleep 1000 &); while :; do echo alive; sleep 0.01; done`)
			before := strings.Count(w.logged(), "\n")
			w.writes(before + 5) // nobody reads the other end of anything

			if leader, err := w.group.Leader(); err != nil || leader != started {
				t.Errorf("leader is %s, %v; started was %s", leader, err, started)
			}
			if names, err := w.host.Groups(); err != nil || !slices.Equal(names, []string{"orders-1"}) {
				t.Errorf("groups %v, %v", names, err)
			}
			processes, err := w.group.Processes()
			if err != nil || !slices.Contains(processes, started) || len(processes) < 2 {
				t.Errorf("processes %v, %v", processes, err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience.For(20*time.Second))
			defer cancel()
			exits, err := w.host.Watch(ctx, started)
			if err != nil {
				t.Fatal(err)
			}
			w.kill()
			exit, ok := <-exits
			if !ok || exit.Process != started || exit.Known {
				t.Errorf("exit is %+v, %v", exit, ok)
			}
			if leader, err := w.group.Leader(); !errors.Is(err, ErrGone) {
				t.Errorf("leader of a dead member: %s, %v", leader, err)
			}
		})
	}
}

// startByAnother starts a script by another process of this program, which is then killed.
func (w *world) startByAnother(k kind, script string) Process {
	w.t.Helper()
	asked, answer := filepath.Join(w.dir, "asked"), filepath.Join(w.dir, "answer")
	text, err := json.Marshal(errand{Config: w.host.config, Only: k.config.only, Command: w.command(script)})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(asked, text, 0o600); err != nil {
		w.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	command := exec.Command(self, asked, answer)
	command.Env = []string{roleVar + "=starter"}
	var out strings.Builder
	command.Stderr = &out
	if err := command.Start(); err != nil {
		w.t.Fatal(err)
	}
	testkit.Eventually(w.t, 20*time.Second, func() error {
		text, err = os.ReadFile(answer)
		return err
	})
	if err := command.Process.Kill(); err != nil {
		w.t.Fatal(err)
	}
	// This also waits for the end of stderr: a child that held it would keep us here.
	_ = command.Wait()
	var process Process
	if err := json.Unmarshal(text, &process); err != nil {
		w.t.Fatalf("%v; %s", err, out.String())
	}
	return process
}

// An earlier life may have had another containment: it ran as another user, or the kernel was set
// up otherwise. What it started must be found all the same.
func TestKillAfterAChangeOfContainment(t *testing.T) {
	testkit.NeedRoot(t)
	dir := sharedDir(t)
	config := Config{Parent: parentName(), StateDir: filepath.Join(dir, "state"), only: Tree}
	before := openWorld(t, config, dir)
	if err := os.MkdirAll(before.data, 0o755); err != nil {
		t.Fatal(err)
	}
	before.start(`(cd $DATA; env -i setsid sleep 1000 &); echo two; exec sleep 1001`)
	before.writes(1)
	config.only = ""
	after := openWorld(t, config, dir)
	if after.host.containment == Tree {
		t.Skip("needs control groups")
	}
	if proof := after.kill(); proof.Found != 2 || !strings.Contains(proof.Evidence, "outside of it and killed: 2") {
		t.Errorf("found %d: %s", proof.Found, proof.Evidence)
	}
}

func TestNames(t *testing.T) {
	state := t.TempDir()
	for _, name := range []string{"", ".", "..", "a/b", "A", "a_b", "-a", "a b", "ä", strings.Repeat("a", 101)} {
		if _, err := Open(Config{Parent: name, StateDir: state}); !errors.Is(err, ErrName) {
			t.Errorf("parent %q: %v", name, err)
		}
	}
	host, err := Open(Config{Parent: "howdah-proc-test-names", StateDir: state})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "..", "a/b", "A", "a_b"} {
		if _, err := host.Group(name); !errors.Is(err, ErrName) {
			t.Errorf("group %q: %v", name, err)
		}
	}
	one, err1 := host.Group("orders-1")
	two, err2 := host.Group("orders-1")
	if err := errors.Join(err1, err2); err != nil || one != two || one.Name() != "orders-1" {
		t.Errorf("the same name gave %p and %p, %v", one, two, err)
	}
}

// The kernel has files of its own in every group. A member may have the name of one.
func TestMemberCalledAsAKernelFile(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			group, err := w.host.Group("tasks")
			if err != nil {
				t.Fatal(err)
			}
			_, err = group.Start(context.Background(), w.command("exec sleep 1000"))
			_, killed := group.Kill(context.Background())
			if err := errors.Join(err, killed, group.Remove()); err != nil {
				t.Error(err)
			}
		})
	}
}

// The log is opened with the rights of its writer. So a link leads nowhere that this user may not
// write anyway. A log that belongs to root, from an older release, is replaced.
func TestTheLogIsTheUsers(t *testing.T) {
	testkit.NeedRoot(t)
	dir := sharedDir(t)
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, kinds()[0])
	for name, c := range map[string]struct {
		make    func(path string) error
		refused bool
	}{
		"none":          {make: func(string) error { return nil }},
		"root's":        {make: func(path string) error { return os.WriteFile(path, []byte("old"), 0o600) }},
		"a link":        {make: func(path string) error { return os.Symlink(secret, path) }, refused: true},
		"a second name": {make: func(path string) error { return os.Link(secret, path) }},
		"in a linked directory": {make: func(path string) error {
			return errors.Join(os.Remove(filepath.Dir(path)), os.Symlink("/etc", filepath.Dir(path)))
		}, refused: true},
	} {
		own, err := os.MkdirTemp(dir, "")
		if err := errors.Join(err, os.Chown(own, nobody, nobody)); err != nil {
			t.Fatal(err)
		}
		command := w.command("true")
		command.LogFile, command.User = filepath.Join(own, "log"), &User{UID: nobody, GID: nobody}
		if err := c.make(command.LogFile); err != nil {
			t.Fatal(err)
		}
		log, err := openLog(command)
		if err == nil {
			log.Close()
		}
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
		if text, err := os.ReadFile(secret); err != nil || string(text) != "kept" {
			t.Errorf("%s: the secret is %q, %v", name, text, err)
		}
		if info, err := os.Lstat(command.LogFile); !c.refused && (err != nil || info.Sys().(*syscall.Stat_t).Uid != nobody) {
			t.Errorf("%s: the log is %v, %v", name, info, err)
		}
	}
}
