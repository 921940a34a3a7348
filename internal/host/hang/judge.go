// Package hang decides whether a PostgreSQL hangs. It decides by looks: when it answered, what its
// processes do, how long a small write has waited. Others look at PostgreSQL. This package itself
// reads only the process table and the kernel's counters, and never a disk: the disk may be what
// hangs.
package hang

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// A PostgreSQL may hang while its process, its Patroni and its host look healthy: it is stopped, or
// it waits for a disk that does not answer. Nobody but a user would notice. So this asks of
// PostgreSQL what a user asks: to answer, and to commit a small write.

// Patience says when a PostgreSQL counts as hanging.
type Patience struct {
	// Silence is how long it may answer nobody while none of its processes does anything.
	Silence time.Duration
	// Stall is how long a small write may wait while a process of the server waits for the disk. It
	// is also how long a server that waits for its disk or for a processor may answer nobody.
	Stall time.Duration
}

// DefaultPatience does not end a server for a disk write that takes three seconds behind another
// such write.
var DefaultPatience = Patience{Silence: 2500 * time.Millisecond, Stall: 8 * time.Second}

const (
	// Every is the pause between two looks at a PostgreSQL that does not answer.
	Every = 250 * time.Millisecond
	// gap is the longest pause between two looks. After a longer one this process stood still
	// itself, and knows nothing.
	gap = 4 * Every
	// SlowDisk is by which factor longer a write may wait while the disk completes others.
	SlowDisk = 4
)

// Look is what was seen of a PostgreSQL at one moment.
type Look struct {
	At       time.Time
	Answered time.Time // it answered somebody last, with whatever
	Activity Activity  // of its processes
	Writing  time.Time // a small write has been under way since; zero: none is
	Writes   int64     // that its disk has completed; -1: nobody tells
}

// Activity is what the processes of a PostgreSQL have done up to a moment.
type Activity struct {
	Postmaster int64         // its time on a processor
	All        map[int]int64 // the same of every process, by its number
	// Waits says that a process waits for a disk or for a processor. It would do something if it
	// could.
	Waits bool
	// disk has all processes that wait for a disk.
	disk []int
}

// diskWait is a process that has waited for a disk at every look.
type diskWait struct {
	since, seen time.Time
	used        int64 // its time on a processor, at since
}

// idleShare is the part of a time: a process that used less than 1/idleShare of it did nothing. A
// process that waits until less of its memory has to be written to the disk looks five times a
// second whether it may go on. That takes it some 50 µs each time.
const idleShare = 1000

// Judge makes a verdict from looks at one PostgreSQL.
type Judge struct {
	Patience Patience
	last     Look
	since    time.Time // what came before does not count
	moved    time.Time // a process was seen to do something
	headMove time.Time // the postmaster was
	writing  time.Time // the write that writes is about
	writes   int64     // what the disk had completed when it was seen first
	disk     map[int]diskWait
}

// Reset forgets everything, because it is another PostgreSQL or because this process stood still.
func (j *Judge) Reset(now time.Time) {
	*j = Judge{Patience: j.Patience, since: now, moved: now, headMove: now}
}

// Verdict says, after one more look, why a PostgreSQL hangs. It returns "" if it does not hang.
func (j *Judge) Verdict(l Look) string {
	if l.At.Sub(j.last.At) > gap {
		j.Reset(l.At)
	}
	j.follow(l)
	silent := l.At.Sub(Later(l.Answered, j.since))
	still := l.At.Sub(j.moved)
	switch {
	case silent >= j.Patience.Silence && still >= j.Patience.Silence/2 && !l.Activity.Waits:
		return fmt.Sprintf("it has answered nobody for %s, and none of its processes does anything", round(silent))
	case silent >= j.Patience.Stall && l.At.Sub(j.headMove) >= j.Patience.Silence:
		return fmt.Sprintf("it has answered nobody for %s, and its main process does nothing", round(silent))
	}
	return j.stalled(l)
}

// follow records which processes have done something.
func (j *Judge) follow(l Look) {
	if !maps.Equal(l.Activity.All, j.last.Activity.All) {
		j.moved = l.At
	}
	if l.Activity.Postmaster != j.last.Activity.Postmaster {
		j.headMove = l.At
	}
	if !l.Writing.Equal(j.writing) {
		j.writing, j.writes = l.Writing, l.Writes
	}
	j.followDisk(l)
	j.last = l
}

// followDisk records which processes wait for a disk, and since when without a step. The kernel's
// list of children may lack one while others come and go, so a process that is not in it stays for
// a while.
func (j *Judge) followDisk(l Look) {
	maps.DeleteFunc(j.disk, func(pid int, w diskWait) bool {
		_, listed := l.Activity.All[pid]
		return listed && !slices.Contains(l.Activity.disk, pid) || l.At.Sub(w.seen) > gap
	})
	for _, pid := range l.Activity.disk {
		w, known := j.disk[pid]
		used := l.Activity.All[pid] - w.used
		if !known || used < 0 || used > int64(l.At.Sub(w.since))/idleShare {
			w = diskWait{since: l.At, used: l.Activity.All[pid]}
		}
		w.seen = l.At
		if j.disk == nil {
			j.disk = map[int]diskWait{}
		}
		j.disk[pid] = w
	}
}

// diskWaiter returns the process that has waited longest for a disk, or 0 if none does.
func (j *Judge) diskWaiter() (pid int, since time.Time) {
	for p, w := range j.disk {
		if pid == 0 || w.since.Before(since) || w.since.Equal(since) && p < pid {
			pid, since = p, w.since
		}
	}
	return pid, since
}

// stalled judges the small write. A write may wait for much that is no disk: for a lock in front of
// all logins, for a processor, for a place among too many sessions. The disk is to blame only if a
// process of the server has waited for it all that time. A disk that completes what others write is
// busy, and gets more time.
func (j *Judge) stalled(l Look) string {
	pid, since := j.diskWaiter()
	if l.Writing.IsZero() || pid == 0 {
		return ""
	}
	patience := j.Patience.Stall
	if l.Writes > j.writes {
		patience *= SlowDisk
	}
	if waited := l.At.Sub(Later(Later(l.Writing, since), j.since)); waited >= patience {
		return fmt.Sprintf("a small write has waited %s for its disk, and so has process %d", round(waited), pid)
	}
	return ""
}

// Later returns the later one of two moments.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
