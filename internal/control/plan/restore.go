package plan

import (
	"slices"

	"howdah/internal/model/member"
	"howdah/internal/model/spec"
)

// A restored database begins with data that one member makes of a backup. While it does, no other
// member exists that could begin an empty database, or one with data of its own: seat places none,
// and whoever comes in its place comes only once its host was told to delete it. All members that
// come later copy the first one's data. Layout.Restored ends that for good.

// restoreOf returns what the first data of a database are made of, or nil.
func restoreOf(o *spec.Origin) *member.Restore {
	if o == nil {
		return nil
	}
	return &member.Restore{
		Live: o.Live, Database: o.Database, Repository: o.Repository, Label: o.Label,
		Until: o.Until, LSN: o.LSN, Before: o.Before, Newest: o.Newest,
	}
}

// restoring reports whether the database has no data yet, and gets some from a repository.
func (l Layout) restoring(want Database) bool {
	return want.Restore != nil && want.State != member.Absent && !l.Restored && !l.Created
}

func (k *known) restoring() bool { return k.out.Layout.restoring(k.Want) }

// noteRestored notes that the data are there: Patroni knows their system identifier, or somebody
// leads with them. From then on they count like those of any database.
func (w *work) noteRestored() {
	if w.restoring() && (w.Born || w.Leader != "") {
		w.out.Layout.Restored = true
	}
}

// restoreAnew has the member that restores give way to another one, which begins anew, if its host
// is lost or being drained, or can clone no more. Nobody has ever stored anything in its data. It
// stays where it is if there is no other place.
func (w *work) restoreAnew() {
	if !w.restoring() {
		w.tellRestoredLost()
		return
	}
	for i := range w.members() {
		m := w.members()[i]
		why := w.whyAnew(m)
		seat, seated := w.seatOf(m)
		if !seated || why == "" {
			continue
		}
		m.Leaving = true
		next, err := w.place(seat)
		if err != nil {
			m.Leaving = false
			w.tell(Problem{Kind: kindOf(err), Host: m.Host, Text: "host " + m.Host + " " + why + ", and the restore cannot begin on another one: " + err.Error()})
			continue
		}
		w.add(next)
		w.doing("restoring on " + next.Host + " in place of " + m.Host)
		return
	}
}

// whyAnew says why the member that restores is to give way, or "".
func (w *work) whyAnew(m *Placed) string {
	switch h, _ := w.host(m.Host); {
	case h.Draining || w.lostTooLong(m):
		return "is lost or being drained"
	case w.astray(m):
		return "has no member any more of the database that is cloned"
	}
	return ""
}

// tellRestoredLost tells that the only host with the restored data is lost before anybody else had
// them. A client may have written there, so nobody begins anew without being asked to.
func (w *work) tellRestoredLost() {
	if w.Want.Restore == nil || w.Want.State == member.Absent || !w.out.Layout.Restored || w.out.Layout.Created || w.Leader != "" {
		return
	}
	var lost *Placed
	for _, m := range w.members() {
		if w.alive(m) && w.report(m).Postgres {
			return // it has them, too
		}
		if lost == nil && w.lostTooLong(m) {
			lost = m
		}
	}
	if lost != nil {
		w.tell(Problem{Host: lost.Host, Text: "the restored data are on host " + lost.Host + " alone, which is lost: bring it back; or delete the database, and restore it again"})
	}
}

// restores reports whether a member makes the data. It names that step.
func (w *work) restores() bool {
	if !w.restoring() {
		return false
	}
	for _, m := range w.members() {
		if r := w.report(m); w.alive(m) && !m.Stopped && !r.Patroni && !r.Postgres {
			w.doing(onlyWaits + m.Name + " on " + m.Host + " to restore the data")
			return true
		}
	}
	return false
}

// RestoreFailed returns why the data of a restored database cannot be made, and will not be by
// trying again; ok is false if they can.
func (f Facts) RestoreFailed() (reason string, ok bool) {
	if !f.Layout.restoring(f.Want) {
		return "", false
	}
	if f.Layout.Unrestorable != "" {
		return f.Layout.Unrestorable, true
	}
	for _, m := range f.Layout.Members {
		r := f.Reports[member.ID(f.Want.ID, m.Name)]
		if !m.Leaving && r.Problem == member.RestoreFails {
			return r.Detail, true
		}
	}
	return "", false
}

// justRestored reports whether the member restored the data, and leads with the settings of then. What
// it was told since says that it need not restore them again, and what all members share was written
// again by itself as it bootstrapped. Patroni takes more than a second to read even that, and nobody
// has to wait for it.
func (w *work) justRestored(m *Placed) bool {
	id := w.id(m)
	return w.Want.Restore != nil && w.out.Layout.Restored && !w.out.Layout.Created && m.Name == w.Leader &&
		w.runs(m) && w.Applied[id] > 0 && w.Applied[id] == w.Assigned[id]-1
}

// firstComes reports whether a new member has to wait for the one that restores.
func (p places) firstComes() bool {
	return p.restoring() && slices.ContainsFunc(p.out.Layout.Members, func(m Placed) bool { return !m.Leaving })
}
