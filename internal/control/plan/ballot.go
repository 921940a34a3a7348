package plan

import (
	"slices"

	"howdah/internal/model/patroni"
)

// ballot keeps two things in step: who may be promoted, and who counts when it is decided how
// commits are confirmed. A member that may be promoted must always be in the count. If Patroni
// believes that commits wait for nobody, it elects any member, even one that lacks some commits. So
// a member is counted first and may be promoted later; in the other direction it is barred first.
// Nothing changes without a primary, as there is an election.
func (w *work) ballot() {
	if w.primary() == nil {
		return
	}
	for _, m := range w.members() {
		switch {
		case w.mayLead(m):
			m.Votes = true
			m.Barred = m.Barred && w.Sync.Leader != w.Leader && w.Want.Upstream == nil
		case !m.Barred:
			// While the member confirms commits, it may be the only one that has the newest.
			m.Barred = m.NoSync && !w.named(m)
		case w.named(m):
			// If one member fewer counts, Patroni may stop asking for votes. Then any member that
			// the sync key names could be elected without a vote.
		case w.applied(m) || w.alive(m) && !w.runs(m):
			m.Votes = false
		}
	}
	w.spread()
}

// mayLead reports whether the member shall be allowed to be promoted. A leader always is. A member
// whose seat is gone stays as it is until it is its turn to leave.
func (k *known) mayLead(m *Placed) bool {
	if m.Name == k.Leader {
		return true
	}
	seat, ok := k.seatOf(m)
	if !ok {
		return !m.Barred && !k.departing[m.Name]
	}
	return !seat.NoFailover && !k.departing[m.Name]
}

// SyncMode returns how commits are confirmed with the present members.
func (k *known) SyncMode() patroni.SyncMode { return SyncMode(k.Want, k.out.Layout) }

// SyncMode returns how commits are confirmed with the members of a layout: by a quorum of two or
// more standbys, or by the only standby.
func SyncMode(want Database, layout Layout) patroni.SyncMode {
	if want.Upstream != nil {
		return patroni.SyncOff
	}
	voters := 0
	for _, m := range layout.Members {
		if m.Votes && !m.Leaving {
			voters++
		}
	}
	switch {
	case voters <= 1:
		return patroni.SyncOff
	case voters == 2:
		return patroni.SyncSingle
	default:
		return patroni.SyncQuorum
	}
}

// named reports whether the sync key names the member. The key may be of the present leader or of
// the one before.
func (k *known) named(m *Placed) bool { return slices.Contains(k.Sync.Standbys, m.Name) }

// inSync reports whether the member has every acknowledged commit, and Patroni may promote it.
func (k *known) inSync(m *Placed) bool { return k.named(m) && k.Sync.Leader == k.Leader }

// confirms reports whether the member shall confirm commits, and be promoted once it is in sync.
func (k *known) confirms(m *Placed) bool {
	return m.Votes && !m.NoSync && k.SyncMode() != patroni.SyncOff
}
