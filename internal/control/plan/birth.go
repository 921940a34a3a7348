package plan

import (
	"slices"
	"time"

	"howdah/internal/model/member"
)

// bornWithin is for how long a new database may wait for its first primary without
// anyone working on it. A bootstrap shows in Patroni's state; the member that did it
// leads a moment later.
const bornWithin = 15 * time.Second

// suspectFor is for how long nobody has to be seen at it before it is begun again. On a
// slow machine a bootstrap may begin after bornWithin, and Patroni shows it in its state a
// round after it took its key: a key that is deleted then lets a second member bootstrap,
// and the first one to be ready is left with data of its own, which nobody can use.
const suspectFor = 10 * time.Second

const (
	awaitPrimary = "waiting for a primary"
	suspectBirth = "looking whether anyone bootstraps"
)

// unstick has a new database bootstrapped again whose bootstrap stopped half way, and
// reports whether it had to do something. Patroni 4.1 does not do it by itself: its
// key that says that someone bootstraps has no lease, so that nobody begins again when
// that one died; and one that could not reach etcd in the middle makes its new primary
// a standby, and waits for the end of its recovery (ha.py: bootstrap, post_bootstrap).
// There was no primary ever, so that no user's data are at stake.
func (w *work) unstick() bool {
	steps := w.out.Layout.Steps
	if !w.Unborn || w.Leader != "" || w.out.Layout.Created || len(steps) == 0 {
		return false
	}
	last := steps[len(steps)-1]
	suspected := last.Name == suspectBirth
	if !suspected && (last.Name != awaitPrimary || w.Now.Sub(last.Began) < bornWithin) {
		return false
	}
	// Who cannot be seen may be at it.
	all := w.out.Layout.Members
	if slices.ContainsFunc(all, func(m Placed) bool { return !w.alive(&m) || w.Making[w.id(&m)] }) {
		return false
	}
	return w.promoteNewborn() || w.beginAgain(suspected && w.Now.Sub(last.Began) >= suspectFor)
}

// promoteNewborn restarts a primary that became a standby: with its data Patroni knows
// how to go on.
func (w *work) promoteNewborn() bool {
	for _, m := range w.members() {
		r := w.report(m)
		request := w.request("birth", m.Name, w.Now.Unix())
		if r.Postgres && r.Ready && r.InRecovery && w.Want.Upstream == nil && !w.busy(request) {
			w.ask(member.Revive, request, m)
			w.doing("reviving the bootstrap of " + m.Name)
			return true
		}
	}
	return false
}

// beginAgain lets whoever is first bootstrap once more, once it is certain that nobody is
// at it.
func (w *work) beginAgain(certain bool) bool {
	for _, m := range w.members() {
		r := w.report(m)
		if _, lives := w.Applied[w.id(m)]; r.Postgres || !r.Patroni || !lives {
			return false
		}
	}
	if !certain {
		w.doing(suspectBirth)
		return true
	}
	w.out.Rebirth = true
	w.doing("beginning the bootstrap again")
	return true
}
