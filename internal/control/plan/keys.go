package plan

import (
	"cmp"
	"slices"
)

// A member's key of its own opens its own database to it and nothing else: neither etcd
// nor other databases. A host's opens all of them. In a home of an older release members
// show their hosts' keys. It is moved over without an outage: first all members let
// others in by either key, then one after the other shows its own, and when all do, hosts'
// keys are let in no more. New databases begin there.

// mendKeys takes the next step of that.
func (w *work) mendKeys() {
	l := &w.out.Layout
	if w.newKeys() {
		l.KeyAuthority = cmp.Or(w.Keys.Authority, l.KeyAuthority)
	}
	if l.KeyAuthority == "" {
		return
	}
	busy := w.rekeyed()
	for _, m := range w.oldFirst() {
		if m.OwnKey || busy != nil && w.ready(m) || !w.Keys.Everywhere || !w.Keys.Admitted {
			continue
		}
		m.OwnKey = true
		if w.ready(m) {
			busy = m
		}
	}
	if busy != nil {
		w.doing("waiting for " + busy.Name + " to take a key of its own")
	}
	l.OnlyOwnKeys = l.OnlyOwnKeys || w.Keys.FollowersOwn && !slices.ContainsFunc(w.members(), func(m *Placed) bool { return !w.showsOwn(m) })
}

// newKeys: new members get keys of their own.
func (w *work) newKeys() bool {
	return w.Keys.Authority != "" && w.Keys.Everywhere || w.onlyOwnKeys()
}

// onlyOwnKeys: a member without one could copy nobody.
func (w *work) onlyOwnKeys() bool { return w.out.Layout.OnlyOwnKeys || w.Keys.SourceOnly }

// showsOwn: no Patroni of the member runs with its host's key. One that never served has
// none from before.
func (w *work) showsOwn(m *Placed) bool { return m.OwnKey && (w.report(m).OwnKey || !m.Served) }

// rekeyed is a member that serves, and has not taken its own key yet.
func (w *work) rekeyed() *Placed {
	all := w.members()
	at := slices.IndexFunc(all, func(m *Placed) bool { return w.ready(m) && m.OwnKey && !w.report(m).OwnKey })
	if at < 0 {
		return nil
	}
	return all[at]
}
