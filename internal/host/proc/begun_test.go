package proc

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"howdah/internal/testkit"
)

// An agent is killed after it started the command and before it could record that. The next life
// takes charge of the command, and starts no second one.
func TestWhatWasBegunIsFound(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			// It has a child with a session of its own, as Patroni has a postmaster.
			command := w.command("setsid sleep 1000 &\nwait")
			noted := begin(t, w, command)
			handle, err := w.group.launch(command)
			if err != nil {
				t.Fatal(err)
			}
			go handle.Wait()
			if noted.Begun == nil {
				t.Fatal("nothing is noted as begun")
			}
			testkit.Eventually(t, 10*time.Second, func() error {
				if len(mustProcesses(t, w)) < 2 {
					return errors.New("no child yet")
				}
				return nil
			})
			next := openWorld(t, w.host.config, w.dir)
			if _, err := next.group.Start(context.Background(), command); !errors.Is(err, ErrRuns) {
				t.Errorf("a second start: %v, want ErrRuns", err)
			}
			for range 2 {
				if leader, err := next.group.Leader(); err != nil || leader.PID != handle.Pid {
					t.Errorf("leader %s, %v; want %d", leader, err, handle.Pid)
				}
			}
			next.kill()
			if _, err := next.group.Leader(); !errors.Is(err, ErrGone) {
				t.Errorf("leader of a dead member: %v", err)
			}
		})
	}
}

// An agent is killed before it started the command. The next life starts it, and takes nobody
// else's process for it.
func TestWhatWasNeverStartedIsStarted(t *testing.T) {
	w := newWorld(t, best)
	command := w.command("exec sleep 1000")
	begin(t, w, command)
	// The same words, without the group's mark.
	stranger, err := os.StartProcess("/bin/sh", append([]string{"/bin/sh"}, command.Args...), &os.ProcAttr{Env: command.Env})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Kill(); _, _ = stranger.Wait() }()
	next := openWorld(t, w.host.config, w.dir)
	if leader, err := next.group.Leader(); !errors.Is(err, ErrGone) {
		t.Errorf("leader %s, %v; want ErrGone", leader, err)
	}
	process, err := next.group.Start(context.Background(), command)
	if err != nil {
		t.Fatal(err)
	}
	if leader, err := next.group.Leader(); err != nil || leader != process {
		t.Errorf("leader %s, %v; want %s", leader, err, process)
	}
}

// begin does what Start does before it starts the command.
func begin(t *testing.T, w *world, command Command) record {
	t.Helper()
	if err := w.group.freshControl(); err != nil {
		t.Fatal(err)
	}
	if err := w.group.ensure(); err != nil {
		t.Fatal(err)
	}
	noted, err := w.group.note(command)
	if err != nil {
		t.Fatal(err)
	}
	return noted
}

func mustProcesses(t *testing.T, w *world) []Process {
	t.Helper()
	all, err := w.group.Processes()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
