package plan

// stop ends the replicas first and the primary last, so that nobody takes over
// from a primary that is only being stopped.
func (w *work) stop() {
	waiting := false
	for _, m := range w.members() {
		if !w.leads(m) {
			m.Stopped = true
			waiting = waiting || !w.down(m)
		}
	}
	for _, m := range w.members() {
		if w.leads(m) && !waiting {
			m.Stopped = true
		}
	}
	if w.anyUp() {
		w.doing("stopping")
		return
	}
	w.out.Layout.Changed = w.Want.Change
}

// leads: it is the primary, also while its leader key is not there just now.
func (w *work) leads(m *Placed) bool {
	r := w.report(m)
	return m.Name == w.Leader || (w.Leader == "" && r.Postgres && r.Ready && !r.InRecovery)
}

func (w *work) anyUp() bool {
	for _, m := range w.members() {
		if !m.Stopped || !w.down(m) {
			return true
		}
	}
	return false
}

func (w *work) down(m *Placed) bool {
	r := w.report(m)
	return !w.alive(m) || (!r.Patroni && !r.Postgres)
}

// wake lets stopped members run again, save for a copy that is only kept. What
// starts anew has its newest settings, and is restarted by it.
func (w *work) wake() {
	asleep := len(w.members()) > 0
	for _, m := range w.members() {
		slept := m.Stopped && w.alive(m) && w.down(m)
		asleep = asleep && slept
		m.Stopped = w.parked(m) || m.Stopped && w.aside(m)
		if seat, ok := w.seatOf(m); ok && slept {
			m.Restarted, m.Rebooted = seat.Restart, seat.Reboot
		}
	}
	if asleep {
		w.out.Layout.Rebooted = w.Want.Reboot
	}
}

// aside: it was stopped so that another one leads a database that follows.
func (w *work) aside(m *Placed) bool {
	return w.Want.Upstream != nil && m.Going != Staying && w.heir(m)
}
