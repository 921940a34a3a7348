package homes

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"howdah/internal/cli/parts"
	"howdah/internal/identity/home"
)

// partTimeout is how long a part may take to end in good order before it is killed. A kill loses
// nothing: all of its state is in etcd and on disk.
const partTimeout = 15 * time.Second

// endParts ends the parts of a home that run on this machine, whoever started them. Databases go
// on. The agents end first, so that they do not take the end of the control plane for a failure.
func endParts(ctx context.Context, h *home.Home) error {
	locks, err := filepath.Glob(filepath.Join(h.DataRoot, "*", parts.AgentLock))
	if err != nil {
		return fmt.Errorf("find agents: %w", err)
	}
	locks = append(locks, filepath.Join(h.EdgeDir(), parts.EdgeLock), filepath.Join(h.Dir, "run", "serve.lock"))
	for _, lock := range locks {
		if err := endHolder(ctx, lock, partTimeout); err != nil {
			return err
		}
	}
	return nil
}

// endHolder ends the process that holds a lock, and waits until it has ended. A process that does
// not end in good order is killed.
func endHolder(ctx context.Context, lock string, patience time.Duration) error {
	pid := home.FileHolder(lock)
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
			if home.FileHolder(lock) != pid {
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
