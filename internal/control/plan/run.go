package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// run brings a database towards filled seats and done requests, in the order of urgency. It first
// finds places, then replaces what is lost, then removes members. Only then does it do what users
// asked for.
func (w *work) run() {
	w.tellLost()
	w.adoptParked()
	w.wake()
	seated := w.seat()
	w.replaceLost()
	w.restoreAnew()
	w.noteSourceGone()
	w.drain()
	w.restores()
	w.mendPorts()
	w.mendNames()
	w.mendKeys()
	w.warm()
	if !w.retire() {
		return
	}
	if len(w.Want.Seats) == 0 {
		w.out.Layout.requestsDone(w.Want)
		return
	}
	if !w.flee() || !w.rebootDatabase() || !w.failover() || !w.lower() || !w.rebootSeats() || !w.resume() || !w.restart() {
		return
	}
	w.settle(seated)
}

// requestsDone marks all requests as done: nobody is there to do them, and they shall not be done
// later.
func (l *Layout) requestsDone(want Database) {
	l.Changed, l.Rebooted, l.FailedOver = want.Change, want.Reboot, want.Failover
}

// tellLost reports lost hosts that have members which count. Without a primary, any of these may be
// the copy that is needed.
func (w *work) tellLost() {
	for _, m := range w.members() {
		if (m.Going == Staying || w.primary() == nil) && !w.alive(m) {
			w.tell(Problem{Kind: HostLost, Host: m.Host, Text: "host " + m.Host + " is lost, with " + m.Name})
		}
	}
}

// settle ends what is going on once everything is as wanted.
func (w *work) settle(seated bool) {
	leader := w.primary()
	if leader == nil {
		if !w.restores() && !w.unstick() {
			w.doing(awaitPrimary)
		}
		return
	}
	if w.Want.Owner.Serial > w.report(leader).OwnerSerial && w.Want.Upstream == nil {
		w.doing("setting up the master user")
		return
	}
	if !w.Want.Hidden && !slices.Contains(w.Ways[""], leader.Listen()) {
		w.doing("waiting for the endpoint")
		return
	}
	filled := w.fillSeats()
	if !seated && w.awaitsBackup() {
		w.doing(awaitBackup)
		w.tell(Problem{Kind: NoStandby, Text: "the standby waits for the first backup: " + unsurvived})
		seated = true
	}
	filled = filled && seated
	w.checkSync()
	// Instances of a cluster come and go one by one. Everything else is made as a whole.
	if (filled || !w.Want.SpreadZones) && w.tidy() {
		w.out.Layout.Created = true
		w.out.Layout.Changed = w.Want.Change
	}
}

// fillSeats reports whether all seats have been filled once. It names what is not as it should be.
func (w *work) fillSeats() bool {
	filled := true
	for _, m := range w.members() {
		switch {
		case m.Going != Staying:
		case !w.ready(m):
			w.doing("waiting for " + m.Name + " on " + m.Host)
			filled = filled && m.Served
		case w.confirms(m) && m.Name != w.Leader && !w.inSync(m):
			w.doing("waiting for " + m.Name + " to be in sync")
			filled = filled && m.Served
		default:
			m.Served = true
		}
	}
	return filled
}

// tidy reports whether the settings are in force wherever they can be, and no member is left over.
func (w *work) tidy() bool {
	tidy := true
	for _, m := range w.out.Layout.Members {
		tidy = tidy && !m.Leaving && m.Going != Surplus
	}
	for _, m := range w.members() {
		if m.Going == Staying && w.ready(m) && !w.applied(m) && !w.justRestored(m) {
			w.doing("waiting for " + m.Name + " to take its settings over")
			tidy = false
		}
	}
	return tidy
}

const unsurvived = "the next failure of the primary cannot be survived"

// checkSync reports a problem if no standby is in sync where there was one.
func (w *work) checkSync() {
	if slices.ContainsFunc(w.members(), w.inSync) {
		w.out.Layout.Alone = time.Time{}
		return
	}
	if w.SyncMode() == patroni.SyncOff {
		return
	}
	w.doing("waiting for a standby in sync")
	if w.exposed() {
		w.tell(Problem{Kind: NoStandby, Text: "no standby is in sync: " + unsurvived})
	}
}

// exposed reports whether the primary serves without a standby in sync, although there shall be one,
// and was one, or would have been but for the backup that it is made of.
func (k *known) exposed() bool {
	voters := 0
	for _, s := range k.Want.Seats {
		voters += 1 - boolRank(s.NoFailover)
	}
	served := slices.ContainsFunc(k.members(), func(m *Placed) bool { return m.Served && m.Name != k.Leader && k.confirms(m) })
	return k.Want.State == member.Running && voters > 1 && (served && k.SyncMode() != patroni.SyncOff || !k.Layout.Alone.IsZero()) && k.primary() != nil &&
		!slices.ContainsFunc(k.members(), k.inSync)
}

