// Package thread does what Linux does for one thread alone: rights to files, umask,
// control group. Go moves goroutines between threads, so a thread that was changed is
// never used for anything else again.
package thread

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Throwaway runs f on a thread that ends after it, whatever f has done to it, and
// answers its number when f has returned: the thread may be there for a moment more. The main
// thread cannot be thrown away, so it is kept busy while another one is found.
func Throwaway(f func()) (id int) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			id = Throwaway(f)
			runtime.UnlockOSThread()
			return
		}
		id = unix.Gettid()
		f()
	}()
	<-done
	return id
}

// ErrRights says that a thread could not give up its rights.
var ErrRights = errors.New("the rights of another user were not taken")

// As runs f, which touches files, with the rights of an unprivileged user and of its group
// alone. Only root may; anybody else touches files with no more rights than its own, and f is
// just called. f must start no goroutine that touches files, and no process: those would
// have all of root's rights.
func As(uid, gid int, f func() error) error {
	if os.Geteuid() != 0 {
		return f()
	}
	err := ErrRights
	Throwaway(func() {
		if err = become(uid, gid); err == nil {
			err = f()
		}
	})
	return err
}

// become gives root's rights to files up for this thread: with the number of another user
// for files Linux takes all capabilities away that concern them. The groups are those of
// a thread too, as long as the C library, or Go, does not tell the others.
func become(uid, gid int) error {
	if uid <= 0 || gid <= 0 {
		return fmt.Errorf("user %d, group %d: %w", uid, gid, ErrRights)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("leave root's groups: %w: %w", errno, ErrRights)
	}
	for _, set := range []struct {
		call uintptr
		id   int
	}{{unix.SYS_SETFSGID, gid}, {unix.SYS_SETFSUID, uid}} {
		// It answers what was there before, and no error. No such user changes nothing.
		_, _, _ = unix.RawSyscall(set.call, uintptr(set.id), 0, 0)
		const nobody = ^uintptr(0)
		if now, _, _ := unix.RawSyscall(set.call, nobody, 0, 0); int(now) != set.id {
			return fmt.Errorf("user %d, group %d: %w", uid, gid, ErrRights)
		}
	}
	return nil
}
