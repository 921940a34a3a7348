package agent

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// A PostgreSQL may hang while its process, its Patroni and its host look healthy: it is
// stopped, or it waits for a disk that does not answer. Nobody but a user would notice.
// What is asked of it here is what a user asks: to answer, and to commit a small write.

// HangPatience says when a PostgreSQL counts as hanging.
type HangPatience struct {
	// Silence is for how long it may answer nobody while none of its processes does
	// anything.
	Silence time.Duration
	// Stall is for how long a small write may wait while a process of the server waits for
	// the disk, and a server that waits for its disk or for a processor may answer nobody.
	Stall time.Duration
}

// DefaultHangPatience leaves a write to the disk of three seconds, and another one in
// front of it, alone.
var DefaultHangPatience = HangPatience{Silence: 2500 * time.Millisecond, Stall: 8 * time.Second}

const (
	// hangEvery is how often a PostgreSQL is looked at that does not answer.
	hangEvery = 250 * time.Millisecond
	// hangGap is the longest pause between two looks: after a longer one we stood still
	// ourselves, and know nothing.
	hangGap = 4 * hangEvery
	// slowDisk is how much longer a write may wait while the disk completes others.
	slowDisk = 4
)

// hangLook is what was seen of a PostgreSQL at one moment.
type hangLook struct {
	at       time.Time
	answered time.Time // it answered somebody last, with whatever
	activity activity  // of its processes
	writing  time.Time // a small write has been under way since; zero: none is
	writes   int64     // that its disk has completed; -1: nobody tells
}

// activity is what the processes of a PostgreSQL did until a moment.
type activity struct {
	postmaster int64         // its time on a processor
	all        map[int]int64 // the same of every process, by its number
	// waits: one of them waits for a disk, or for a processor. It would do something.
	waits bool
	// disk are those of all that wait for a disk.
	disk []int
}

// diskWait is a process that was seen to wait for a disk at every look.
type diskWait struct {
	since, seen time.Time
	used        int64 // its time on a processor, at since
}

// idleShare: who used less than this part of a time did nothing in it. A process that
// waits until less of its memory has to be written to the disk looks five times a second
// whether it may go on, which takes it some 50 µs.
const idleShare = 1000

// hangJudge makes a verdict of looks at one PostgreSQL.
type hangJudge struct {
	patience HangPatience
	last     hangLook
	since    time.Time // what came before does not count
	moved    time.Time // a process was seen to do something
	headMove time.Time // the postmaster was
	writing  time.Time // the write that writes is about
	writes   int64     // what the disk had completed when it was seen first
	disk     map[int]diskWait
}

// reset forgets everything: it is another PostgreSQL, or we stood still.
func (j *hangJudge) reset(now time.Time) {
	*j = hangJudge{patience: j.patience, since: now, moved: now, headMove: now}
}

// verdict says why a PostgreSQL hangs, after one more look; "" if it does not.
func (j *hangJudge) verdict(l hangLook) string {
	if l.at.Sub(j.last.at) > hangGap {
		j.reset(l.at)
	}
	j.follow(l)
	silent := l.at.Sub(later(l.answered, j.since))
	still := l.at.Sub(j.moved)
	switch {
	case silent >= j.patience.Silence && still >= j.patience.Silence/2 && !l.activity.waits:
		return fmt.Sprintf("it has answered nobody for %s, and none of its processes does anything", round(silent))
	case silent >= j.patience.Stall && l.at.Sub(j.headMove) >= j.patience.Silence:
		return fmt.Sprintf("it has answered nobody for %s, and its main process does nothing", round(silent))
	}
	return j.stalled(l)
}

// follow notes who has moved.
func (j *hangJudge) follow(l hangLook) {
	if !maps.Equal(l.activity.all, j.last.activity.all) {
		j.moved = l.at
	}
	if l.activity.postmaster != j.last.activity.postmaster {
		j.headMove = l.at
	}
	if !l.writing.Equal(j.writing) {
		j.writing, j.writes = l.writing, l.writes
	}
	j.followDisk(l)
	j.last = l
}

// followDisk notes who waits for a disk, and since when without a step. The kernel's list
// of children may lack one when others come and go, so who is not in it stays for a while.
func (j *hangJudge) followDisk(l hangLook) {
	maps.DeleteFunc(j.disk, func(pid int, w diskWait) bool {
		_, listed := l.activity.all[pid]
		return listed && !slices.Contains(l.activity.disk, pid) || l.at.Sub(w.seen) > hangGap
	})
	for _, pid := range l.activity.disk {
		w, known := j.disk[pid]
		used := l.activity.all[pid] - w.used
		if !known || used < 0 || used > int64(l.at.Sub(w.since))/idleShare {
			w = diskWait{since: l.at, used: l.activity.all[pid]}
		}
		w.seen = l.at
		if j.disk == nil {
			j.disk = map[int]diskWait{}
		}
		j.disk[pid] = w
	}
}

// diskWaiter is the process that has waited longest for a disk; 0: none does.
func (j *hangJudge) diskWaiter() (pid int, since time.Time) {
	for p, w := range j.disk {
		if pid == 0 || w.since.Before(since) || w.since.Equal(since) && p < pid {
			pid, since = p, w.since
		}
	}
	return pid, since
}

// stalled judges the small write. It may wait for much that is no disk: for a lock in
// front of all logins, for a processor, for a place among too many sessions. The disk is
// to blame only if a process of the server has waited for it all that time. A disk that
// completes what others write is busy, and gets more time.
func (j *hangJudge) stalled(l hangLook) string {
	pid, since := j.diskWaiter()
	if l.writing.IsZero() || pid == 0 {
		return ""
	}
	patience := j.patience.Stall
	if l.writes > j.writes {
		patience *= slowDisk
	}
	if waited := l.at.Sub(later(later(l.writing, since), j.since)); waited >= patience {
		return fmt.Sprintf("a small write has waited %s for its disk, and so has process %d", round(waited), pid)
	}
	return ""
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
