package fault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"howdah/internal/host/proc"
	"howdah/internal/host/proc/table"
	"howdah/internal/identity/home"
)

var (
	errHolder   = errors.New("nobody holds its lock")
	errOld      = errors.New("the one from before holds its lock still")
	errPostgres = errors.New("it does not run PostgreSQL's program")
)

// agentLock is the file that the agent of a host has locked.
func (g *Ground) agentLock(host string) string { return filepath.Join(g.hostDir(host), "agent.lock") }

// agent finds the agent of a host, by the lock that it holds.
func (g *Ground) agent(host string) (proc.Process, error) {
	p, err := holderOf(g.agentLock(host))
	if err != nil {
		return p, fmt.Errorf("%w: no agent of %s runs on this machine: %w", ErrImpossible, host, err)
	}
	return p, nil
}

// holderOf finds the process that holds a lock. The file says its number, for a moment also that of one from
// before. So the process must have the file open.
func holderOf(lock string) (proc.Process, error) {
	pid := home.FileHolder(lock)
	if pid == 0 {
		return proc.Process{}, errHolder
	}
	p, err := proc.Find(pid)
	if err == nil && !hasOpen(pid, lock) {
		err = errHolder
	}
	if err == nil {
		_, err = table.System.Live(p) // what it had open was its own, and not that of another one of its number
	}
	return p, err
}

// hasOpen reports whether a process has a file open.
func hasOpen(pid int, path string) bool {
	wanted, err := os.Stat(path)
	if err != nil {
		return false
	}
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	files, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(files, func(f os.DirEntry) bool {
		file := filepath.Join(dir, f.Name())
		// Only a file of that name is looked at: another one may be on a disk that does not answer.
		if link, err := os.Readlink(file); err != nil || filepath.Base(link) != filepath.Base(path) {
			return false
		}
		info, err := os.Stat(file)
		return err == nil && os.SameFile(info, wanted)
	})
}

// startedAnew returns an error until a lock is held by none of those from before.
func startedAnew(lock string, before []proc.Process) error {
	p, err := holderOf(lock)
	if err == nil && slices.Contains(before, p) {
		err = errOld
	}
	return err
}

// runsPostgres refuses a process that runs another program than PostgreSQL. The file that names it lies
// where a member's user may write.
func runsPostgres(pid int) error {
	program, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
	if err != nil {
		return fmt.Errorf("ask what process %d runs: %w", pid, err)
	}
	// A program that was replaced since has a mark at its end.
	if filepath.Base(strings.TrimSuffix(program, " (deleted)")) != "postgres" {
		return fmt.Errorf("process %d: %w: it runs %s", pid, errPostgres, program)
	}
	return nil
}
