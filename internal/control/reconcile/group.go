package reconcile

import (
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
)

// raise lets databases that follow others have as much as their sources of what a
// standby needs. A chain is as long as there are databases, at most.
func (w *world) raise() {
	done := map[string]bool{}
	for _, d := range w.databases {
		raise(w.byID, d, done)
	}
}

func raise(all map[string]*database, d *database, done map[string]bool) {
	if done[d.want.ID] {
		return
	}
	done[d.want.ID] = true
	if d.want.Upstream == nil || len(d.specs) == 0 {
		return
	}
	if source, ok := all[d.specs[0].Value.Source]; ok {
		raise(all, source, done)
		d.want.Raise(source.want)
	}
}

// outstanding: a restart of a member was asked for that must find it with its
// newest settings.
func outstanding(d *database, m plan.Placed) bool {
	if d.want.Reboot > d.layout.Value.Rebooted {
		return true
	}
	for _, s := range d.want.Seats {
		if s.Key == m.Seat && (s.Reboot > m.Rebooted || s.Restart > m.Restarted) {
			return true
		}
	}
	return false
}

// upToDate: a member's host was told what is wanted now.
func (w *world) upToDate(d *database, m plan.Placed, last member.Assignment) bool {
	want := plan.Assign(d.want, d.layout.Value, m, w.memoryOf(m.Host))
	want.Generation = last.Generation
	return normal(want) == normal(last.Unsealed())
}
