package plan

import (
	"fmt"
	"slices"
	"strconv"

	"howdah/internal/member"
)

// run brings a database towards all its seats filled and all requests done. The
// order is that of urgency: first places, then replacing what is lost, then
// removing, and only then what users asked for.
func (w *work) run() {
	w.wake()
	w.seat()
	w.replaceLost()
	w.drain()
	w.mendPorts()
	if !w.retire() {
		return
	}
	if !w.rebootDatabase() || !w.failover() || !w.rebootSeats() || !w.restart() {
		return
	}
	w.settle()
}

// wake lets stopped members run again, save for a copy that is only kept.
func (w *work) wake() {
	for _, m := range w.members() {
		m.Stopped = w.parked(m)
	}
}

// replaceLost rebuilds what was on a lost host, as long as there is a primary to
// copy from. The lost copy is deleted only when the host returns and others have
// taken its place.
func (w *work) replaceLost() {
	if leader := w.leader(); leader == nil || !w.ready(leader) {
		return
	}
	for _, m := range w.members() {
		h := w.host(m.Host)
		if m.Going != Staying || h.Alive || w.Now.Sub(h.LostSince) < w.Policy.ReplaceAfter {
			continue
		}
		w.replace(m, "host "+m.Host+" is lost")
	}
}

// drain moves members away from hosts that are being emptied.
func (w *work) drain() {
	for _, m := range w.members() {
		if m.Going == Staying && w.host(m.Host).Draining {
			w.replace(m, "host "+m.Host+" is being drained")
		}
	}
}

// replace puts a second member beside one, for the same seat.
func (w *work) replace(m *Placed, why string) {
	seat, ok := w.seatOf(m)
	if !ok {
		return
	}
	name := m.Name
	m.Going = Replaced
	added, err := w.place(seat)
	if err != nil {
		m.Going = Staying
		w.problem(why + ", and its member cannot be rebuilt: " + err.Error())
		return
	}
	// Appending may move the array: m must not be used after it.
	w.out.Layout.Members = append(w.out.Layout.Members, added)
	w.out.Layout.Next++
	w.doing(fmt.Sprintf("building %s on %s in place of %s", added.Name, added.Host, name))
}

func (w *work) seatOf(m *Placed) (Seat, bool) {
	for _, s := range w.Want.Seats {
		if s.Key == m.Seat {
			return s, true
		}
	}
	return Seat{}, false
}

// retire removes the members that go, once they are not needed any more. It
// answers false while the database must not be touched otherwise.
func (w *work) retire() bool {
	for _, m := range w.members() {
		if m.Going == Staying {
			continue
		}
		if w.parked(m) {
			m.Stopped = true
			continue
		}
		if !w.dispensable(m) {
			w.doing("waiting for a replacement of " + m.Name)
			continue
		}
		if m.Name == w.Leader && !w.handOver(w.request("retire", m.Name, 0), "") {
			return false
		}
		if m.Name != w.Leader {
			m.Leaving = true
			w.doing("removing " + m.Name)
		}
	}
	for _, m := range w.out.Layout.Members {
		if m.Leaving && w.host(m.Host).Alive {
			w.doing("removing " + m.Name)
		}
	}
	return true
}

// dispensable: the others do without it. A lost host is waited for: what it holds
// is deleted when it returns, not behind its back.
func (w *work) dispensable(m *Placed) bool {
	if m.Going == Surplus {
		return m.Name != w.Leader || len(w.members()) > 1
	}
	if !w.host(m.Host).Alive {
		return false
	}
	ready := 0
	for _, other := range w.members() {
		if other.Going == Staying && other.Seat == m.Seat && w.ready(other) {
			ready++
		}
	}
	return ready >= w.seatsLike(m)
}

func (w *work) seatsLike(m *Placed) int {
	n := 0
	for _, s := range w.Want.Seats {
		if s.Key == m.Seat {
			n++
		}
	}
	return n
}

// rebootDatabase restarts the primary once for each request.
func (w *work) rebootDatabase() bool {
	if w.Want.Reboot <= w.out.Layout.Rebooted {
		return true
	}
	leader := w.leader()
	if leader == nil {
		w.doing("waiting for a primary")
		return false
	}
	done, failed := w.task(member.Restart, w.request("reboot", "", w.Want.Reboot), leader)
	if failed != "" {
		w.problem("the reboot failed: " + failed)
	}
	if !done && failed == "" {
		w.doing("restarting " + leader.Name)
		return false
	}
	w.out.Layout.Rebooted = w.Want.Reboot
	return true
}

