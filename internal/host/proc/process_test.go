package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"howdah/internal/host/proc/table"
	"howdah/internal/testkit"
)

// bystander is a process that nothing may happen to.
func bystander(t *testing.T) *exec.Cmd {
	t.Helper()
	command := exec.Command("sleep", "1000")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	return command
}

// recycled returns a host whose process table is made up: the bystander's id belongs to a process
// that started at the given time.
func recycled(t *testing.T, pid int, start string) *Host {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, fmt.Sprint(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf("%d (sleep) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %s 8192 0", pid, start)
	if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	return &Host{processes: table.Root(root), children: map[Process]*child{}, groups: map[string]*Group{}}
}

// Once an id belongs to a process that started at another time, the process is believed dead, and
// the id is not signalled.
func TestRecycledID(t *testing.T) {
	command := bystander(t)
	host := recycled(t, command.Process.Pid, "2000")
	noted := Process{PID: command.Process.Pid, Start: 1000}
	if host.Alive(noted) {
		t.Error("a process whose id was recycled is believed alive")
	}
	if err := host.Signal(noted, syscall.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("signalling it: %v", err)
	}
	exits, err := host.Watch(context.Background(), noted)
	if err != nil {
		t.Fatal(err)
	}
	if exit, ok := <-exits; !ok || exit.Known || exit.Process != noted {
		t.Errorf("watching it: %+v, %v", exit, ok)
	}
	now, err := host.Find(command.Process.Pid)
	if err != nil || now != (Process{PID: command.Process.Pid, Start: 2000}) {
		t.Errorf("finding it: %s, %v", now, err)
	}
	if err := host.Signal(now, 0); err != nil {
		t.Errorf("signalling who has the id now: %v", err)
	}
	if err := command.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the bystander: %v", err)
	}
}

func TestFindAndSignal(t *testing.T) {
	command := bystander(t)
	process, err := Find(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	host := &Host{processes: table.System, children: map[Process]*child{}}
	if !host.Alive(process) {
		t.Error("a live process is not alive")
	}
	if entry, err := host.Look(process); err != nil || entry.Name != "sleep" || entry.Parent != os.Getpid() {
		t.Errorf("looked at %+v, %v", entry, err)
	}
	if err := host.Signal(process, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if host.Alive(process) {
			return errors.New("still alive")
		}
		return nil
	})
	// It is now a zombie of ours, because nobody has waited for it.
	if _, err := Find(process.PID); !errors.Is(err, ErrGone) {
		t.Errorf("finding a zombie: %v", err)
	}
	_ = command.Wait()
	if err := host.Signal(process, syscall.SIGTERM); !errors.Is(err, ErrGone) {
		t.Errorf("signalling a dead process: %v", err)
	}
	if _, err := Find(process.PID); !errors.Is(err, ErrGone) {
		t.Errorf("finding a dead process: %v", err)
	}
}

func TestSurvives(t *testing.T) {
	host := &Host{processes: table.System, children: map[Process]*child{}}
	for script, want := range map[string]bool{
		"exec sleep 1000": false, "trap '' HUP; exec sleep 1000": true, "trap 'x=1' HUP; while :; do sleep 1000 & wait; done": true,
	} {
		command := exec.Command("sh", "-c", script)
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
			_ = command.Wait()
		})
		process, err := Find(command.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, 10*time.Second, func() error {
			if got, err := host.Survives(process, syscall.SIGHUP); got != want || err != nil {
				return fmt.Errorf("%s: %t, %w", script, got, err)
			}
			return nil
		})
		process.Start++
		if _, err := host.Survives(process, syscall.SIGHUP); !errors.Is(err, ErrGone) {
			t.Errorf("another process of this id: %v", err)
		}
	}
}

// If a session's number now belongs to another process, the scan finds nobody by it.
func TestScanDoesNotFollowARecycledSession(t *testing.T) {
	uid := os.Getuid()
	entry := table.Entry{ID: Process{PID: 50, Start: 3000}, Session: 40, Group: 40}
	for name, c := range map[string]struct {
		leader      leader
		in, certain bool
	}{
		"leader lives":                  {leader{since: 1000, alive: true}, true, true},
		"leader is dead":                {leader{since: 1000}, true, false},
		"number was taken":              {leader{since: 1000, taken: true}, false, false},
		"older than what we had begun":  {leader{since: 3001, alive: true}, false, false},
		"begun in the same clock cycle": {leader{since: 3000, alive: true}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := scanner{record: record{UID: &uid}, leaders: map[int]leader{40: c.leader}}
			if in, certain := s.inSession(entry); in != c.in || certain != c.certain {
				t.Errorf("in %v, certain %v", in, certain)
			}
		})
	}
	s := scanner{leaders: map[int]leader{41: {alive: true}}}
	if in, _ := s.inSession(entry); in {
		t.Error("found in a session of another number")
	}
}

// Sessions that were recorded before a reboot, or in another container, mean nothing.
func TestRecordOfAnotherEra(t *testing.T) {
	w := newWorld(t, best)
	uid := os.Getuid()
	text := `{"era":"another boot","sessions":[{"pid":1,"start":1}],"uid":` + fmt.Sprint(uid) + `,"data_dir":"/d"}`
	if err := os.WriteFile(w.host.recordPath("orders-1"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.group.noted = nil
	r, err := w.group.record()
	if err != nil || len(r.Sessions) != 0 || r.DataDir != "/d" || r.UID == nil || *r.UID != uid {
		t.Errorf("got %+v, %v", r, err)
	}
}
