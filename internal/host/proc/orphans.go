package proc

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"howdah/internal/host/proc/table"
)

// launched has the processes that the groups of all hosts in this process have started, and that
// somebody waits for.
var launched = struct {
	sync.Mutex
	children map[Process]bool
	starting int           // processes that are not among the children yet
	settled  chan struct{} // one of them is
}{children: map[Process]bool{}, settled: make(chan struct{}, 1)}

// TakeOrphans makes this process adopt the processes below it whose parent ends, as init does, and
// reap them as soon as they are dead, until ctx ends.
//
// PostgreSQL is such an orphan, because Patroni starts it by a helper that ends. A dead process is
// in the process table until its parent reaps it. Patroni and PostgreSQL take it for alive there,
// and PostgreSQL does not start meanwhile. Some inits take a second or two, and what runs as
// process 1 of a container often never does it.
//
// What this process itself started is left to whoever waits for it. An orphan is a process whose
// session is not ours, and which is not a command of a group. So a program that is started beside
// Group.Start must not be in a session of its own.
func TakeOrphans(ctx context.Context) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("take in orphans: %w", err)
	}
	session, err := unix.Getsid(0)
	if err != nil {
		return fmt.Errorf("find own session: %w", err)
	}
	deaths := make(chan os.Signal, 1) // one that was not looked at yet stands for all
	signal.Notify(deaths, syscall.SIGCHLD)
	go func() {
		defer signal.Stop(deaths)
		for {
			reapOrphans(deadOrphans(table.System, session))
			select {
			case <-deaths:
			case <-launched.settled:
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

// deadOrphans returns our dead children of other sessions than ours.
func deadOrphans(processes table.Root, session int) (dead []Process) {
	for _, pid := range childrenOf(processes) {
		entry, err := processes.Get(pid)
		if err == nil && entry.Dead() && entry.Parent == os.Getpid() && entry.Session != session {
			dead = append(dead, entry.ID)
		}
	}
	return dead
}

// childrenOf returns the children of this process, from the list that the kernel keeps for each of
// its threads. If the kernel keeps none, it reads the whole table.
func childrenOf(processes table.Root) (pids []int) {
	lists, _ := filepath.Glob(filepath.Join(string(processes), "self/task/*/children"))
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	if len(lists) == 0 {
		pids, _ = processes.IDs()
	}
	return pids
}

// reapOrphans reaps dead orphans, and leaves alone what a group has started, or is starting at this
// moment.
func reapOrphans(dead []Process) {
	launched.Lock()
	defer launched.Unlock()
	for _, process := range dead {
		if launched.children[process] || launched.starting > 0 {
			continue
		}
		// It is dead and our child, so nobody else can have its id before this.
		_, _ = unix.Wait4(process.PID, nil, unix.WNOHANG, nil)
	}
}

// startsOne says that a process is about to be started that is not among the children yet. done
// says that it is.
func startsOne() (done func()) {
	count := func(n int) {
		launched.Lock()
		defer launched.Unlock()
		launched.starting += n
	}
	count(1)
	return func() {
		count(-1)
		select {
		case launched.settled <- struct{}{}: // orphans that were left alone meanwhile
		default:
		}
	}
}

// waitsFor records whether somebody waits for a child of ours.
func waitsFor(process Process, waits bool) {
	launched.Lock()
	defer launched.Unlock()
	if waits {
		launched.children[process] = true
	} else {
		delete(launched.children, process)
	}
}
