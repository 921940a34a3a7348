package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"howdah/internal/home"
)

// partTimeout is how long a part may take to end in good order before it is
// killed: all of its state is in etcd and on disk.
const partTimeout = 15 * time.Second

// endParts ends the parts of a home that run on this machine, whoever started
// them. Databases go on. The agents come first: they must not take the end of the
// control plane for a failure.
func endParts(ctx context.Context, h *home.Home) error {
	locks, err := filepath.Glob(filepath.Join(h.DataRoot, "*", agentLock))
	if err != nil {
		return fmt.Errorf("find agents: %w", err)
	}
	locks = append(locks, filepath.Join(h.EdgeDir(), edgeLock), filepath.Join(h.Dir, "run", "serve.lock"))
	for _, lock := range locks {
		if err := endHolder(ctx, lock, partTimeout); err != nil {
			return err
		}
	}
	return nil
}

// Names of the locks that agents and edges hold in their directories.
const (
	agentLock = "agent.lock"
	edgeLock  = "edge.lock"
)

// endHolder ends the process that holds a lock and waits for that. One that does
// not end in good order is killed.
func endHolder(ctx context.Context, lock string, patience time.Duration) error {
	pid := holder(lock)
	if pid == 0 {
		return nil
	}
	deadline := time.Now().Add(patience)
	signal := syscall.SIGTERM
	for {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end process %d, which holds %s: %w", pid, lock, err)
		}
		for range 50 {
			if holder(lock) != pid {
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Millisecond):
			}
		}
		if time.Now().After(deadline) {
			signal = syscall.SIGKILL
		}
	}
}

// holder is the process that holds a lock, or 0.
func holder(lock string) int {
	file, err := os.OpenFile(lock, os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer file.Close()
	// Shared: whoever asks at the same time must not look like a holder.
	if syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return 0
	}
	text, err := os.ReadFile(lock)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
