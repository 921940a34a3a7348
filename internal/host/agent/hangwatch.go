package agent

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"howdah/internal/host/proc"
	"howdah/internal/model/member"
)

// answerPause is how long after its last answer a PostgreSQL is looked at closely.
const answerPause = 1200 * time.Millisecond

// tellEvery is how often it is tried to end a PostgreSQL that hangs.
const tellEvery = time.Second

// hangTarget is a PostgreSQL that has served; the zero one is none.
type hangTarget struct {
	member     member.Assignment
	postmaster proc.Process
	primary    bool
}

func (t hangTarget) same(other hangTarget) bool {
	return t.postmaster == other.postmaster && t.primary == other.primary
}

// hanging is what is known of a PostgreSQL that hangs.
type hanging struct {
	postmaster proc.Process
	primary    bool
	why        string // "" is none
	since      time.Time
}

// hangWatch looks whether a member's PostgreSQL hangs, beside the runner. It reads and
// writes no file: the disk may be what hangs.
type hangWatch struct {
	agent *Host
	probe *prober
	write *writeProbe
	tell  func(context.Context, member.Assignment, hanging) // again and again, as long as it hangs

	mu     sync.Mutex
	target hangTarget // guarded by mu
	found  hanging    // guarded by mu
	echo   time.Time  // guarded by mu: the postmaster answered last
	asking int        // guarded by mu: questions that are under way
	told   time.Time  // belongs to the goroutine
}

func newHangWatch(a *Host, r *runner) *hangWatch {
	return &hangWatch{agent: a, probe: r.probe, write: &writeProbe{agent: a}, tell: r.endHang}
}

func (w *hangWatch) aim(t hangTarget) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = t
}

func (w *hangWatch) aimed() hangTarget {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.target
}

// last is what was found last.
func (w *hangWatch) last() hanging {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.found
}

func (w *hangWatch) note(h hanging) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found = h
}

// run looks until ctx ends. What it asks may be answered late, or never: it waits for
// nothing.
func (w *hangWatch) run(ctx context.Context) {
	j := hangJudge{patience: w.agent.Hang}
	var target hangTarget
	device := ""
	for sleep(ctx, hangEvery) {
		now := time.Now()
		if next := w.aimed(); !next.same(target) {
			target = next
			j.reset(now)
			w.write.forget()
			w.note(hanging{})
			device = diskOf(w.agent.memberDir(next.member.ID), next.member.ID)
		} else {
			target.member = next.member
		}
		if target.postmaster == (proc.Process{}) {
			continue
		}
		if !w.agent.procs.Alive(target.postmaster) {
			j.reset(now) // it has ended, which the runner is told of
			continue
		}
		if target.primary {
			w.write.poke(ctx, target.member, w.probe)
		}
		w.look(ctx, &j, target, device)
	}
}

// look makes one look, and tells what it came to.
func (w *hangWatch) look(ctx context.Context, j *hangJudge, target hangTarget, device string) {
	l := hangLook{at: time.Now(), answered: w.answered(), writes: -1}
	if target.primary {
		l.writing = w.write.waiting()
	}
	if quiet := l.at.Sub(l.answered) > answerPause; quiet || !l.writing.IsZero() {
		l.activity, l.writes = lookAtActivity(w.agent.procs, target.postmaster), diskWrites(device)
		if quiet {
			w.ask(ctx, target.member)
		}
	}
	why := j.verdict(l)
	old := w.last()
	if why == "" {
		if old.why != "" {
			w.agent.Log.Info("PostgreSQL hangs no more", "member", target.member.ID)
			w.note(hanging{})
		}
		return
	}
	h := hanging{postmaster: target.postmaster, primary: target.primary, why: why, since: old.since}
	if old.why == "" {
		h.since = l.at
		w.agent.Log.Warn("PostgreSQL hangs", "member", target.member.ID, "why", why)
	}
	w.note(h)
	if l.at.Sub(w.told) >= tellEvery {
		w.told = l.at
		w.tell(ctx, target.member, h)
	}
}

// answered is when the server said anything to anybody last.
func (w *hangWatch) answered() time.Time {
	w.mu.Lock()
	echo := w.echo
	w.mu.Unlock()
	return later(later(echo, w.probe.answeredAt()), w.write.answeredAt())
}

// askMost bounds how many questions wait for a server that does not answer.
const askMost = 12

// ask asks the server whether it speaks TLS. An answer that comes late counts, too.
func (w *hangWatch) ask(ctx context.Context, m member.Assignment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asking >= askMost {
		return
	}
	w.asking++
	go func() {
		answers := postgresAnswers(ctx, net.JoinHostPort(m.Address, strconv.Itoa(m.Port)), w.agent.Hang.Stall)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asking--
		if answers {
			w.echo = time.Now()
		}
	}()
}

// lookAtActivity looks at what a postmaster and its children have done so far. It reads
// the process table alone.
func lookAtActivity(procs *proc.Host, postmaster proc.Process) activity {
	a := activity{all: map[int]int64{}}
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
		a.all[pid] = processorTime(pid, entry)
		if entry.State == 'D' {
			a.disk = append(a.disk, pid)
		}
		a.waits = a.waits || entry.State == 'D' || entry.State == 'R'
	}
	a.postmaster = a.all[postmaster.PID]
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

// diskOf is where the kernel counts what the disk below dir does; "" where it does not.
// It is asked for once, while the disk still answers.
func diskOf(dir, id string) string {
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

// diskWrites is how many writes and flushes a disk has completed; -1 where nobody tells.
func diskWrites(path string) int64 {
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

// aimHangs has a PostgreSQL looked after that has served since it was started.
func (r *runner) aimHangs() {
	s := r.probe.last()
	serving := r.hangs.aimed()
	switch {
	case r.want.Want != member.Running || !r.postmaster.alive() || !r.patroni.alive():
		r.hangs.aim(hangTarget{})
	case s.ready:
		r.hangs.aim(hangTarget{r.want, r.postmaster.process, !s.facts.InRecovery})
	case serving.postmaster != r.postmaster.process:
		r.hangs.aim(hangTarget{})
	}
}