// rebootDatabase restarts the primary once for each request.
func (w *work) rebootDatabase() bool {
	if w.Want.Reboot <= w.out.Layout.Rebooted {
		return true
	}
	leader := w.leader()
	// A member that hangs can be rebooted. A member that is being promoted must not be.
	if leader == nil || !w.alive(leader) || (w.report(leader).InRecovery && w.Want.Upstream == nil) {
		w.doing("waiting for a primary")
		return false
	}
	request := w.request("reboot", "", w.Want.Reboot)
	if !w.restartFirst(request, leader, w.Growing) || !w.reboot(request, leader) || !w.rebootAgain(request, leader) || !w.restartLast(request, leader) {
		return false
	}
	w.out.Layout.Rebooted = w.Want.Reboot
	return true
}

// rebootSeats restarts single members of a cluster as asked, without a failover. A member on a lost
// host is restarted when the host returns; the others do not wait for it.
func (w *work) rebootSeats() bool {
	for _, m := range w.members() {
		seat, ok := w.seatOf(m)
		if !ok || m.Rebooted >= seat.Reboot || !w.alive(m) {
			continue
		}
		request := w.request("reboot", m.Name, seat.Reboot)
		leads := m.Name == w.Leader
		if leads && !w.restartFirst(request, m, w.Growing) || !w.reboot(request, m) || leads && !w.rebootAgain(request, m) {
			return false
		}
		m.Rebooted = seat.Reboot
	}
	return true
}

// settingsWithin is how long a member that serves nobody may take to apply its settings before it
// is restarted. It may have been restarted a moment ago, or it may hang.
const settingsWithin = 5 * time.Second

// reboot restarts a member because a user asked for it. After some failures it gives the request
// up, so that the restart does not happen when nobody expects it any more.
func (w *work) reboot(request string, m *Placed) bool {
	if w.exhausted(request) {
		w.problem(fmt.Sprintf("the reboot of %s was given up: %s", m.Name, w.progress(request).detail))
		return true
	}
	if !w.mayPause(m) && w.progress(request).stage == unasked {
		w.doing("waiting for another standby in sync")
		return false
	}
	if takes := "waiting for " + m.Name + " to take its settings over"; w.progress(request).stage == unasked && w.runs(m) && !w.applied(m) &&
		(w.ready(m) || w.waited(takes) < settingsWithin) {
		w.doing(takes)
		return false
	}
	isDone, failed := w.task(member.Restart, request, m)
	if failed != "" {
		w.problem(fmt.Sprintf("the reboot of %s failed and is tried again: %s", m.Name, failed))
	}
	if !isDone {
		w.doing("restarting " + m.Name)
	}
	return isDone
}

// restart carries out a change that needs a restart: first on the replicas, then on the primary. If
// a standby can take over, the primary hands over first.
func (w *work) restart() bool {
	for _, m := range w.oldFirst() {
		seat, ok := w.seatOf(m)
		if !ok || m.Restarted >= seat.Restart || m.Going == Surplus || !w.alive(m) {
			continue
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
	of := strings.TrimSuffix(m.Name+"/"+seat.Key, "/")
	handover, restart := w.request("change", of, seat.Restart), w.request("restart", of, seat.Restart)
	given, begun := w.progress(handover).stage, w.progress(restart).stage != unasked
	successor := w.successor("") != nil
	switch {
	case given == done:
		return w.back(m)
	case given == waiting || given == failed && successor:
		return w.handOver(handover, "") && w.back(m)
	case !begun && w.primary() == nil:
		w.doing("waiting for a primary")
		return false
	case !begun && !w.applied(m):
		w.doing("waiting for " + m.Name + " to take its settings over")
		return false
	case !begun && m.Name == w.Leader && successor:
		return w.handOver(handover, "")
	}
	if !w.mayPause(m) && !begun {
		w.doing("waiting for another standby in sync")
		return false
	}
	isDone, failed := w.task(member.Restart, restart, m)
	if failed != "" {
		w.problem(fmt.Sprintf("the restart of %s failed and is tried again: %s", m.Name, failed))
	}
	if !isDone {
		w.doing("restarting " + m.Name)
		return false
	}
	return w.back(m)
}

// back reports whether the member and the primary serve again after a restart.
func (w *work) back(m *Placed) bool {
	switch {
	case !w.ready(m):
		w.doing("waiting for " + m.Name)
		return false
	case w.primary() == nil:
		w.doing("waiting for the new primary")
		return false
	}
	return true
}

// oldFirst returns the members, the primary last.
func (k *known) oldFirst() []*Placed {
	all := k.members()
	slices.SortStableFunc(all, func(a, b *Placed) int { return rank(a, k.Leader) - rank(b, k.Leader) })
	return all
}

func rank(m *Placed, leader string) int {
	if m.Name == leader {
		return 1
	}
	return 0
}

// request returns the name of a request for task ids.
func (k *known) request(kind, name string, serial int64) string {
	id := k.Want.ID + "/" + kind
	if name != "" {
		id += "/" + name
	}
	return id + "/" + strconv.FormatInt(serial, 10)
}
