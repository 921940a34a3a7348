package hang

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"howdah/internal/host/proc"
)

// ActivityOf returns what a postmaster and its children have done so far. It reads only the process
// table.
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

// processorTime returns how long a process ran: in nanoseconds if the kernel counts them, or else
// in ticks of the kernel's clock.
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

// DiskOf returns where the kernel counts what the disk below dir does, or "" if it does not. Call
// it once, while the disk still answers.
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

// DiskWrites returns how many writes and flushes a disk has completed, or -1 if nobody tells.
func DiskWrites(path string) int64 {
	if path == "" {
		return -1
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return -1
	}
	// These are fields of the kernel's Documentation/block/stat.rst, counted from 0: 4 has
	// completed writes, 15 has completed flushes.
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
