package database

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"howdah/internal/host/database/dial"
	"howdah/internal/host/database/probe"
	"howdah/internal/host/hang"
	"howdah/internal/host/pace"
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
	host  *Host
	probe *probe.Prober
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
	return &hangWatch{host: a, probe: r.probe, write: &writeProbe{host: a}, tell: r.endHang}
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
	j := hang.Judge{Patience: w.host.Hang}
	var target hangTarget
	device := ""
	for pace.Sleep(ctx, hang.Every) {
		now := time.Now()
		if next := w.aimed(); !next.same(target) {
			target = next
			j.Reset(now)
			w.write.forget()
			w.note(hanging{})
			device = hang.DiskOf(w.host.MemberDir(next.member.ID), next.member.ID)
		} else {
			target.member = next.member
		}
		if target.postmaster == (proc.Process{}) {
			continue
		}
		if !w.host.Procs.Alive(target.postmaster) {
			j.Reset(now) // it has ended, which the runner is told of
			continue
		}
		if target.primary {
			w.write.poke(ctx, target.member, w.probe)
		}
		w.look(ctx, &j, target, device)
	}
}

// look makes one look, and tells what it came to.
func (w *hangWatch) look(ctx context.Context, j *hang.Judge, target hangTarget, device string) {
	l := hang.Look{At: time.Now(), Answered: w.answered(), Writes: -1}
	if target.primary {
		l.Writing = w.write.waiting()
	}
	if quiet := l.At.Sub(l.Answered) > answerPause; quiet || !l.Writing.IsZero() {
		l.Activity, l.Writes = hang.ActivityOf(w.host.Procs, target.postmaster), hang.DiskWrites(device)
		if quiet {
			w.ask(ctx, target.member)
		}
	}
	why := j.Verdict(l)
	old := w.last()
	if why == "" {
		if old.why != "" {
			w.host.Log.Info("PostgreSQL hangs no more", "member", target.member.ID)
			w.note(hanging{})
		}
		return
	}
	h := hanging{postmaster: target.postmaster, primary: target.primary, why: why, since: old.since}
	if old.why == "" {
		h.since = l.At
		w.host.Log.Warn("PostgreSQL hangs", "member", target.member.ID, "why", why)
	}
	w.note(h)
	if l.At.Sub(w.told) >= tellEvery {
		w.told = l.At
		w.tell(ctx, target.member, h)
	}
}

// answered is when the server said anything to anybody last.
func (w *hangWatch) answered() time.Time {
	w.mu.Lock()
	echo := w.echo
	w.mu.Unlock()
	return hang.Later(hang.Later(echo, w.probe.AnsweredAt()), w.write.answeredAt())
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
		answers := dial.Answers(ctx, net.JoinHostPort(m.Address, strconv.Itoa(m.Port)), w.host.Hang.Stall)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asking--
		if answers {
			w.echo = time.Now()
		}
	}()
}

// aimHangs has a PostgreSQL looked after that has served since it was started.
func (r *runner) aimHangs() {
	s := r.probe.Last()
	serving := r.hangs.aimed()
	switch {
	case r.Want.Want != member.Running || !r.postmaster.Alive() || !r.patroni.Alive():
		r.hangs.aim(hangTarget{})
	case s.Ready:
		r.hangs.aim(hangTarget{r.Want, r.postmaster.Process, !s.Facts.InRecovery})
	case serving.postmaster != r.postmaster.Process:
		r.hangs.aim(hangTarget{})
	}
}