// failover hands the primary role over once for each request.
func (w *work) failover() bool {
	if w.Want.Failover <= w.out.Layout.FailedOver {
		return true
	}
	if !w.handOver(w.request("failover", "", w.Want.Failover), w.Want.FailoverSeat) {
		return false
	}
	w.out.Layout.FailedOver = w.Want.Failover
	return true
}

// rebootSeats restarts single members of a cluster as asked, without a failover.
func (w *work) rebootSeats() bool {
	for _, m := range w.members() {
		seat, ok := w.seatOf(m)
		if !ok || m.Rebooted >= seat.Reboot {
			continue
		}
		done, failed := w.task(member.Restart, w.request("reboot", m.Name, seat.Reboot), m)
		if failed != "" {
			w.problem("the reboot of " + m.Name + " failed: " + failed)
		}
		if !done && failed == "" {
			w.doing("restarting " + m.Name)
			return false
		}
		m.Rebooted = seat.Reboot
	}
	return true
}

// restart rolls a change that needs one: replicas first, then the primary, which
// hands over first if a standby can take over.
func (w *work) restart() bool {
	for _, m := range w.oldFirst() {
		seat, ok := w.seatOf(m)
		if !ok || m.Restarted >= seat.Restart {
			continue
		}
		if !w.host(m.Host).Alive {
			continue
		}
		if !w.applied(m) {
			w.doing("waiting for " + m.Name + " to take its settings over")
			return false
		}
		if !w.restartOne(m, seat) {
			return false
		}
		m.Restarted = seat.Restart
	}
	return true
}

func (w *work) restartOne(m *Placed, seat Seat) bool {
	// A handover restarts the old primary with its new settings.
	handover := w.request("change", m.Name, seat.Restart)
	if w.began(handover) || (m.Name == w.Leader && w.successor("") != nil) {
		return w.handOver(handover, "")
	}
	done, failed := w.task(member.Restart, w.request("restart", m.Name, seat.Restart), m)
	if failed != "" {
		w.problem("the restart of " + m.Name + " failed: " + failed)
		return false
	}
	if !done {
		w.doing("restarting " + m.Name)
		return false
	}
	if !w.ready(m) {
		w.doing("waiting for " + m.Name)
		return false
	}
	return true
}

// oldFirst are the members with the primary last.
func (w *work) oldFirst() []*Placed {
	all := w.members()
	slices.SortStableFunc(all, func(a, b *Placed) int { return rank(a, w.Leader) - rank(b, w.Leader) })
	return all
}

func rank(m *Placed, leader string) int {
	if m.Name == leader {
		return 1
	}
	return 0
}

// settle ends what is going on once everything is as wanted.
func (w *work) settle() {
	if len(w.Want.Seats) == 0 {
		w.out.Layout.Changed = w.Want.Change
		return
	}
	leader := w.leader()
	if leader == nil || !w.ready(leader) {
		w.doing("waiting for a primary")
		return
	}
	if w.Want.Owner.Serial > w.report(leader).OwnerSerial && w.Want.Upstream == nil {
		w.doing("setting up the master user")
		return
	}
	for _, m := range w.members() {
		if m.Going != Staying {
			continue
		}
		if !w.ready(m) {
			w.unready(m)
			return
		}
		if !w.applied(m) {
			w.doing("waiting for " + m.Name + " to take its settings over")
			return
		}
	}
	if w.SyncMode() != "off" && len(w.Sync.Standbys) == 0 {
		w.problem("no standby is in sync: the next failure of the primary cannot be survived")
		w.doing("waiting for a standby in sync")
		return
	}
	w.out.Layout.Created = true
	w.out.Layout.Changed = w.Want.Change
}

// unready holds a new database or a change up. A standby that is gone later is a
// problem, and being mended, but not an unfinished request.
func (w *work) unready(m *Placed) {
	if !w.host(m.Host).Alive {
		w.problem("host " + m.Host + " is lost, with " + m.Name)
	}
	w.doing("waiting for " + m.Name + " on " + m.Host)
}

// request names a request in task ids.
func (w *work) request(kind, name string, serial int64) string {
	id := w.Want.ID + "/" + kind
	if name != "" {
		id += "/" + name
	}
	return id + "/" + strconv.FormatInt(serial, 10)
}
