// Package thread changes what Linux has for each thread: rights to files, umask, control group. Go
// moves goroutines between threads, so a thread that was changed is never used for anything else.
package thread

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// elsewhere runs f on a thread that nothing else runs on and that ends afterwards. It returns once
// that thread is found. The main thread stays as it is: it cannot end, and what the process shows
// of itself belongs to the main thread. So elsewhere keeps the main thread busy while it looks for
// another one.
func elsewhere(f func()) {
	found := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			elsewhere(f)
			close(found)
			runtime.UnlockOSThread()
			return
		}
		close(found)
		f()
	}()
	<-found
}

// Throwaway runs f on a thread that ends afterwards, whatever f has done to it. It returns the
// thread's number once f has returned. The thread may exist for a moment more.
func Throwaway(f func()) (id int) {
	done := make(chan struct{})
	elsewhere(func() {
		defer close(done)
		id = unix.Gettid()
		f()
	})
	<-done
	return id
}

// ErrRights says that a thread could not give up its rights.
var ErrRights = errors.New("the rights of another user were not taken")

// rights are those of a user to files.
type rights struct{ uid, gid int }

// worker runs one function at a time on a thread that has other rights, for ever. Such a thread may
// not end: it may have started processes that end with it.
type worker struct {
	work chan func() error
	done chan error
}

var (
	idleMu sync.Mutex
	idle   = map[rights][]*worker{} // guarded by idleMu
)

// As runs f, which touches files, with the rights of an unprivileged user and of its group alone.
// Only root may do so. Anybody else touches files with only their own rights anyway, so f is just
// called. f must start no process, and no goroutine that touches files: they would have all of
// root's rights. f must return, and not end its goroutine.
func As(uid, gid int, f func() error) error {
	if os.Geteuid() != 0 {
		return f()
	}
	if uid <= 0 || gid <= 0 {
		return fmt.Errorf("user %d, group %d: %w", uid, gid, ErrRights)
	}
	who := rights{uid, gid}
	w, err := workerFor(who)
	if err != nil {
		return err
	}
	w.work <- f
	err = <-w.done
	idleMu.Lock()
	defer idleMu.Unlock()
	idle[who] = append(idle[who], w)
	return err
}

// workerFor takes a worker that has nothing to do, or makes one. So there are as many as were ever
// needed at once.
func workerFor(who rights) (*worker, error) {
	idleMu.Lock()
	defer idleMu.Unlock()
	if all := idle[who]; len(all) > 0 {
		idle[who] = all[:len(all)-1]
		return all[len(all)-1], nil
	}
	w := &worker{make(chan func() error), make(chan error)}
	ready := make(chan error)
	elsewhere(func() { w.run(who, ready) })
	return w, <-ready
}

// run works on the calling thread, which still has all of root's rights.
func (w *worker) run(who rights, ready chan<- error) {
	err := become(who.uid, who.gid)
	ready <- err
	if err != nil {
		return // and the thread ends, as nobody knows what it may
	}
	for f := range w.work {
		w.done <- f()
	}
}

// become gives up this thread's root rights to files. When a thread takes another user's number for
// files, Linux takes all capabilities away that concern files. The groups belong to a thread, too,
// as long as neither the C library nor Go tells the other threads.
func become(uid, gid int) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("leave root's groups: %w: %w", errno, ErrRights)
	}
	for _, set := range []struct {
		call uintptr
		id   int
	}{{unix.SYS_SETFSGID, gid}, {unix.SYS_SETFSUID, uid}} {
		// The call returns the previous value, and no error. An unknown user changes nothing.
		_, _, _ = unix.RawSyscall(set.call, uintptr(set.id), 0, 0)
		const nobody = ^uintptr(0)
		if now, _, _ := unix.RawSyscall(set.call, nobody, 0, 0); int(now) != set.id {
			return fmt.Errorf("user %d, group %d: %w", uid, gid, ErrRights)
		}
	}
	return nil
}
