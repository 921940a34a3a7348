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
func (k *known) sharesFate(m *Placed) bool {
	leader := k.leader()
	sought := k.Want.Failover > k.out.Layout.FailedOver && k.Want.FailoverSeat != "" && m.Seat == k.Want.FailoverSeat
	if m.Name == leader.Name || m.Host != leader.Host || !k.mayLead(m) || sought {
		return false
	}
	return slices.ContainsFunc(k.members(), func(other *Placed) bool {
		return other.Host != leader.Host && other.Going == Staying && !k.pausing[other.Name] && k.alive(other) &&
			k.holds(other) && (m.NoSync || !k.named(m) || k.near(other, m))
	})
}

// needed reports whether the member is the last standby in sync, and another one can be in sync
// soon. Then the other one comes first.
func (k *known) needed(m *Placed) bool { return k.inSync(m) && k.awaited(m) }

// awaited reports whether none of the others is in sync with what this member confirmed, but one of
// them can be.
func (k *known) awaited(m *Placed) bool {
	return k.able(m) && !k.standIn(m, func(other *Placed) bool { return k.holds(other) && k.near(other, m) })
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
func (k *known) able(m *Placed) bool {
	return k.SyncMode() != patroni.SyncOff && k.standIn(m, func(other *Placed) bool {
		return other.Votes && k.mayLead(other) && k.ready(other)
	})
}

// standIn reports whether one of the other members could stand in for this one and satisfies such.
func (k *known) standIn(m *Placed, such func(*Placed) bool) bool {
	return slices.ContainsFunc(k.members(), func(other *Placed) bool {
		return other != m && other.Name != k.Leader && other.Going != Surplus && such(other)
	})
}

// holds reports whether the member confirms commits and may be promoted, now and later.
func (k *known) holds(m *Placed) bool {
	return k.inSync(m) && !m.NoSync && !m.Barred && k.mayLead(m)
}

// near reports whether the member has about all that the other one has. As soon as Patroni counts
// on the member alone, Patroni may promote it, even before it has received what the other one
// confirmed.
func (k *known) near(m, other *Placed) bool {
	position, known := k.Positions[k.id(m)]
	return known && k.Positions[k.id(other)]-position <= nearBytes
}
