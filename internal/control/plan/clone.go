package plan

import (
	"slices"

	"howdah/internal/model/member"
)

// A clone begins with a copy of the files of a member of another database, its source, which goes on
// meanwhile. Only a host that runs such a member can make it. Otherwise a clone is born as any
// restored database is: see restore.go.

// Source is what is known of the database that a clone is made of.
type Source struct {
	// Gone says that it is deleted, for good.
	Gone bool
	// Copies are its members, but for those that are to be deleted.
	Copies []Copy
}

// Copy is a member of the source of a clone.
type Copy struct {
	Host    string
	Primary bool
	Ready   bool // its server answers
}

// sourceGone is why a clone never gets its data.
const sourceGone = "the database that it is a clone of was deleted before its data were copied"

// Cloning reports whether the database has no data yet, and gets those of another one that runs.
func (l Layout) Cloning(want Database) bool { return l.restoring(want) && want.Restore.Live }

// copiesHere reports whether the next member has to be where the source has one: it is the first.
func (p places) copiesHere() bool {
	return p.Source != nil && p.out.Layout.Cloning(p.Want) && !p.firstComes()
}

func (k *known) copyOn(host string) (Copy, bool) {
	at := slices.IndexFunc(k.Source.Copies, func(c Copy) bool { return c.Host == host })
	if at < 0 {
		return Copy{}, false
	}
	return k.Source.Copies[at], true
}

// uncloneable says why a clone cannot begin on a host, or "".
func (p places) uncloneable(h Host) string {
	if !p.copiesHere() {
		return ""
	}
	switch c, has := p.copyOn(h.Name); {
	case !has:
		return "runs no member of the database that is cloned"
	case !c.Ready:
		return "has a member of the database that is cloned, which does not answer"
	}
	return ""
}

// cloneRank orders the hosts of the source: first those where a copy takes no room, and then that of
// the primary, which has all that was acknowledged.
func (p places) cloneRank(h Host) int {
	if !p.copiesHere() {
		return 0
	}
	c, _ := p.copyOn(h.Name)
	return 2*boolRank(!h.Shares) + boolRank(!c.Primary)
}

// beginning returns the seats in the order in which they get members: the data of a clone are made
// for the first seat whose host can do that.
func (p places) beginning(seats []Seat) []Seat {
	if !p.copiesHere() {
		return seats
	}
	at := slices.IndexFunc(seats, func(s Seat) bool { return len(p.candidates(s)) > 0 })
	if at <= 0 {
		return seats
	}
	return slices.Concat(seats[at:at+1], seats[:at], seats[at+1:])
}

// astray reports whether the member that clones waits for a member of the source that has left its
// host.
func (w *work) astray(m *Placed) bool {
	if w.Source == nil || w.Source.Gone || !w.out.Layout.Cloning(w.Want) || w.report(m).Problem != member.SourceAway {
		return false
	}
	_, here := w.copyOn(m.Host)
	return !here
}

// noteSourceGone notes that a clone never gets its data: its source is deleted, and nobody has
// copied it. A member that does not say so may have what it needs.
func (w *work) noteSourceGone() {
	w.out.Layout.Unrestorable = ""
	if w.Source == nil || !w.Source.Gone || !w.out.Layout.Cloning(w.Want) {
		return
	}
	for _, m := range w.members() {
		if !w.lostTooLong(m) && (!w.alive(m) || w.report(m).Problem != member.SourceAway) {
			return
		}
	}
	w.out.Layout.Unrestorable = sourceGone
	w.tell(Problem{Kind: CannotClone, Text: sourceGone})
}
