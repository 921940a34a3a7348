package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"howdah/internal/member"
)

// retryAfter is the pause before a task that failed is tried again.
const retryAfter = 5 * time.Second

// handOver gives the primary role to a standby, in the orderly way of
// spec/ha.md A4.5, for the request of this name, and answers true once the new
// primary serves. target is the seat that shall win, or "".
func (w *work) handOver(request, target string) bool {
	if result, ok := w.lastResult(request); ok && result.Done {
		return w.afterHandover(result)
	}
	leader := w.leader()
	if leader == nil || !w.ready(leader) {
		w.doing("waiting for a primary")
		return false
	}
	next := w.successor(target)
	if next == nil {
		w.doing("waiting for a standby in sync")
		return false
	}
	if target != "" && leader.Seat == target {
		return true
	}
	for _, m := range w.members() {
		m.Boost = m == next
	}
	if !w.applied(next) || !w.boosted(next) {
		w.doing("preparing " + next.Name + " to take over")
		return false
	}
	w.doing("handing over to " + next.Name)
	_, failed := w.task(member.Handover, request, leader)
	if failed != "" {
		w.problem("handing over from " + leader.Name + " failed and is tried again: " + failed)
	}
	return false
}

// boosted: the boost of this decision was in the layout before, so that what was
// assigned and applied includes it.
func (w *work) boosted(m *Placed) bool {
	return slices.ContainsFunc(w.Layout.Members, func(before Placed) bool { return before.Name == m.Name && before.Boost })
}

func (w *work) afterHandover(result member.Result) bool {
	leader := w.leader()
	if leader == nil || ID(w.Want.ID, leader.Name) == result.Member || !w.ready(leader) {
		// The old primary may win its role back when the new one fails meanwhile.
		if leader == nil || w.Now.Sub(result.Ended) < TaskDeadline {
			w.doing("waiting for the new primary")
			return false
		}
	}
	for _, m := range w.members() {
		m.Boost = false
	}
	return true
}

// successor is the standby that would take over: that of the wanted seat, or the
// first of the promotion order that is in sync.
func (w *work) successor(target string) *Placed {
	var best *Placed
	for _, m := range w.members() {
		if m.Name == w.Leader || !w.ready(m) || !w.inSync(m) || m.Going == Surplus {
			continue
		}
		seat, _ := w.seatOf(m)
		if seat.NoFailover || (target != "" && m.Seat != target) {
			continue
		}
		if best == nil || w.preferred(m, best) {
			best = m
		}
	}
	return best
}

func (w *work) preferred(a, b *Placed) bool {
	if (a.Going == Staying) != (b.Going == Staying) {
		return a.Going == Staying
	}
	seatA, _ := w.seatOf(a)
	seatB, _ := w.seatOf(b)
	return seatA.Tier < seatB.Tier
}

// task asks a member's host for something once. It answers done, or why it
// failed; a failed task is asked for again after a pause, under a new id.
func (w *work) task(kind member.TaskKind, request string, m *Placed) (done bool, failed string) {
	attempt := 1
	if last, ok := w.lastResult(request); ok {
		if last.Done {
			return true, ""
		}
		if last.Failed {
			failed = last.Detail
			attempt = w.attempts(request) + 1
			if w.Now.Sub(last.Ended) < retryAfter {
				return false, failed
			}
		}
	}
	w.out.Tasks = append(w.out.Tasks, member.Task{
		ID: fmt.Sprintf("%s#%d", request, attempt), Kind: kind, Host: m.Host,
		Member: ID(w.Want.ID, m.Name), Deadline: w.Now.Add(TaskDeadline),
	})
	return false, failed
}

// began: a task of this request was asked for in an earlier decision.
func (w *work) began(request string) bool { return w.attempts(request) > 0 }

func (w *work) attempts(request string) int {
	n := 0
	for id := range w.Results {
		if strings.HasPrefix(id, request+"#") {
			n++
		}
	}
	return n
}

func (w *work) lastResult(request string) (member.Result, bool) {
	n := w.attempts(request)
	if n == 0 {
		return member.Result{}, false
	}
	r, ok := w.Results[fmt.Sprintf("%s#%d", request, n)]
	return r, ok
}
