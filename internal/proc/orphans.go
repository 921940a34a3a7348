package proc

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"howdah/internal/proc/table"
)

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
func (h *Host) TakeOrphans(ctx context.Context) error {
	return takeOrphans(ctx, h.processes, h.reapOrphans, h.started)
}

// TakeOrphans is the same for a process without groups, such as one that runs agents.
func TakeOrphans(ctx context.Context) error {
	return takeOrphans(ctx, table.System, reap, nil)
}

func takeOrphans(ctx context.Context, processes table.Root, reap func([]Process), again <-chan struct{}) error {
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
			reap(deadOrphans(processes, session))
			select {
			case <-deaths:
			case <-again:
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
func (h *Host) reapOrphans(dead []Process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, process := range dead {
		if h.children[process] == nil && h.starting == 0 {
			reap([]Process{process})
		}
	}
}

// startsOne says that a process is about to be started that is not among the children
// yet; and, with what it answers, that it is.
func (h *Host) startsOne() (done func()) {
	count := func(n int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.starting += n
	}
	count(1)
	return func() {
		count(-1)
		select {
		case h.started <- struct{}{}: // orphans that were left alone meanwhile
		default:
		}
	}
}

func reap(dead []Process) {
	for _, process := range dead {
		// It is dead and our child: its number can be nobody else's before this.
		_, _ = unix.Wait4(process.PID, nil, unix.WNOHANG, nil)
	}
}
