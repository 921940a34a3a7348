package testkit

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// Two tests at a time get different ports, although nobody listens on them.
func TestAPortIsOneTestsOwn(t *testing.T) {
	const many = 500
	var mu sync.Mutex
	var done sync.WaitGroup
	seen := map[string]bool{}
	for range 4 {
		done.Go(func() {
			for range many / 4 {
				addr := FreeAddr(t)
				mu.Lock()
				if seen[addr] {
					t.Errorf("%s was given twice", addr)
				}
				seen[addr] = true
				mu.Unlock()
			}
		})
	}
	done.Wait()
}

// Commands that are to die with this process outlive all threads except ours.
func TestAStartedCommandOutlivesThreads(t *testing.T) {
	var running []*exec.Cmd
	for range 20 {
		cmd := exec.CommandContext(t.Context(), "sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		Start(t, cmd)
		running = append(running, cmd)
	}
	for range 200 {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			runtime.LockOSThread() // and never unlocks it, so that the thread ends
		}()
		<-ended
	}
	for _, cmd := range running {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait()
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
			t.Errorf("it died before: %s", cmd.ProcessState)
		}
	}
}
