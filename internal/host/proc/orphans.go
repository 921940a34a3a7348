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

// launched are the processes that the groups of all hosts in this process have started, and
// that somebody waits for.
var launched = struct {
	sync.Mutex
	children map[Process]bool
	starting int           // processes that are not among the children yet
	settled  chan struct{} // one of them is
}{children: map[Process]bool{}, settled: make(chan struct{}, 1)}

// TakeOrphans has this process take in the processes below it whose parent ends, as init
// does, and take note at once when one of them is dead; until ctx ends.
//
// PostgreSQL is such an orphan: Patroni starts it by a helper that ends. A dead process is
// in the process table until its parent takes note, and counts as alive there for Patroni
// and for PostgreSQL, which does not start meanwhile. Some inits take a second or two, and
// what runs as process 1 of a container often never does.
//
// What this process itself started is left to whoever waits for it: an orphan is known by
// a session that is not ours, and by not being a command of a group. So a program that is
// started beside Group.Start must not be in a session of its own.
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

// deadOrphans are our dead children of other sessions than ours.
func deadOrphans(processes table.Root, session int) (dead []Process) {
	for _, pid := range childrenOf(processes) {
		entry, err := processes.Get(pid)
		if err == nil && entry.Dead() && entry.Parent == os.Getpid() && entry.Session != session {
			dead = append(dead, entry.ID)
		}
	}
	return dead
}

// childrenOf are the children of this process, by the list that the kernel keeps for each
// of its threads; by the whole table where it keeps none.
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

// reapOrphans leaves alone what a group has started, or starts at this moment.
func reapOrphans(dead []Process) {
	launched.Lock()
	defer launched.Unlock()
	for _, process := range dead {
		if launched.children[process] || launched.starting > 0 {
			continue
		}
		// It is dead and our child: its number can be nobody else's before this.
		_, _ = unix.Wait4(process.PID, nil, unix.WNOHANG, nil)
	}
}

// startsOne says that a process is about to be started that is not among the children
// yet; and, with what it answers, that it is.
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

// waitsFor notes whether somebody waits for a child of ours.
func waitsFor(process Process, waits bool) {
	launched.Lock()
	defer launched.Unlock()
	if waits {
		launched.children[process] = true
	} else {
		delete(launched.children, process)
	}
}
