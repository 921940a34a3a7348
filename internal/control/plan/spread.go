package plan

import (
	"slices"

	"howdah/internal/model/patroni"
)

// nearBytes is how far a standby may be behind one that it stands in for. Positions
// are up to a second old, in which a busy primary writes about as much.
const nearBytes = 64 << 20

// spread chooses the members that confirm no commits. A member that shall not be promoted confirms
// none once another one does. A member on the primary's host confirms none while one elsewhere
// does. If the host is lost, the others lose every commit that only such a member confirmed. Nobody
// can cut it off from the primary, so it would be missing from every quorum of cuts or votes. It
// still counts, and Patroni may promote it if the voters say that it has all that they have.
func (w *work) spread() {
	if w.primary() == nil {
		return
	}
	for _, m := range w.members() {
		m.NoSync = w.sharesFate(m) || !w.mayLead(m) && (m.NoSync || !w.needed(m))
	}
}

// sharesFate reports whether the member would be lost with the primary and is not needed to
// confirm. A member that shall become the primary must be in sync, so it never does.
func (w *work) sharesFate(m *Placed) bool {
	leader := w.leader()
	sought := w.Want.Failover > w.out.Layout.FailedOver && w.Want.FailoverSeat != "" && m.Seat == w.Want.FailoverSeat
	if m.Name == leader.Name || m.Host != leader.Host || !w.mayLead(m) || sought {
		return false
	}
	return slices.ContainsFunc(w.members(), func(other *Placed) bool {
		return other.Host != leader.Host && other.Going == Staying && !w.pausing[other.Name] && w.alive(other) &&
			w.holds(other) && (m.NoSync || !w.named(m) || w.near(other, m))
	})
}

// needed reports whether the member is the last standby in sync, and another one can be in sync
// soon. Then the other one comes first.
func (w *work) needed(m *Placed) bool { return w.inSync(m) && w.awaited(m) }

// awaited reports whether none of the others is in sync with what this member confirmed, but one of
// them can be.
func (w *work) awaited(m *Placed) bool {
	return w.able(m) && !w.standIn(m, func(other *Placed) bool { return w.holds(other) && w.near(other, m) })
}

// mayPause reports whether the member may be restarted. If it is the last standby in sync, a member
// on the primary's host confirms commits from before the restart until it is back.
func (w *work) mayPause(m *Placed) bool {
	if m.Name == w.Leader {
		return true
	}
	w.pausing[m.Name] = true
	w.spread()
	return !w.inSync(m) || !w.able(m) || w.standIn(m, w.holds)
}

// able reports whether one of the others can be in sync soon.
func (w *work) able(m *Placed) bool {
	return w.SyncMode() != patroni.SyncOff && w.standIn(m, func(other *Placed) bool {
		return other.Votes && w.mayLead(other) && w.ready(other)
	})
}

// standIn reports whether one of the other members could stand in for this one and satisfies such.
func (w *work) standIn(m *Placed, such func(*Placed) bool) bool {
	return slices.ContainsFunc(w.members(), func(other *Placed) bool {
		return other != m && other.Name != w.Leader && other.Going != Surplus && such(other)
	})
}

// holds reports whether the member confirms commits and may be promoted, now and later.
func (w *work) holds(m *Placed) bool {
	return w.inSync(m) && !m.NoSync && !m.Barred && w.mayLead(m)
}

// near reports whether the member has about all that the other one has. As soon as Patroni counts
// on the member alone, Patroni may promote it, even before it has received what the other one
// confirmed.
func (w *work) near(m, other *Placed) bool {
	position, known := w.Positions[w.id(m)]
	return known && w.Positions[w.id(other)]-position <= nearBytes
}
