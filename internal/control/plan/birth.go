package plan

import (
	"slices"
	"time"

	"howdah/internal/model/member"
)

// bornWithin is how long a new database may wait for its first primary while nobody works on it.
// Patroni's state shows a bootstrap, and the member that did it leads a moment later.
const bornWithin = 15 * time.Second

// suspectFor is how long nobody must be seen to bootstrap before the bootstrap begins again. On a
// slow machine a bootstrap may begin after bornWithin, and Patroni's state shows it a round after
// it took its key. If that key is deleted, a second member bootstraps, and the first one is left
// with data of its own that nobody can use.
const suspectFor = 10 * time.Second

const (
	awaitPrimary = "waiting for a primary"
	suspectBirth = "looking whether anyone bootstraps"
)

// unstick restarts the bootstrap of a new database if it stopped half way, and reports whether it
// had to do something. Patroni 4.1 does not do that itself. Its key that says that someone
// bootstraps has no lease, so nobody begins again if that member died. A member that could not
// reach etcd in the middle makes its new primary a standby, and waits for the end of its recovery
// (ha.py: bootstrap, post_bootstrap). There has never been a primary, so no data of users are at
// risk.
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
	// A member that nobody can see may be bootstrapping.
	all := w.out.Layout.Members
	if slices.ContainsFunc(all, func(m Placed) bool { return !w.alive(&m) || w.Making[w.id(&m)] }) {
		return false
	}
	return w.promoteNewborn() || w.beginAgain(suspected && w.Now.Sub(last.Began) >= suspectFor)
}

// promoteNewborn restarts a primary that became a standby. Patroni knows how to go on with its
// data.
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

// beginAgain lets the first member that is ready bootstrap once more, once it is certain that no
// member is bootstrapping.
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
