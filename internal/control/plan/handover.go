package plan

import (
	"slices"

	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// failover hands the primary role over, once for each request.
func (w *work) failover() bool {
	if w.Want.Failover <= w.out.Layout.FailedOver {
		return true
	}
	request, target := w.failoverRequest(), w.Want.FailoverSeat
	w.out.Layout.Abandoned = ""
	switch {
	case w.exhausted(request) && !w.moved(request):
		w.giveUp(w.progress(request).detail)
	case w.Want.Upstream != nil && w.leader() != nil:
		// A database that follows another one has acknowledged nothing of its own.
		if !w.reboot(request, w.leader()) {
			return false
		}
	case w.progress(request).stage == unasked && w.leadsFrom(target):
	case w.progress(request).stage != waiting && !w.possible(target):
		w.giveUp("there is no member that could take over")
	case w.progress(again(request)).stage == unasked && (!w.failoverFirst(request) || !w.handOver(request, target)):
		return false
	case !w.failoverLast(request):
		return false
	}
	w.out.Layout.FailedOver = w.Want.Failover
	return true
}

// forced reports whether a user asked for this failover, or the primary cannot stay.
func (k *known) forced(request string) bool {
	return request == k.failoverRequest() || request == k.fleeRequest()
}

func (k *known) failoverRequest() string { return k.request("failover", "", k.Want.Failover) }

func (k *known) fleeRequest() string { return k.request("flee", "", k.out.Layout.Fled+1) }

// giveUp ends a failover request that cannot succeed.
func (w *work) giveUp(why string) {
	w.out.Layout.Abandoned = why
	w.problem("the failover was given up: " + why)
	w.out.GaveUp = true
}

// flee hands the primary role over from a host whose disk is full, before PostgreSQL has to stop
// there. It does so once for each time that the disk is full. It returns false while the handover
// is under way.
func (w *work) flee() bool {
	request := w.fleeRequest()
	p, leader := w.progress(request), w.primary()
	full := leader != nil && w.diskFull(leader)
	stays := p.stage == unasked || p.stage == failed || p.stage == done && leader != nil && leader.Name == p.member && p.ended >= retryAfter
	switch {
	case stays && full && w.successor("") == nil:
		w.problem("the disk of host " + leader.Host + " is full, and no standby can take over from " + leader.Name)
		return true
	case stays && full && w.exhausted(request):
		w.problem("the disk of host " + leader.Host + " is full, and handing over from " + leader.Name + " fails: " + p.detail)
		return true
	case stays && !full:
		w.fled(p.stage != unasked)
		return true
	case !w.handOver(request, ""):
		return false
	}
	w.fled(true)
	if w.Want.FailoverSeat == "" {
		// If a user asked for a failover meanwhile, this handover was it.
		w.out.Layout.FailedOver, w.out.Layout.Abandoned = w.Want.Failover, ""
	}
	return true
}

// moved reports whether a member leads other than the one that was asked to hand over, whatever the
// reason.
func (w *work) moved(request string) bool {
	p, leader := w.progress(request), w.primary()
	return p.stage != unasked && leader != nil && leader.Name != p.member
}

// fled ends the request if it was begun, so that the next full disk makes a new one.
func (w *work) fled(begun bool) {
	if begun {
		w.out.Layout.Fled++
	}
}

func (k *known) diskFull(m *Placed) bool {
	return k.alive(m) && k.report(m).Problem == member.DiskFull
}

func (k *known) leadsFrom(target string) bool {
	leader := k.primary()
	return target != "" && leader != nil && leader.Seat == target
}

// possible reports whether a member may take over, now or later.
func (k *known) possible(target string) bool {
	if k.SyncMode() == patroni.SyncOff {
		return false
	}
	return target == "" || slices.ContainsFunc(k.Want.Seats, func(s Seat) bool { return s.Key == target && !s.NoFailover })
}

// handOver gives the primary role to a standby for the request of this name. It returns true once
// another primary serves. target is the seat that shall get the role, or "" for any. How it works,
// and why nothing is lost, is in docs/design/availability.md.
func (w *work) handOver(request, target string) bool {
	p, leader := w.progress(request), w.primary()
	moved := w.moved(request)
	switch {
	case moved && (target == "" || leader.Seat == target || w.tries(request) >= userTries):
		return true
	case p.stage == waiting && !moved:
		w.keepBoost()
		w.doing("handing over from " + p.member)
		return false
	case p.stage == done && p.ended < retryAfter:
		w.keepBoost()
		w.doing("waiting for the new primary")
		return false
	case p.stage == failed:
		w.problem("handing over from " + p.member + " failed and is tried again: " + p.detail)
	}
	if p.stage == failed && p.ended < retryAfter {
		w.doing("handing over from " + p.member)
		return false
	}
	if leader == nil {
		w.doing("waiting for a primary")
		return false
	}
	w.askHandover(request, target, leader)
	return false
}

// askHandover asks for the handover once Patroni knows the successor as such.
func (w *work) askHandover(request, target string, leader *Placed) {
	next := w.successor(target)
	if next == nil {
		w.doing("waiting for a standby in sync")
		return
	}
	if !w.diskFull(leader) && !w.boosted(next) && w.cold(next) && w.warming(request) {
		w.doing("waiting for the cache of " + next.Name + " to be warm")
		return
	}
	next.Boost = true
	if !w.mayPause(next) || !w.boosted(next) || !w.applied(next) {
		w.doing("preparing " + next.Name + " to take over")
		return
	}
	w.doing("handing over from " + leader.Name)
	if !w.busy(request) {
		w.ask(member.Handover, request, leader)
	}
}

// boosted reports whether the layout had this decision's boost of the member before. If so, what
// was assigned and applied includes the boost.
func (k *known) boosted(m *Placed) bool {
	return slices.ContainsFunc(k.Layout.Members, func(before Placed) bool { return before.Name == m.Name && before.Boost })
}

func (w *work) keepBoost() {
	for _, m := range w.members() {
		if m.Boost = w.boosted(m); m.Boost {
			w.mayPause(m)
		}
	}
}

// successor returns the standby that would take over: the one of the wanted seat, or else the first
// one in sync in the order of promotion.
func (k *known) successor(target string) *Placed {
	var best *Placed
	for _, m := range k.members() {
		if m.Name == k.Leader || !k.ready(m) || !k.inSync(m) || m.Going == Surplus || m.Barred || k.diskFull(m) {
			continue
		}
		if target != "" && m.Seat != target {
			continue
		}
		if best == nil || k.preferred(m, best) {
			best = m
		}
	}
	return best
}

func (k *known) preferred(a, b *Placed) bool {
	if (a.Going == Staying) != (b.Going == Staying) {
		return a.Going == Staying
	}
	seatA, _ := k.seatOf(a)
	seatB, _ := k.seatOf(b)
	if seatA.Tier != seatB.Tier {
		return seatA.Tier < seatB.Tier
	}
	return !k.edgeless(a) && k.edgeless(b)
}

// edgeless reports whether clients would not find a primary on the member's host.
func (k *known) edgeless(m *Placed) bool {
	h, known := k.host(m.Host)
	return known && h.Edgeless
}
