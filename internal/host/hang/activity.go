package hang

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"howdah/internal/host/proc"
)

// ActivityOf is what a postmaster and its children have done so far. It reads
// the process table alone.
func ActivityOf(procs *proc.Host, postmaster proc.Process) Activity {
	a := Activity{All: map[int]int64{}}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", postmaster.PID)) // none, if it ended
	for _, text := range append(strings.Fields(string(children)), strconv.Itoa(postmaster.PID)) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			continue
		}
		process, err := procs.Find(pid)
		if err != nil {
			continue
		}
		entry, err := procs.Look(process)
		if err != nil {
			continue
		}
		a.All[pid] = processorTime(pid, entry)
		if entry.State == 'D' {
			a.disk = append(a.disk, pid)
		}
		a.Waits = a.Waits || entry.State == 'D' || entry.State == 'R'
	}
	a.Postmaster = a.All[postmaster.PID]
	return a
}

// processorTime is how long a process ran: in nanoseconds where the kernel counts them,
// or else in its clock's ticks.
func processorTime(pid int, entry proc.Entry) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		if n, err := strconv.ParseInt(first, 10, 64); err == nil {
			return n
		}
	}
	return int64(entry.Ticks)
}

// DiskOf is where the kernel counts what the disk below dir does; "" where it does not.
// It is asked for once, while the disk still answers.
func DiskOf(dir, id string) string {
	var stat syscall.Stat_t
	if id == "" || syscall.Stat(dir, &stat) != nil {
		return ""
	}
	major, minor := stat.Dev>>8&0xfff, stat.Dev&0xff|stat.Dev>>12&0xfff00
	path := fmt.Sprintf("/sys/dev/block/%d:%d/stat", major, minor)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// DiskWrites is how many writes and flushes a disk has completed; -1 where nobody tells.
func DiskWrites(path string) int64 {
	if path == "" {
		return -1
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return -1
	}
	// Fields of the kernel's Documentation/block/stat.rst, from 0: 4 are completed writes,
	// 15 completed flushes.
	fields := strings.Fields(string(text))
	var done int64
	for _, i := range []int{4, 15} {
		if i < len(fields) {
			n, _ := strconv.ParseInt(fields[i], 10, 64)
			done += n
		}
	}
	return done
}
