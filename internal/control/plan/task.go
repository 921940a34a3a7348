package plan

import (
	"fmt"
	"strings"
	"time"

	"howdah/internal/model/member"
)

const (
	// TaskDeadline is how long a task may take before it counts as failed.
	TaskDeadline = 2 * time.Minute
	// taskGrace is how much longer its result may take to arrive.
	taskGrace = 10 * time.Second
	// retryAfter is the pause before a task that failed is asked for again.
	retryAfter = 5 * time.Second
	// userTries is how often a task is asked for if a user waits for it.
	userTries = 3
)

// Asked is the last task that was asked for. Its times are by the planner's clock: the clocks of
// hosts decide nothing.
type Asked struct {
	Request string    `json:"request"`
	Attempt int       `json:"attempt"`
	Member  string    `json:"member"` // name of the one that was asked
	At      time.Time `json:"at"`
	// Ended is when its end was noticed; zero until then.
	Ended time.Time `json:"ended,omitzero"`
}

// ID returns the id of the task.
func (a Asked) ID() string { return fmt.Sprintf("%s#%d@%s", a.Request, a.Attempt, a.Member) }

// Awaits reports whether the planner still waits for the result of a task.
func (l Layout) Awaits(task string) bool {
	return l.Asked != nil && l.Asked.Ended.IsZero() && l.Asked.ID() == task
}

type stage int

const (
	unasked stage = iota
	waiting       // for its result
	failed        // the last attempt
	done
)

// progress says how far a request for a task has come.
type progress struct {
	stage  stage
	member string        // the one that was asked last
	detail string        // why it failed
	ended  time.Duration // ago
}

// progress reads the result of the last attempt, and notes its end the first time it sees that. If
// another request came in between, only a success counts. Otherwise the request begins again with
// new task ids, as no id is done twice.
func (t tasks) progress(request string) progress {
	a := t.out.Layout.Asked
	if a == nil || a.Request != request {
		if name, ok := t.doneBy(request); ok {
			return progress{stage: done, member: name, ended: TaskDeadline}
		}
		return progress{}
	}
	p := progress{stage: waiting, member: a.Member}
	result, begun := t.Results[a.ID()]
	switch {
	case begun && result.Done:
		p.stage = done
	case begun && result.Failed:
		p.stage, p.detail = failed, result.Detail
	case t.Now.Sub(a.At) > TaskDeadline+taskGrace:
		p.stage, p.detail = failed, "no answer of "+a.Member
	default:
		return p
	}
	p.ended = t.endedFor()
	return p
}

// doneBy returns the member that did what a request is about.
func (t tasks) doneBy(request string) (name string, ok bool) {
	for id, r := range t.Results {
		if r.Done && strings.HasPrefix(id, request+"#") {
			_, by, _ := strings.Cut(r.Member, ".")
			name, ok = max(name, by), true
		}
	}
	return name, ok
}

// endedFor returns for how long the planner has known that the last attempt ended.
func (t tasks) endedFor() time.Duration {
	a := *t.out.Layout.Asked
	if a.Ended.IsZero() {
		a.Ended = t.Now
		t.out.Layout.Asked = &a
	}
	return t.Now.Sub(a.Ended)
}

// task asks a member's host for something once. It returns whether that is done, or else why the
// last attempt failed. After a failure it pauses, and tries again.
func (t tasks) task(kind member.TaskKind, request string, m *Placed) (isDone bool, detail string) {
	p := t.progress(request)
	if _, ok := t.doneBy(request); ok {
		return true, ""
	}
	switch {
	case p.stage == waiting && (p.member == m.Name || t.answers(p.member)):
		return false, ""
	case p.stage == failed && p.ended < retryAfter:
		return false, p.detail
	}
	if !t.busy(request) {
		t.ask(kind, request, m)
	}
	return false, p.detail
}

// busy reports whether a task of another request is under way whose end can still be told. Two
// deeds on one database never overlap. A task whose end was noticed is not waited for: its result
// may be swept by now.
func (t tasks) busy(request string) bool {
	a := t.out.Layout.Asked
	return a != nil && a.Request != request && a.Ended.IsZero() && t.progress(a.Request).stage == waiting && t.answers(a.Member)
}

func (t tasks) ask(kind member.TaskKind, request string, m *Placed) {
	a := Asked{Request: request, Attempt: t.tries(request) + 1, Member: m.Name, At: t.Now}
	t.out.Layout.Asked = &a
	t.out.Tasks = append(t.out.Tasks, member.Task{
		ID: a.ID(), Kind: kind, Host: m.Host, Member: t.id(m), Within: TaskDeadline, Deadline: t.Now.Add(TaskDeadline),
		Force: kind == member.Handover && t.forced(request),
	})
}

// tries returns how often a request was asked for.
func (t tasks) tries(request string) int {
	if a := t.out.Layout.Asked; a != nil && a.Request == request {
		return a.Attempt
	}
	return 0
}

// exhausted reports whether the request was tried often enough for a user who waits.
func (t tasks) exhausted(request string) bool {
	return t.progress(request).stage == failed && t.tries(request) >= userTries
}

// outstanding reports whether the request was asked for, and is neither done nor given up.
func (t tasks) outstanding(request string) bool {
	stage := t.progress(request).stage
	return stage == waiting || stage == failed
}

// answers reports whether the member's host can still say how its task ended.
func (t tasks) answers(name string) bool {
	for _, m := range t.members() {
		if m.Name == name {
			return t.alive(m)
		}
	}
	return false
}
