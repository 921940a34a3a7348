package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"howdah/internal/model/patroni"
)

// restartFirst restarts the standbys that wait for a restart before the request is done on the
// primary. A standby with less of some settings than its primary stops replaying.
func (w *work) restartFirst(request string, leader *Placed, waits map[string]bool) bool {
	if w.progress(request).stage != unasked {
		return true
	}
	for _, m := range w.members() {
		if m.Name == leader.Name || m.Going == Surplus || !w.ready(m) || !waits[w.id(m)] {
			continue
		}
		if !w.reboot(request+"/first/"+m.Name, m) {
			return false
		}
	}
	return true
}

// saidWithin is how long after its restart a primary may still say that it waits for one.
const saidWithin = 3 * patroni.LoopWait * time.Second

// rebootAgain restarts a primary that still has more of standbyNeeds after its reboot. Where it was
// killed at that, or etcd was away, Patroni started it as a standby: with at least as much as before.
func (w *work) rebootAgain(request string, leader *Placed) bool {
	_, done := w.doneBy(request)
	switch begun := w.progress(again(request)).stage != unasked; {
	case !done || w.Want.Upstream != nil || !begun && !w.Shrinking[w.id(leader)]:
		return true
	case !begun && w.progress(request).ended < saidWithin:
		w.doing("waiting for " + leader.Name + " to say with which settings it runs")
		return false
	}
	return w.reboot(again(request), leader)
}

// lastWithin is how long after its primary's restart a standby may take to be back.
const lastWithin = 30 * time.Second

// restartLast restarts the standbys that still wait after the request is done. A standby starts
// with at least as much as its primary had, so it can take over a lower setting only now.
func (w *work) restartLast(request string, leader *Placed) bool {
	if _, done := w.doneBy(request); !done {
		return true
	}
	for _, m := range w.members() {
		switch {
		case m.Name == leader.Name || m.Going == Surplus || !w.alive(m) || !w.renews(m):
		case w.ready(m):
			if !w.reboot(request+"/last/"+m.Name, m) {
				return false
			}
		case w.progress(request).ended < lastWithin:
			w.doing("waiting for " + m.Name)
			return false
		}
	}
	return true
}

// rebootAll reports whether a failover is also a reboot of all members. For an instance it is:
// after it all settings are in force. The instances of a cluster are rebooted one by one.
func (k *known) rebootAll() bool { return k.Want.Seats[0].Key == "" && k.Want.Upstream == nil }

// renews reports whether a member has newer settings, or another library, after a restart.
func (k *known) renews(m *Placed) bool { return k.PendingRestart[k.id(m)] || k.Unloaded[k.id(m)] }

// renewed holds the members for which renews is true, by their ids.
func (k *known) renewed() map[string]bool {
	all := map[string]bool{}
	for _, m := range k.members() {
		all[k.id(m)] = k.renews(m)
	}
	return all
}

// failoverFirst restarts the standbys that wait, so that the next primary has its new settings
// before it serves anybody.
func (w *work) failoverFirst(request string) bool {
	leader := w.primary()
	return !w.rebootAll() || leader == nil || w.restartFirst(request, leader, w.renewed())
}

// failoverLast restarts the new primary if it still waits, as it does if some of standbyNeeds get
// lower. Before that it waits for standbys that may serve soon. After that it restarts the standbys.
func (w *work) failoverLast(request string) bool {
	leader, begun := w.primary(), w.progress(again(request)).stage != unasked
	switch {
	case !w.rebootAll():
		return true
	case leader == nil:
		w.doing("waiting for a primary")
		return false
	case !begun && !w.renews(leader):
		return true
	case !begun && w.progress(request).ended < lastWithin:
		if late := w.late(leader); late != nil {
			w.doing("waiting for " + late.Name)
			return false
		}
	}
	return w.reboot(again(request), leader) && w.restartLast(again(request), leader)
}

// again returns the name of the restart that follows a failover or a reboot.
func again(request string) string { return request + "/again" }

// late returns a standby that does not serve, but may soon.
func (k *known) late(leader *Placed) *Placed {
	for _, m := range k.members() {
		if m.Name != leader.Name && m.Going != Surplus && k.alive(m) && !k.ready(m) {
			return m
		}
	}
	return nil
}

// lower restarts a standby that runs with more of standbyNeeds than its primary: it was made of a
// backup from before they were lowered, and would lead with as much. It does so once for each of their
// values, and not while users' requests are open, which restart standbys too. A reader of a cluster
// serves clients, so it waits for a reboot, unless it takes the place of another member.
func (w *work) lower() bool {
	leader := w.primary()
	if leader == nil || w.Want.Upstream != nil || w.PendingRestart[w.id(leader)] || w.diskFull(leader) || w.asked() {
		return true
	}
	needs := w.needs()
	for _, m := range w.members() {
		serves := m.Name == leader.Name || m.Seat != "" && !w.takesOver(m)
		able := m.Going == Staying && w.ready(m) && w.applied(m) && w.asGood(m)
		if serves || !able || m.Lowered == needs || !w.Shrinking[w.id(m)] {
			continue
		}
		if !w.reboot(w.request("lower/"+m.Name+"/"+needs, "", 0), m) {
			return false
		}
		m.Lowered = needs
	}
	return true
}

// asked reports whether a user's request is open that restarts members.
func (k *known) asked() bool {
	if l := k.out.Layout; k.Want.Reboot > l.Rebooted || k.Want.Failover > l.FailedOver || k.Want.Change > l.Changed {
		return true
	}
	return slices.ContainsFunc(k.members(), func(m *Placed) bool {
		seat, ok := k.seatOf(m)
		return ok && (seat.Reboot > m.Rebooted || seat.Restart > m.Restarted)
	})
}

// needs has the values of standbyNeeds as one word.
func (k *known) needs() string {
	values := make([]string, len(standbyNeeds))
	for i, name := range standbyNeeds {
		values[i] = strings.ReplaceAll(k.Want.Parameters[name], "/", "")
	}
	return strings.Join(values, "-")
}

// takesOver reports whether a member takes the place of another one.
func (k *known) takesOver(m *Placed) bool {
	return slices.ContainsFunc(k.members(), func(other *Placed) bool {
		return other.Going == Replaced && other.Seat == m.Seat
	})
}

// resume restarts the members that have stopped replaying. PostgreSQL stops if it has less of some
// settings than its primary, until it is started with as much. The primary may have got more in a
// failover, or in a restart that nobody asked for.
func (w *work) resume() bool {
	for _, m := range w.members() {
		r := w.report(m)
		if !r.Paused || m.Going == Surplus || !w.ready(m) || m.Name == w.Leader && w.Want.Upstream == nil {
			continue
		}
		if !w.reboot(w.request(fmt.Sprintf("resume/%s/%d", m.Name, r.Timeline), "", w.Assigned[w.id(m)]), m) {
			return false
		}
		w.doing("waiting for " + m.Name + " to replay")
	}
	return true
}
