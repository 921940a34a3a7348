package plan

import (
	"slices"

	"howdah/internal/model/patroni"
)

// nearBytes is how far a standby may be behind one that it stands in for. Positions
// are up to a second old, in which a busy primary writes about as much.
const nearBytes = 64 << 20

// spread chooses who confirms no commits: who shall not be promoted, once another
// one confirms them, and who is on the primary's host, while one elsewhere does. A
// commit that only the latter confirmed is lost to the others when the host is; and
// as nobody can cut it off from the primary, no quorum of cuts, nor of votes, would
// come together without it. It still counts, and Patroni may promote it where the
// voters say that it has all they have.
func (w *work) spread() {
	if w.primary() == nil {
		return
	}
	for _, m := range w.members() {
		m.NoSync = w.sharesFate(m) || !w.mayLead(m) && (m.NoSync || !w.needed(m))
	}
}

// sharesFate: it would be lost with the primary, and is not needed to confirm. One
// that shall become the primary has to be in sync.
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

// needed: it is the last standby in sync, and another one can be in sync soon: that
// one first.
func (w *work) needed(m *Placed) bool { return w.inSync(m) && w.awaited(m) }

// awaited: none of the others is in sync, with what this one confirmed, and one of
// them can be.
func (w *work) awaited(m *Placed) bool {
	return w.able(m) && !w.standIn(m, func(other *Placed) bool { return w.holds(other) && w.near(other, m) })
}

// mayPause: it may be restarted. If it is the last standby in sync, one that shares
// the primary's host confirms commits before, and until it is back.
func (w *work) mayPause(m *Placed) bool {
	if m.Name == w.Leader {
		return true
	}
	w.pausing[m.Name] = true
	w.spread()
	return !w.inSync(m) || !w.able(m) || w.standIn(m, w.holds)
}

// able: one of the others can be in sync soon.
func (w *work) able(m *Placed) bool {
	return w.SyncMode() != patroni.SyncOff && w.standIn(m, func(other *Placed) bool {
		return other.Votes && w.mayLead(other) && w.ready(other)
	})
}

// standIn: such a one of the others could stand in for it.
func (w *work) standIn(m *Placed, such func(*Placed) bool) bool {
	return slices.ContainsFunc(w.members(), func(other *Placed) bool {
		return other != m && other.Name != w.Leader && other.Going != Surplus && such(other)
	})
}

// holds: it confirms commits and may be promoted, now and later.
func (w *work) holds(m *Placed) bool {
	return w.inSync(m) && !m.NoSync && !m.Barred && w.mayLead(m)
}

// near: it has about all that another one has. As soon as Patroni counts on it
// alone it may promote it, also before it received what the other one confirmed.
func (w *work) near(m, other *Placed) bool {
	position, known := w.Positions[w.id(m)]
	return known && w.Positions[w.id(other)]-position <= nearBytes
}
