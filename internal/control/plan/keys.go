package plan

import (
	"cmp"
	"slices"
)

// A member's own key lets it into its own database and nowhere else: neither into etcd nor into
// other databases. A host's key lets it into all of them. In a home of an older release, members
// show their hosts' keys. Such a home is moved over without an outage. First all members admit
// others by either key, then one after the other shows its own key, and when all do, hosts' keys
// are no longer admitted. New databases begin in that last state.

// mendKeys takes the next step towards members' own keys.
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

// newKeys reports whether new members get keys of their own.
func (k *known) newKeys() bool {
	return k.Keys.Authority != "" && k.Keys.Everywhere || k.onlyOwnKeys()
}

// onlyOwnKeys reports whether a member without a key of its own could copy nobody.
func (k *known) onlyOwnKeys() bool { return k.out.Layout.OnlyOwnKeys || k.Keys.SourceOnly }

// showsOwn reports whether the member shows no key of its host any more. A member that never served
// has never shown one.
func (k *known) showsOwn(m *Placed) bool { return m.OwnKey && (k.report(m).OwnKey || !m.Served) }

// rekeyed returns a member that serves and does not use its own key yet.
func (k *known) rekeyed() *Placed {
	all := k.members()
	at := slices.IndexFunc(all, func(m *Placed) bool { return k.ready(m) && m.OwnKey && !k.report(m).OwnKey })
	if at < 0 {
		return nil
	}
	return all[at]
}
