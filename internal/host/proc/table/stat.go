package table

import (
	"fmt"
	"strconv"
	"strings"
)

// Positions in /proc/PID/stat after the name, which is the second field and may
// hold spaces and parentheses; proc_pid_stat(5) counts from 1 with the id.
const (
	statState   = 0 // 3 - 3
	statParent  = 4 - 3
	statGroup   = 5 - 3
	statSession = 6 - 3
	statFlags   = 9 - 3
	statUser    = 14 - 3
	statChildSy = 17 - 3
	statThreads = 20 - 3
	statStart   = 22 - 3
	statSize    = 23 - 3
)

// kernelThread is PF_KTHREAD of the kernel's include/linux/sched.h.
const kernelThread = 0x00200000

func parseStat(text string) (Entry, error) {
	opened, closed := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if opened < 0 || closed < opened {
		return Entry{}, fmt.Errorf("stat line without a name: %q", text)
	}
	fields := strings.Fields(text[closed+1:])
	if len(fields) <= statSize {
		return Entry{}, fmt.Errorf("stat line of only %d fields: %q", len(fields)+2, text)
	}
	n := numbers{fields: fields}
	entry := Entry{
		ID:      ID{PID: n.number(strings.TrimSpace(text[:opened])), Start: n.at(statStart)},
		Parent:  int(n.at(statParent)),
		Group:   int(n.at(statGroup)),
		Session: int(n.at(statSession)),
		Name:    text[opened+1 : closed],
		State:   fields[statState][0],
		Threads: int(n.at(statThreads)),
		Size:    n.at(statSize),
		Kernel:  n.at(statFlags)&kernelThread != 0,
	}
	for field := statUser; field <= statChildSy; field++ {
		entry.Ticks += n.at(field)
	}
	return entry, n.err
}

// numbers reads several fields and keeps the first error. The kernel writes -1 for a group or
// session that it may not show. That is read as 0, which is nobody's.
type numbers struct {
	fields []string
	err    error
}

func (n *numbers) at(field int) uint64 {
	if strings.HasPrefix(n.fields[field], "-") {
		return 0
	}
	value, err := strconv.ParseUint(n.fields[field], 10, 64)
	if err != nil && n.err == nil {
		n.err = fmt.Errorf("stat field %d: %w", field+3, err)
	}
	return value
}

func (n *numbers) number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil && n.err == nil {
		n.err = fmt.Errorf("stat line's process id: %w", err)
	}
	return value
}
