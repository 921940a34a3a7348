package watchdog

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"howdah/internal/host/agent"
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

// Target is a PostgreSQL that has served; the zero one is none.
type Target struct {
	Member     member.Assignment
	Postmaster proc.Process
	Primary    bool
}

func (t Target) same(other Target) bool {
	return t.Postmaster == other.Postmaster && t.Primary == other.Primary
}

// Hanging is what is known of a PostgreSQL that hangs.
type Hanging struct {
	Postmaster proc.Process
	Primary    bool
	Why        string // "" is none
	Since      time.Time
}

// Server looks whether a member's PostgreSQL hangs. It reads and
// writes no file: the disk may be what hangs.
type Server struct {
	agent    *agent.Agent
	patience hang.Patience
	probe    *probe.Prober
	write    *writeProbe
	tell     func(context.Context, member.Assignment, Hanging) // again and again, as long as it hangs

	mu     sync.Mutex
	target Target    // guarded by mu
	found  Hanging   // guarded by mu
	echo   time.Time // guarded by mu: the postmaster answered last
	asking int       // guarded by mu: questions that are under way
	told   time.Time // belongs to the goroutine
}

// NewServer makes one; tell is called again and again, as long as it hangs.
func NewServer(a *agent.Agent, patience hang.Patience, p *probe.Prober, tell func(context.Context, member.Assignment, Hanging)) *Server {
	return &Server{agent: a, patience: patience, probe: p, write: &writeProbe{agent: a, patience: patience}, tell: tell}
}

// Aim has another server looked at.
func (w *Server) Aim(t Target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = t
}

// Aimed is the one that is looked at.
func (w *Server) Aimed() Target {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.target
}

// Last is what was found last.
func (w *Server) Last() Hanging {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.found
}

// Writing is since when a write of the watch has been under way; zero: none is.
func (w *Server) Writing() time.Time { return w.write.waiting() }

func (w *Server) note(h Hanging) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found = h
}

// Run looks until ctx ends. What it asks may be answered late, or never: it waits for
// nothing.
func (w *Server) Run(ctx context.Context) {
	j := hang.Judge{Patience: w.patience}
	var target Target
	device := ""
	for pace.Sleep(ctx, hang.Every) {
		now := time.Now()
		if next := w.Aimed(); !next.same(target) {
			target = next
			j.Reset(now)
			w.write.forget()
			w.note(Hanging{})
			device = hang.DiskOf(w.agent.MemberDir(next.Member.ID), next.Member.ID)
		} else {
			target.Member = next.Member
		}
		if target.Postmaster == (proc.Process{}) {
			continue
		}
		if !w.agent.Procs.Alive(target.Postmaster) {
			j.Reset(now) // it has ended, which the member is told of
			continue
		}
		if target.Primary {
			w.write.poke(ctx, target.Member, w.probe)
		}
		w.look(ctx, &j, target, device)
	}
}

// look makes one look, and tells what it came to.
func (w *Server) look(ctx context.Context, j *hang.Judge, target Target, device string) {
	l := hang.Look{At: time.Now(), Answered: w.answered(), Writes: -1}
	if target.Primary {
		l.Writing = w.write.waiting()
	}
	if quiet := l.At.Sub(l.Answered) > answerPause; quiet || !l.Writing.IsZero() {
		l.Activity, l.Writes = hang.ActivityOf(w.agent.Procs, target.Postmaster), hang.DiskWrites(device)
		if quiet {
			w.ask(ctx, target.Member)
		}
	}
	why := j.Verdict(l)
	old := w.Last()
	if why == "" {
		if old.Why != "" {
			w.agent.Log.Info("PostgreSQL hangs no more", "member", target.Member.ID)
			w.note(Hanging{})
		}
		return
	}
	h := Hanging{Postmaster: target.Postmaster, Primary: target.Primary, Why: why, Since: old.Since}
	if old.Why == "" {
		h.Since = l.At
		w.agent.Log.Warn("PostgreSQL hangs", "member", target.Member.ID, "why", why)
	}
	w.note(h)
	if l.At.Sub(w.told) >= tellEvery {
		w.told = l.At
		w.tell(ctx, target.Member, h)
	}
}

// answered is when the server said anything to anybody last.
func (w *Server) answered() time.Time {
	w.mu.Lock()
	echo := w.echo
	w.mu.Unlock()
	return hang.Later(hang.Later(echo, w.probe.AnsweredAt()), w.write.answeredAt())
}

// askMost bounds how many questions wait for a server that does not answer.
const askMost = 12

// ask asks the server whether it speaks TLS. An answer that comes late counts, too.
func (w *Server) ask(ctx context.Context, m member.Assignment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asking >= askMost {
		return
	}
	w.asking++
	go func() {
		answers := dial.Answers(ctx, net.JoinHostPort(m.Address, strconv.Itoa(m.Port)), w.patience.Stall)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asking--
		if answers {
			w.echo = time.Now()
		}
	}()
}
