package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"howdah/internal/host/proc/table"
	"howdah/internal/testkit/patience"
)

// Orphans come to a process that asked for them, and are gone from the process table as soon as
// they are dead. What the process itself started answers as ever. A process of its own asks for
// them, because those of a test go to init.
func TestTakeOrphans(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", t.TempDir())
	cmd.Env = append(os.Environ(), roleVar+"=guardian")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func guardian(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience.For(30*time.Second))
	defer cancel()
	host, err := Open(Config{Parent: parentName(), StateDir: filepath.Join(dir, "state"), only: Tree})
	if err != nil {
		return err
	}
	if err := TakeOrphans(ctx); err != nil {
		return err
	}
	var all sync.WaitGroup
	failures := make(chan error, 100)
	each := func(check func(n int) error) {
		all.Go(func() {
			for n := range 20 {
				if err := check(n); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	each(func(int) error { return orphanGoes(ctx, host) })
	each(ownChildAnswers)
	// Agents of tests share a process.
	other, err := Open(Config{Parent: parentName(), StateDir: filepath.Join(dir, "other"), only: Tree})
	if err != nil {
		return err
	}
	if err := TakeOrphans(ctx); err != nil {
		return err
	}
	group, err := other.Group("orders-1")
	if err != nil {
		return err
	}
	each(func(n int) error { return memberAnswers(ctx, other, group, dir, n%7) })
	all.Wait()
	close(failures)
	for failure := range failures {
		err = errors.Join(err, failure)
	}
	return err
}

// orphanGoes starts a process by a helper that ends, kills it, and waits until its id is free.
func orphanGoes(ctx context.Context, host *Host) error {
	out, err := exec.CommandContext(ctx, "/bin/sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(out)))
	if err != nil {
		return err
	}
	// It has a session of its own before it is told to sleep.
	ours := func() (bool, error) {
		entry, err := host.processes.Get(pid)
		return err == nil && entry.Parent == os.Getpid() && entry.Session == pid, err
	}
	if err := until(ctx, ours); err != nil {
		return fmt.Errorf("process %d did not come to us: %w", pid, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	gone := func() (bool, error) {
		_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		return errors.Is(err, os.ErrNotExist), nil
	}
	if err := until(ctx, gone); err != nil {
		return fmt.Errorf("process %d is dead and still there: %w", pid, err)
	}
	return nil
}

func ownChildAnswers(n int) error {
	err := exec.Command("/bin/sh", "-c", fmt.Sprintf("exit %d", n+1)).Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != n+1 {
		return errors.Join(fmt.Errorf("a program did not exit with %d", n+1), err)
	}
	return nil
}

// memberAnswers starts a command in a group that ends at once. Nobody takes its exit status away.
func memberAnswers(ctx context.Context, host *Host, group *Group, dir string, code int) error {
	command := Command{Path: "/bin/sh", Args: []string{"-c", "exit " + strconv.Itoa(code)}, LogFile: filepath.Join(dir, "log")}
	process, err := group.Start(ctx, command)
	if err != nil {
		return err
	}
	exits, err := host.Watch(ctx, process)
	if err != nil {
		return err
	}
	if exit, ok := <-exits; !ok || !exit.Known || exit.Code != code {
		return fmt.Errorf("a member that exited with %d: %s", code, exit)
	}
	return nil
}

// If the kernel keeps no lists of children, the whole table is read.
func TestChildrenOfWithoutLists(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"7", "self", "11"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got := fmt.Sprint(childrenOf(table.Root(root)))
	if !strings.Contains(got, "7") || !strings.Contains(got, "11") {
		t.Errorf("children %s", got)
	}
}
