package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"howdah/internal/host/proc/cgroup"
	"howdah/internal/host/proc/table"
)

// ErrNoControlGroup says that a member is in no control group, without which not every process is
// known.
var ErrNoControlGroup = errors.New("not in a control group")

// Doom is for a member whose processes wait for a device that does not answer, so that Kill cannot
// prove them dead. It proves less, and does so at once: every process that is left waits inside the
// kernel with SIGKILL pending, so that no instruction of its program runs again. Such a member
// answers no client and confirms nothing any more. A write to its files that is under way may still
// happen, so nothing may be started on them before Kill has succeeded. Doom returns ErrNotProved
// while any process is in another state.
//
// Only what a control group contains can be doomed, because the kernel says who is in it. Like
// Kill, Doom reads and writes no disk.
func (g *Group) Doom(ctx context.Context) (Proof, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	dir := g.containedDir()
	if dir == "" {
		return Proof{}, fmt.Errorf("doom %s: %w: %w", g.name, ErrNoControlGroup, ErrNotProved)
	}
	proof := Proof{Group: g.name, Containment: g.host.containment, Began: time.Now()}
	strike, _ := g.means(dir)
	if err := strike(); err != nil {
		return Proof{}, fmt.Errorf("doom %s: %w: %w", g.name, err, ErrNotProved)
	}
	var left []table.Entry
	err := until(ctx, func() (done bool, err error) {
		left, done, err = g.doomed(dir)
		return done, err
	})
	if err != nil {
		return Proof{}, fmt.Errorf("doom %s: %w: %w", g.name, err, ErrNotProved)
	}
	proof.At, proof.Found = time.Now(), len(left)
	proof.Evidence = fmt.Sprintf("all that is left in %s waits for a device with SIGKILL pending, and runs no instruction any more: %s", dir, named(left))
	return proof, nil
}

// doomed lists which processes are left. all reports whether the kernel has killed all of them,
// except for what they wait for. Nobody forks meanwhile, as a process with SIGKILL pending cannot.
func (g *Group) doomed(dir string) (left []table.Entry, all bool, err error) {
	pids, err := cgroup.Processes(dir)
	if err != nil {
		return nil, false, err
	}
	for _, pid := range pids {
		entry, err := g.host.processes.Get(pid)
		switch {
		case errors.Is(err, ErrGone) || err == nil && entry.Dead():
			continue
		case err != nil:
			return nil, false, err
		case !killPending(pid):
			return nil, false, nil
		}
		left = append(left, entry)
	}
	return left, true, nil
}

// killPending reports whether every thread of a process has ended, or waits inside the kernel with
// SIGKILL pending. The first thread of a process may end before others.
func killPending(pid int) bool {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil || len(tasks) == 0 {
		return false
	}
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/status", pid, task.Name()))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended meanwhile
		}
		if err != nil || !doomedThread(string(text)) {
			return false
		}
	}
	return true
}

// doomedThread reads the state of a thread, and whether SIGKILL is among its pending signals
// (proc_pid_status(5)).
func doomedThread(status string) bool {
	waits, pending := false, false
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch name {
		case "State":
			if strings.HasPrefix(value, "Z") || strings.HasPrefix(value, "X") {
				return true
			}
			waits = strings.HasPrefix(value, "D")
		case "SigPnd", "ShdPnd":
			bits, err := strconv.ParseUint(value, 16, 64)
			pending = pending || err == nil && bits>>(uint(syscall.SIGKILL)-1)&1 == 1
		}
	}
	return waits && pending
}

func named(entries []table.Entry) string {
	if len(entries) == 0 {
		return "nothing"
	}
	texts := make([]string, len(entries))
	for i, e := range entries {
		texts[i] = fmt.Sprintf("%d (%s)", e.PID, e.Name)
	}
	return strings.Join(texts, ", ")
}
