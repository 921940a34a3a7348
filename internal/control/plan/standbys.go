package plan

import (
	"fmt"
	"time"
)

// restartFirst restarts the standbys that wait, before what the request asks of the
// primary is done: one with less of some settings than its primary stops to replay.
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

// lastWithin is how long after its primary's restart a standby may take to be back.
const lastWithin = 30 * time.Second

// restartLast restarts the standbys that still wait after the request was done: one
// starts with as much as its primary had, so that it takes less over only now.
func (w *work) restartLast(request string, leader *Placed) bool {
	if _, done := w.doneBy(request); !done {
		return true
	}
	for _, m := range w.members() {
		switch {
		case m.Name == leader.Name || m.Going == Surplus || !w.alive(m) || !w.PendingRestart[w.id(m)]:
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

// rebootAll: a failover of an instance is asked for as a reboot, after which all of
// its settings are in force. The instances of a cluster are rebooted one by one.
func (w *work) rebootAll() bool { return w.Want.Seats[0].Key == "" && w.Want.Upstream == nil }

// failoverFirst has the next primary take over what it waits for, while it serves
// nobody.
func (w *work) failoverFirst(request string) bool {
	leader := w.primary()
	return !w.rebootAll() || leader == nil || w.restartFirst(request, leader, w.PendingRestart)
}

// failoverLast restarts the new primary if it still waits, as one does that gets less
// of what a standby needs; and then the standbys, which are awaited before.
func (w *work) failoverLast(request string) bool {
	leader, begun := w.primary(), w.progress(again(request)).stage != unasked
	switch {
	case !w.rebootAll():
		return true
	case leader == nil:
		w.doing("waiting for a primary")
		return false
	case !begun && !w.PendingRestart[w.id(leader)]:
		return true
	case !begun && w.progress(request).ended < lastWithin:
		if late := w.late(leader); late != nil {
			w.doing("waiting for " + late.Name)
			return false
		}
	}
	return w.reboot(again(request), leader) && w.restartLast(again(request), leader)
}

// again names the restart that follows a failover.
func again(request string) string { return request + "/again" }

// late is a standby that does not serve, and may soon.
func (w *work) late(leader *Placed) *Placed {
	for _, m := range w.members() {
		if m.Name != leader.Name && m.Going != Surplus && w.alive(m) && !w.ready(m) {
			return m
		}
	}
	return nil
}

// resume restarts who has stopped to replay: so does PostgreSQL with less of some
// settings than its primary, until it is started with as much. Its primary may have
// come by more in a failover, or by a restart that nobody asked for.
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
