// Package cgroup finds the control groups that this host lets us use, of version 1, version 2 or
// both, and reads and writes their files.
//
// Invariants:
//   - A file is never created. If a file is not there, the feature is not there.
//   - Only directories below the top group that the caller names are made or removed. None is
//     removed while the kernel counts a process in it.
//   - Whatever cannot be used has a reason in words for the user.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ErrBusy says that a group still holds a process.
var ErrBusy = errors.New("a process is left in the control group")

// makeTries is how often Make starts over when someone removes an empty group
// above the one that is being made.
const makeTries = 10

// Make makes a group and those above it. It is idempotent.
func Make(dir string) error {
	var err error
	for range makeTries {
		if err = os.MkdirAll(dir, 0o755); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("make control group: %w", err)
	}
	return nil
}

// Remove removes a group and all groups below it. It returns ErrBusy if a process is left in one of
// them. It is idempotent.
func Remove(dir string) error {
	for _, child := range children(dir) {
		if err := Remove(child); err != nil {
			return err
		}
	}
	err := syscall.Rmdir(dir)
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.ENOTEMPTY):
		return fmt.Errorf("remove %s: %w", dir, ErrBusy)
	}
	return fmt.Errorf("remove control group %s: %w", dir, err)
}

// Add moves a process with all its threads into a group.
func Add(dir string, pid int) error { return put(dir, "cgroup.procs", strconv.Itoa(pid)) }

// AddThread moves one thread into a group of version 1.
func AddThread(dir string, tid int) error { return put(dir, "tasks", strconv.Itoa(tid)) }

// Processes lists the process ids in a group and in all groups below it. It returns none if there
// is no such group. Dead processes that wait for their parent are not listed.
func Processes(dir string) ([]int, error) {
	text, err := get(dir, "cgroup.procs")
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, field := range strings.Fields(text) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("read processes of %s: %w", dir, err)
		}
		pids = append(pids, pid)
	}
	for _, child := range children(dir) {
		below, err := Processes(child)
		if err != nil {
			return nil, err
		}
		pids = append(pids, below...)
	}
	return pids, nil
}

// Populated reports whether the kernel counts a live process in a group of version 2 or below it.
// It returns false if there is no such group.
func Populated(dir string) (bool, error) {
	text, err := get(dir, "cgroup.events")
	if missing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	value, err := keyed(text, "populated")
	if err != nil {
		return false, fmt.Errorf("read events of %s: %w", dir, err)
	}
	return value != 0, nil
}

// Kill sends SIGKILL to everything in a group of version 2 and below it, also to what is being
// forked. It is no error if the group is not there.
func Kill(dir string) error {
	if err := put(dir, "cgroup.kill", "1"); err != nil && !missing(err) {
		return err
	}
	return nil
}

// HasKill reports whether the kernel has cgroup.kill (since Linux 5.14).
func HasKill(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "cgroup.kill"))
	return err == nil
}

// Freeze stops everything in a group and below it, or lets it go on. It only asks for it: what is
// to be frozen may still be on its way.
func Freeze(version Version, dir string, frozen bool) error {
	file, text := "cgroup.freeze", "0"
	if frozen {
		text = "1"
	}
	if version == V1 {
		file, text = "freezer.state", "THAWED"
		if frozen {
			text = "FROZEN"
		}
	}
	if err := put(dir, file, text); err != nil && !missing(err) {
		return err
	}
	return nil
}

// Frozen reports whether everything in a group has come to a stop.
func Frozen(version Version, dir string) (bool, error) {
	if version == V1 {
		text, err := get(dir, "freezer.state")
		return strings.TrimSpace(text) == "FROZEN", err
	}
	text, err := get(dir, "cgroup.events")
	if err != nil {
		return false, err
	}
	value, err := keyed(text, "frozen")
	return value != 0, err
}

func children(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var dirs []string
	for _, entry := range entries {
		if entry.IsDir() {
			dirs = append(dirs, filepath.Join(dir, entry.Name()))
		}
	}
	return dirs
}

// keyed reads a file of "name value" lines.
func keyed(text, name string) (int64, error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 2 && fields[0] == name {
			return strconv.ParseInt(fields[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("no line %q", name)
}

func get(dir, file string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return "", fmt.Errorf("read control group: %w", err)
	}
	return string(text), nil
}

// put writes a control file in one write call, as the kernel demands.
func put(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("write control group: %w", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %q to control group: %w", text, err)
	}
	return nil
}

// missing reports whether an error says that a group is not there, or was removed while it was
// open.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}
