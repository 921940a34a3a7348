package homes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"howdah/internal/identity/home"
)

// TestMain lets this program play a part that holds a lock.
func TestMain(m *testing.M) {
	if lock := os.Getenv("HOWDAH_TEST_HOLD"); lock != "" {
		hold(lock)
	}
	os.Exit(m.Run())
}

// hold takes a lock until it is ended.
func hold(path string) {
	if os.Getenv("HOWDAH_TEST_STUBBORN") != "" {
		signal.Ignore(syscall.SIGTERM)
	}
	if _, err := home.LockFile(path); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	select {}
}

// holdElsewhere has another process hold a lock; stubborn ones ignore SIGTERM.
func holdElsewhere(t *testing.T, path string, stubborn bool) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "HOWDAH_TEST_HOLD="+path)
	if stubborn {
		cmd.Env = append(cmd.Env, "HOWDAH_TEST_STUBBORN=1")
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// A process that has ended has given its locks up, also if nobody has waited for it.
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	said := make([]byte, 5)
	if _, err := out.Read(said); err != nil || string(said) != "held\n" {
		t.Fatalf("the holder said %q: %v", said, err)
	}
	return cmd
}

func TestEndHolder(t *testing.T) {
	for name, stubborn := range map[string]bool{"in good order": false, "by force": true} {
		t.Run(name, func(t *testing.T) {
			lock := filepath.Join(t.TempDir(), "part.lock")
			cmd := holdElsewhere(t, lock, stubborn)
			if pid := home.FileHolder(lock); pid != cmd.Process.Pid {
				t.Fatalf("the holder is %d, not %d", pid, cmd.Process.Pid)
			}
			if err := endHolder(t.Context(), lock, 100*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if pid := home.FileHolder(lock); pid != 0 {
				t.Errorf("%d holds the lock still", pid)
			}
		})
	}
}

func TestEndHolderGivesUpWithItsContext(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "part.lock")
	holdElsewhere(t, lock, true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := endHolder(ctx, lock, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestNobodyHolds(t *testing.T) {
	dir := t.TempDir()
	if pid := home.FileHolder(filepath.Join(dir, "none.lock")); pid != 0 {
		t.Errorf("%d holds a lock that is not there", pid)
	}
	stale := filepath.Join(dir, "stale.lock")
	if err := os.WriteFile(stale, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if pid := home.FileHolder(stale); pid != 0 {
		t.Errorf("a number of long ago is believed: %d", pid)
	}
	if err := endHolder(t.Context(), stale, time.Second); err != nil {
		t.Error(err)
	}
	// Processes that only ask at the same time are no holders either.
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for range 500 {
				if pid := home.FileHolder(stale); pid != 0 {
					t.Errorf("a number of long ago is believed while others ask: %d", pid)
					return
				}
			}
		})
	}
	asking.Wait()
}
