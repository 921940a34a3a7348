package plan

// stop ends the replicas first and the primary last, so that no replica takes over from a primary
// that is only being stopped.
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

// leads reports whether the member is the primary, even if its leader key is missing just now.
func (k *known) leads(m *Placed) bool {
	r := k.report(m)
	return m.Name == k.Leader || (k.Leader == "" && r.Postgres && r.Ready && !r.InRecovery)
}

func (k *known) anyUp() bool {
	for _, m := range k.members() {
		if !m.Stopped || !k.down(m) {
			return true
		}
	}
	return false
}

func (k *known) down(m *Placed) bool {
	r := k.report(m)
	return !k.alive(m) || (!r.Patroni && !r.Postgres)
}

// wake lets stopped members run again, except for a copy that is only kept. A member that starts
// has its newest settings, so its start counts as the restart.
func (w *work) wake() {
	asleep := len(w.members()) > 0
	for _, m := range w.members() {
		slept := m.Stopped && w.alive(m) && w.down(m)
		asleep = asleep && slept
		m.Stopped = w.parked(m) && w.Want.Last == nil || m.Stopped && w.aside(m)
		if seat, ok := w.seatOf(m); ok && slept {
			m.Restarted, m.Rebooted = seat.Restart, seat.Reboot
		}
	}
	if asleep {
		w.out.Layout.Rebooted = w.Want.Reboot
	}
}

// aside reports whether the member was stopped so that another one can lead a database that
// follows.
func (k *known) aside(m *Placed) bool {
	return k.Want.Upstream != nil && m.Going != Staying && k.heir(m)
}
