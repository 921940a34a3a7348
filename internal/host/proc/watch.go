package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exit tells of the death of a process.
type Exit struct {
	Process Process        `json:"process"`
	At      time.Time      `json:"at"`     // when we learnt of it
	Known   bool           `json:"known"`  // whether Code and Signal are; only for our own children
	Code    int            `json:"code"`   // -1 when a signal killed it
	Signal  syscall.Signal `json:"signal"` // 0 when it exited
}

// String is for events and logs: "exited with code 1", "killed by signal killed".
func (e Exit) String() string {
	switch {
	case !e.Known:
		return "ended, status unknown"
	case e.Signal != 0:
		return fmt.Sprintf("killed by signal %d (%s)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

// child is a process that we started. exit is written before done is closed.
type child struct {
	group string
	done  chan struct{}
	exit  Exit
}

// Watch tells of the death of any process, whether it is our child or not. The channel gets one
// Exit within milliseconds of the death, or at once if the process is already dead, and is then
// closed. When ctx ends, it is closed without an Exit, and the goroutine behind it ends, too.
func (h *Host) Watch(ctx context.Context, process Process) (<-chan Exit, error) {
	h.mu.Lock()
	ours := h.children[process]
	h.mu.Unlock()
	exits := make(chan Exit, 1)
	if ours != nil {
		go watchChild(ctx, ours, exits)
		return exits, nil
	}
	fd, err := open(h.processes, process)
	if errors.Is(err, ErrGone) {
		exits <- Exit{Process: process, At: time.Now()}
		close(exits)
		return exits, nil
	}
	if err != nil {
		return nil, err
	}
	file, err := pollable(fd)
	if err != nil {
		return nil, fmt.Errorf("watch process %s: %w", process, err)
	}
	go watchFile(ctx, process, file, exits)
	return exits, nil
}

func watchChild(ctx context.Context, ours *child, exits chan<- Exit) {
	defer close(exits)
	select {
	case <-ours.done:
		exits <- ours.exit
	case <-ctx.Done():
	}
}

// pollable hands a process descriptor to the runtime's poller, so that no thread waits for it.
func pollable(fd int) (*os.File, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

func watchFile(ctx context.Context, process Process, file *os.File, exits chan<- Exit) {
	defer close(exits)
	defer file.Close()
	stop := context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	conn, err := file.SyscallConn()
	if err != nil {
		return
	}
	if err := conn.Read(ended); err == nil {
		exits <- Exit{Process: process, At: time.Now()}
	}
}

// ended reports whether the process behind a descriptor is dead, which makes the descriptor
// readable.
func ended(fd uintptr) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n == 1
}

// reap waits for a child of ours, once, so that it leaves no zombie.
func (h *Host) reap(process Process, handle *os.Process, ours *child) {
	state, err := handle.Wait()
	waitsFor(process, false)
	exit := Exit{Process: process, At: time.Now()}
	if err == nil {
		exit.Known, exit.Code = true, state.ExitCode()
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			exit.Signal = status.Signal()
		}
	}
	ours.exit = exit
	close(ours.done)
}

// adopt records a child of ours, and forgets those of the same group that are dead.
func (h *Host) adopt(process Process, ours *child) {
	waitsFor(process, true)
	h.mu.Lock()
	defer h.mu.Unlock()
	for other, sibling := range h.children {
		if sibling.group == ours.group && isClosed(sibling.done) {
			delete(h.children, other)
		}
	}
	h.children[process] = ours
}

// reaped waits until every child of ours in a group has been waited for, which takes no time once
// they are dead.
func (h *Host) reaped(ctx context.Context, group string) {
	h.mu.Lock()
	var waiting []*child
	for _, ours := range h.children {
		if ours.group == group {
			waiting = append(waiting, ours)
		}
	}
	h.mu.Unlock()
	for _, ours := range waiting {
		select {
		case <-ours.done:
		case <-ctx.Done():
		}
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
