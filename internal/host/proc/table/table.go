// Package table reads the kernel's process table (/proc) as far as containing and killing processes
// needs it: who a process is, whose child, where it stands, and which marks its environment has.
//
// Invariants:
//   - A process is known by its id and its start time together ([ID]), so that a recycled id is
//     never taken for the process that had it before.
//   - A zombie is dead: it runs nothing and holds no file. A process whose first thread has ended
//     while others run is alive.
//   - A process that ends while it is being read is left out or reported as [ErrGone], and never as
//     another error.
package table

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ErrGone says that the process has ended, or that its id now belongs to another one.
var ErrGone = errors.New("no such process any more")

// Root is where the process table is mounted. Everything except tests uses [System].
type Root string

// System is the process table of this machine.
const System Root = "/proc"

// ID tells one process from every other since the machine started.
type ID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks from boot to its start
}

// String shows the process id and the start, as in "4711@883210".
func (id ID) String() string { return fmt.Sprintf("%d@%d", id.PID, id.Start) }

// Entry is one line of the process table.
type Entry struct {
	ID
	Parent  int
	Group   int // process group
	Session int
	Name    string // at most 15 bytes of the program's name
	State   byte   // R, S, D, T, Z, … as in proc_pid_stat(5)
	Threads int
	Ticks   uint64 // CPU used, its waited-for children included, in clock ticks
	Size    uint64 // bytes of address space
	Kernel  bool   // a thread of the kernel's own
}

// Ending reports whether the process has given up its memory, so that its program runs no more. It
// may still have files to close.
func (e Entry) Ending() bool { return e.Size == 0 && e.Threads <= 1 }

// Dead reports whether the entry is only what is left to be waited for.
func (e Entry) Dead() bool {
	return e.State == 'X' || e.State == 'x' || (e.State == 'Z' && e.Threads <= 1)
}

// Get reads the entry of a process id, dead or not. It returns ErrGone if there is none.
func (r Root) Get(pid int) (Entry, error) {
	text, err := os.ReadFile(r.path(pid, "stat"))
	if err != nil {
		return Entry{}, gone(pid, err)
	}
	entry, err := parseStat(string(text))
	if err != nil {
		return Entry{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	return entry, nil
}

// Live reads the entry of exactly this process. It returns ErrGone if the process is dead, or if
// its id now belongs to another process.
func (r Root) Live(id ID) (Entry, error) {
	entry, err := r.Get(id.PID)
	if err != nil {
		return Entry{}, err
	}
	if entry.ID != id || entry.Dead() {
		return Entry{}, fmt.Errorf("process %s: %w", id, ErrGone)
	}
	return entry, nil
}

// IDs lists the process ids that are taken, by the living and the dead.
func (r Root) IDs() ([]int, error) {
	dir, err := os.Open(string(r))
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// All reads every process that is alive. What is forked meanwhile may be missing.
func (r Root) All() ([]Entry, error) {
	pids, err := r.IDs()
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(pids))
	for _, pid := range pids {
		entry, err := r.Get(pid)
		switch {
		case errors.Is(err, ErrGone):
		case err != nil:
			return nil, err
		case !entry.Dead():
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// Dir returns the working directory. It returns an error if that cannot be read, as happens to an
// ordinary user with the processes of others.
func (r Root) Dir(pid int) (string, error) {
	dir, err := os.Readlink(r.path(pid, "cwd"))
	if err != nil {
		return "", gone(pid, err)
	}
	return dir, nil
}

// Arguments returns the program and its arguments, as the process was started. It returns none for
// a process that is gone or dead.
func (r Root) Arguments(pid int) []string {
	text, err := os.ReadFile(r.path(pid, "cmdline"))
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// HasEnv reports whether the environment that the process was started with has exactly name=value.
// A program may have overwritten that area.
func (r Root) HasEnv(pid int, assignment string) bool {
	text, err := os.ReadFile(r.path(pid, "environ"))
	if err != nil {
		return false
	}
	for one := range bytes.SplitSeq(text, []byte{0}) {
		if string(one) == assignment {
			return true
		}
	}
	return false
}

// UID returns the real user id.
func (r Root) UID(pid int) (int, error) {
	fields, err := r.Status(pid, "Uid")
	if err != nil {
		return 0, err
	}
	uid, err := strconv.Atoi(strings.Fields(fields["Uid"] + " ?")[0])
	if err != nil {
		return 0, fmt.Errorf("read user of process %d: %w", pid, err)
	}
	return uid, nil
}

// Status returns the named lines of /proc/PID/status, without their names.
func (r Root) Status(pid int, names ...string) (map[string]string, error) {
	text, err := os.ReadFile(r.path(pid, "status"))
	if err != nil {
		return nil, gone(pid, err)
	}
	found := make(map[string]string, len(names))
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		for _, want := range names {
			if name == want {
				found[name] = strings.TrimSpace(value)
			}
		}
	}
	return found, nil
}

// Era names what makes process ids comparable: this boot of this machine, and this namespace of
// process ids. Ids that were recorded in another era mean nothing.
func (r Root) Era() (string, error) {
	boot, err := os.ReadFile(filepath.Join(string(r), "sys/kernel/random/boot_id"))
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	space, err := os.Readlink(filepath.Join(string(r), "self/ns/pid"))
	if err != nil {
		return "", fmt.Errorf("read process id namespace: %w", err)
	}
	return strings.TrimSpace(string(boot)) + " " + space, nil
}

func (r Root) path(pid int, file string) string {
	return filepath.Join(string(r), strconv.Itoa(pid), file)
}

// gone returns ErrGone for the two errors by which /proc tells that a process has ended.
func gone(pid int, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	return fmt.Errorf("read process %d: %w", pid, err)
}

// InGroup reports whether a process is in a control group whose path has the given part as whole
// names. part begins with a slash.
func (r Root) InGroup(pid int, part string) bool {
	text, err := os.ReadFile(r.path(pid, "cgroup"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(strings.TrimSpace(line)+"/", part+"/") {
			return true
		}
	}
	return false
}
