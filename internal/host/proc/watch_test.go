package proc

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/testkit"
)

func TestWatchOfAChild(t *testing.T) {
	w := newWorld(t, best)
	cases := []struct {
		name, script, want string
		code               int
		signal             syscall.Signal
	}{
		{"exits", "exit 0", "exited with code 0", 0, 0},
		{"fails", "exit 7", "exited with code 7", 7, 0},
		{"is killed", "kill -9 $$", "killed by signal 9 (killed)", -1, syscall.SIGKILL},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			process := w.start(c.script)
			for range 2 { // anyone may ask, also when it is dead already
				exit := w.watch(process)
				if !exit.Known || exit.Code != c.code || exit.Signal != c.signal || exit.String() != c.want || exit.Process != process {
					t.Errorf("got %+v: %s", exit, exit)
				}
			}
		})
	}
}

// A grandchild that was handed to another parent is watched as well.
func TestWatchOfAnOrphan(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			w.start(`(setsid sleep 1000 & echo $! >$DATA/pid.new; mv $DATA/pid.new $DATA/pid); exec sleep 1001`)
			w.exists("data/pid")
			var orphan Process
			testkit.Eventually(t, 10*time.Second, func() (err error) {
				orphan, err = Find(number(t, read(t, w.data+"/pid")))
				return err
			})
			exits, err := w.host.Watch(context.Background(), orphan)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.host.Signal(orphan, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			exit, ok := <-exits
			if !ok || exit.Known || exit.Process != orphan || exit.String() != "ended, status unknown" {
				t.Errorf("got %+v, %v", exit, ok)
			}
			if _, more := <-exits; more {
				t.Error("the channel gave two exits")
			}
		})
	}
}

// A watch ends with its context and leaves no goroutine, whoever is watched.
func TestWatchEndsWithItsContext(t *testing.T) {
	w := newWorld(t, best)
	ours := w.start("exec sleep 1000")
	command := bystander(t)
	other, err := Find(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	for range 20 {
		for _, process := range []Process{ours, other} {
			ctx, cancel := context.WithCancel(context.Background())
			exits, err := w.host.Watch(ctx, process)
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			if exit, ok := <-exits; ok {
				t.Errorf("an exit of a live process: %+v", exit)
			}
		}
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if now := runtime.NumGoroutine(); now > before {
			stacks := make([]byte, 1<<16)
			return errors.New(string(stacks[:runtime.Stack(stacks, true)]))
		}
		return nil
	})
}

func TestDescribe(t *testing.T) {
	got := Capabilities{
		Containment: Tree, Reason: "version 2: cgroup version 2 is not mounted",
		CPU: Resource{Version: "none", Reason: "not mounted"}, Memory: Resource{Version: "v1"}, IO: Resource{Version: "v2"},
		Notes: []string{"one"},
	}.String()
	want := `containment: tree (no better: version 2: cgroup version 2 is not mounted)
cpu limits: none (not mounted)
memory limits: v1
io limits: v2
note: one
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDescribeThisHost(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			c := w.host.Describe()
			t.Logf("\n%s", c)
			if (c.Containment == Tree) != (c.Where == "") {
				t.Errorf("containment %s in %q", c.Containment, c.Where)
			}
			if (c.Containment == Cgroup2) != (c.Reason == "") {
				t.Errorf("containment %s because %q", c.Containment, c.Reason)
			}
			if c.IO.Version == "v1" && !strings.Contains(c.String(), "writes back by itself") {
				t.Error("nothing is said about buffered writes")
			}
			for _, resource := range []Resource{c.CPU, c.Memory, c.IO} {
				if (resource.Version == "none") != (resource.Reason != "") {
					t.Errorf("resource %+v", resource)
				}
			}
		})
	}
}
