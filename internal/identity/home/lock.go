package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Lock is held by the one process that has a role in a home, until that process ends.
type Lock struct{ file *os.File }

// Lock takes a role. It returns ErrLocked while another process has it.
func (h *Home) Lock(role string) (*Lock, error) {
	return LockFile(h.RoleLock(role))
}

// LockFile takes a lock on a file, which then holds the id of this process.
func LockFile(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := flock(file); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", strings.TrimSuffix(filepath.Base(path), ".lock"), ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := file.Truncate(0); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if _, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &Lock{file: file}, nil
}

// A look at who has a role takes the lock for some microseconds. Only a lock that is taken for
// longer belongs to a holder.
const (
	lockTries = 50
	lockPause = 2 * time.Millisecond
)

func flock(file *os.File) error {
	for try := 1; ; try++ {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || try == lockTries {
			return err
		}
		time.Sleep(lockPause)
	}
}

// Release gives the role up. The end of the process does so, too.
func (l *Lock) Release() { l.file.Close() }

// Holder returns the process that has a role now, or 0. If no living process holds a role, it can
// be locked. So a stale number is never believed.
func (h *Home) Holder(role string) int { return FileHolder(h.RoleLock(role)) }

// RoleLock returns the file that the process which has a role has locked.
func (h *Home) RoleLock(role string) string { return h.path("run", role+".lock") }

// FileHolder returns the process that holds the lock at a path, or 0.
func FileHolder(path string) int {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer file.Close()
	// A shared lock, because a process that only asks at the same time must not look like a holder.
	if syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return 0
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return pid
}
