package plan

import (
	"fmt"
	"slices"
)

// replaceLost rebuilds what was on a lost host, while there is a primary to copy from. The lost
// copy is deleted only when its host returns and other members have taken its place.
func (w *work) replaceLost() {
	if w.primary() == nil {
		return
	}
	for i := range w.members() {
		m := w.members()[i]
		if m.Going == Staying && w.lostTooLong(m) {
			w.replace(m, "host "+m.Host+" is lost")
		}
	}
}

// lostTooLong reports whether the member's host has been lost for longer than the policy allows. A
// forgotten host will not return, so it always has. A host without a time of its loss was never
// judged, so it never has.
func (k *known) lostTooLong(m *Placed) bool {
	h, known := k.host(m.Host)
	if !known {
		return true
	}
	return !h.Alive && !h.LostSince.IsZero() && k.Now.Sub(h.LostSince) >= k.Policy.ReplaceAfter
}

// drain moves members away from hosts that are being emptied. A member that restores has no data
// yet: see restoreAnew.
func (w *work) drain() {
	if w.restoring() {
		return
	}
	for i := range w.members() {
		m := w.members()[i]
		if h, _ := w.host(m.Host); h.Draining && m.Going == Staying {
			w.replace(m, "host "+m.Host+" is being drained")
		}
	}
}

// replace adds a second member for the same seat. It may move the members in memory.
func (w *work) replace(m *Placed, why string) {
	seat, ok := w.seatOf(m)
	if !ok {
		return
	}
	name, served := m.Name, m.Served
	m.Going = Replaced
	added, err := w.place(seat)
	if err != nil {
		m.Going = Staying
		w.tell(Problem{Kind: kindOf(err), Host: m.Host, Text: why + ", and its member cannot be rebuilt: " + err.Error()})
		return
	}
	added.Served = served
	w.add(added)
	w.doing(fmt.Sprintf("building %s on %s in place of %s", added.Name, added.Host, name))
}

// reconsider keeps a member after all if its host is back before its replacement is ready: the
// existing copy is better than one in the making.
func (w *work) reconsider() {
	if w.primary() == nil {
		return
	}
	for _, m := range w.members() {
		h, _ := w.host(m.Host)
		zoneTaken := w.Want.SpreadZones && w.inZone(m.Zone) > 0
		if m.Going == Replaced && !h.Draining && !zoneTaken && w.ready(m) && !w.replaced(m) {
			m.Going = Staying
		}
	}
}

// retire removes the members that leave, once they are no longer needed. Without a primary it
// removes none, as nobody knows then which copy is the best. It returns false while a handover is
// under way, which nothing else may disturb.
func (w *work) retire() bool {
	for _, m := range w.members() {
		switch {
		case m.Going == Staying:
		case w.parked(m):
			m.Stopped = w.Want.Last == nil
		case w.primary() == nil:
			w.doing("waiting for a primary")
		case !w.dispensable(m):
		case m.Name != w.Leader:
			w.remove(m)
		case !w.stepAside(m):
			return false
		}
	}
	w.ballot()
	for _, m := range w.out.Layout.Members {
		if m.Leaving {
			w.doing("removing " + m.Name)
		}
	}
	return true
}

// remove deletes a replica once three things hold: the primary does not wait for its confirmations
// any more, nobody can elect it, and another member is in sync instead. The last must also hold for
// the way of confirming commits that remains without the replica.
func (w *work) remove(m *Placed) {
	w.doing("removing " + m.Name)
	w.departing[m.Name] = true
	lost := !w.alive(m) && !w.runs(m)
	heard := w.primary() != nil && w.applied(w.primary())
	if !w.named(m) && (lost || w.released(m) && heard && !w.awaited(m)) {
		m.Leaving = true
	}
}

// released reports whether the member is out of the count. It was removed from the sync key before
// that.
func (k *known) released(m *Placed) bool { return m.Barred && !m.Votes }

// stepAside has a leader that leaves hand its role over. It reports whether other work may go on
// meanwhile.
func (w *work) stepAside(m *Placed) bool {
	if len(w.Want.Seats) == 0 {
		return true // it is the copy that is kept, once the others are gone
	}
	request := w.request("retire", m.Name, 0)
	switch {
	case w.Want.Upstream != nil && w.heir(m):
		// Nothing is acknowledged here, and every other member follows the source as well.
		m.Stopped = true
		w.doing("handing over from " + m.Name)
		return false
	case w.Want.Upstream != nil, w.successor("") == nil && !w.outstanding(request):
		w.doing("waiting for a standby in sync")
		return true
	}
	if w.progress(request).stage != unasked || w.lower() {
		w.handOver(request, "")
	}
	return false
}

// heir reports whether another member has data and may lead a database that follows.
func (k *known) heir(m *Placed) bool {
	return slices.ContainsFunc(k.members(), func(other *Placed) bool {
		return other != m && other.Going == Staying && !other.Barred && k.alive(other) && k.report(other).Ready
	})
}

// dispensable reports whether the others can do without the member. It waits for a lost host: what
// that host holds is deleted when it returns, not behind its back.
func (w *work) dispensable(m *Placed) bool {
	if m.Going == Surplus {
		return m.Name != w.Leader || len(w.members()) > 1
	}
	if !w.replaced(m) {
		w.doing("waiting for a replacement of " + m.Name)
		return false
	}
	if h, known := w.host(m.Host); known && !h.Alive {
		w.problem("host " + m.Host + " is lost: what it holds of " + m.Name + " is deleted when it returns")
		return false
	}
	return true
}

// replaced reports whether at least as many other members serve as there are seats like the
// member's. A released member has been replaced once. It is needed again only if the others do not
// serve: Patroni empties the sync key for a moment when it counts anew.
func (k *known) replaced(m *Placed) bool {
	n := 0
	for _, other := range k.members() {
		if other.Going == Staying && other.Seat == m.Seat && k.ready(other) && (k.asGood(other) || k.released(m)) {
			n++
		}
	}
	return n >= k.seatsLike(m)
}

// asGood reports whether nothing is lost if the member has to take over.
func (k *known) asGood(m *Placed) bool {
	return m.Name == k.Leader || k.inSync(m) || !k.confirms(m)
}

func (k *known) seatOf(m *Placed) (Seat, bool) {
	for _, s := range k.Want.Seats {
		if s.Key == m.Seat {
			return s, true
		}
	}
	return Seat{}, false
}

func (k *known) seatsLike(m *Placed) int {
	n := 0
	for _, s := range k.Want.Seats {
		if s.Key == m.Seat {
			n++
		}
	}
	return n
}
