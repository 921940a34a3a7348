package plan

import "slices"

// mendNames gives the members of a database that follows another one names of their
// own. A standby confirms commits of its primary by its name alone, and a follower's
// member streams from the same primary: under the same name it could confirm them in
// the standby's place. Members get such names when they are made, once every part of
// the home knows them; those who have none are of an older release.
//
// Patroni of such a member is started anew under the other name, beside a PostgreSQL
// that goes on. That is done one after the other, where they serve.
func (w *work) mendNames() {
	nameless := slices.ContainsFunc(w.members(), func(m *Placed) bool { return !m.OwnName })
	if w.Want.Upstream == nil || !w.OwnNames || !nameless {
		return
	}
	busy := w.renamed()
	for _, m := range w.oldFirst() {
		if m.OwnName || busy != nil && w.ready(m) {
			continue
		}
		m.OwnName = true
		if w.ready(m) {
			busy = m
		}
	}
	if busy != nil {
		w.doing("waiting for " + busy.Name + " to take a name of its own")
	}
}

// renamed returns a member that serves and has not applied its newest settings, which may include
// its name.
func (k *known) renamed() *Placed {
	all := k.members()
	at := slices.IndexFunc(all, func(m *Placed) bool { return m.OwnName && k.ready(m) && !k.applied(m) })
	if at < 0 {
		return nil
	}
	return all[at]
}
