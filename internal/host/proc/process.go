package proc

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"howdah/internal/host/proc/table"
)

// Process identifies one process by its id and its start time, also when it is dead and its id
// belongs to another one. It can be stored and compared.
type Process = table.ID

// ErrGone says that a process has ended.
var ErrGone = table.ErrGone

// Find identifies the live process that has this id now, on this machine. It returns ErrGone if
// there is none.
func Find(pid int) (Process, error) { return find(table.System, pid) }

// Find is like the function Find, in the process table of the host.
func (h *Host) Find(pid int) (Process, error) { return find(h.processes, pid) }

func find(root table.Root, pid int) (Process, error) {
	entry, err := root.Get(pid)
	if err != nil {
		return Process{}, err
	}
	if entry.Dead() {
		return Process{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	return entry.ID, nil
}

// Entry is a line of the process table: name, parent, state.
type Entry = table.Entry

// Look reads the line of exactly this process. It returns ErrGone if the process has ended.
func (h *Host) Look(process Process) (Entry, error) { return h.processes.Live(process) }

// Alive reports whether exactly this process runs. A zombie does not.
func (h *Host) Alive(process Process) bool {
	_, err := h.processes.Live(process)
	return err == nil
}

// Survives reports whether exactly this process handles or ignores a signal. Otherwise the signal
// may end it. It returns ErrGone if the process has ended.
func (h *Host) Survives(process Process, signal syscall.Signal) (bool, error) {
	return h.processes.Survives(process, signal)
}

// Signal sends a signal to exactly this process, on this machine. It returns ErrGone if the process has
// ended.
func Signal(process Process, signal syscall.Signal) error {
	return signalTo(table.System, process, signal)
}

// Signal is like the function Signal, in the process table of the host.
func (h *Host) Signal(process Process, signal syscall.Signal) error {
	return signalTo(h.processes, process, signal)
}

func signalTo(root table.Root, process Process, signal syscall.Signal) error {
	fd, err := open(root, process)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return sendSignal(fd, process.PID, signal)
}

func sendSignal(fd, pid int, signal syscall.Signal) error {
	err := unix.PidfdSendSignal(fd, signal, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal process %d: %w", pid, ErrGone)
	}
	if err != nil {
		return fmt.Errorf("signal process %d: %w", pid, err)
	}
	return nil
}

// open returns a descriptor of exactly this process. It compares the identity after it has the
// descriptor. From then on the descriptor cannot mean another process, whoever gets the id.
func open(root table.Root, process Process) (int, error) {
	fd, err := openPID(process.PID)
	if err != nil {
		return -1, err
	}
	if _, err := root.Live(process); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func openPID(pid int) (int, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	if err != nil {
		return -1, fmt.Errorf("open process %d: %w", pid, err)
	}
	return fd, nil
}
