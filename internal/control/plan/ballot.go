package plan

import (
	"slices"

	"howdah/internal/model/patroni"
)

// ballot keeps in step who may be promoted and who counts when it is chosen how
// commits are confirmed. Somebody who may be promoted must never be missing from
// the count: where Patroni believes that commits wait for nobody, it elects anyone,
// also one that lacks them. So a member counts first and may be promoted later,
// and the other way round; and without a primary, in an election, nothing changes.
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
			// As long as it confirms commits, it may be the only one that has the newest.
			m.Barred = m.NoSync && !w.named(m)
		case w.named(m):
			// With one fewer to count, Patroni may stop asking for votes: each that the
			// sync key names could then be elected alone.
		case w.applied(m) || w.alive(m) && !w.runs(m):
			m.Votes = false
		}
	}
	w.spread()
}

// mayLead: it shall be allowed to be promoted. One whose seat is gone goes on as
// it was until it is its turn to leave; the leader leads whatever its seat says.
func (w *work) mayLead(m *Placed) bool {
	if m.Name == w.Leader {
		return true
	}
	seat, ok := w.seatOf(m)
	if !ok {
		return !m.Barred && !w.departing[m.Name]
	}
	return !seat.NoFailover && !w.departing[m.Name]
}

// SyncMode is how commits are confirmed with the members that there are now.
func (w *work) SyncMode() patroni.SyncMode { return SyncMode(w.Want, w.out.Layout) }

// SyncMode is how commits are confirmed with the members of a layout: quorum with
// two standbys or more, the one standby with one.
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

// named: the sync key names it, be it of this leader or of the one before.
func (w *work) named(m *Placed) bool { return slices.Contains(w.Sync.Standbys, m.Name) }

// inSync: the member has every acknowledged commit, and Patroni may promote it.
func (w *work) inSync(m *Placed) bool { return w.named(m) && w.Sync.Leader == w.Leader }

// confirms: it is to confirm commits, and to be promoted once it is in sync.
func (w *work) confirms(m *Placed) bool {
	return m.Votes && !m.NoSync && w.SyncMode() != patroni.SyncOff
}
