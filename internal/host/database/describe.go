package database

import (
	"strings"

	"howdah/internal/engine/postgres"
	"howdah/internal/model/member"
)

// aimProbe has the prober look at a server that should serve.
func (r *runner) aimProbe() {
	if r.Want.Want == member.Running && r.postmaster.Alive() {
		r.probe.aim(r.Want)
		return
	}
	r.probe.aim(member.Assignment{})
}

// Describe says what the prober, and those who watch, see.
func (r *runner) Describe(report *member.Report) {
	s := r.probe.last()
	report.Rendered, report.Patroni, report.Postgres = r.rendered, r.patroni.Alive(), r.postmaster.Alive()
	report.OwnKey = r.patroni.Alive() && r.ownKey
	report.Timeline, report.LSN, report.OwnerSerial = r.Reported.Timeline, r.Reported.LSN, r.Reported.OwnerSerial
	report.StorageBytes, report.Authority, report.CertUntil = r.Reported.StorageBytes, r.Reported.Authority, r.Reported.CertUntil
	report.Follows = r.postmaster.Alive() && !s.ready && s.follows
	if r.postmaster.Alive() && s.ready {
		report.Ready, report.InRecovery, report.Streaming = true, s.facts.InRecovery, s.facts.Streaming
		report.Timeline, report.LSN, report.LagSeconds = s.facts.Timeline, s.facts.LSN, s.facts.LagSeconds
		report.Paused = s.facts.Paused
		report.OwnerSerial, report.StorageBytes = s.ownerSerial, s.size
		report.Authority, report.CertUntil = s.shown.authority, s.shown.until
	}
	r.addProblem(report, s)
	if h := r.hangs.last(); h.why != "" && h.postmaster == r.postmaster.Process {
		report.Ready, report.Problem, report.Detail = false, member.Hangs, h.why
	}
}

// addProblem judges what was seen; problems that any member may have come first.
func (r *runner) addProblem(report *member.Report, s sight) {
	limit := r.Want.Limits.StorageBytes
	lacking := r.aside.Lacking()
	if report.Postgres {
		lacking = ""
	}
	if r.Trouble(report, report.Postgres, s.noRoom, lacking) {
		return
	}
	switch {
	case len(s.facts.LostSlots) > 0 && report.Ready:
		report.Problem, report.Detail = member.SlotLost, strings.Join(s.facts.LostSlots, ", ")
	case s.stuck > 0 && report.Ready:
		report.Problem, report.Detail = member.CommitsWait, explainWaits(s.stuck, s.stuckSince)
	case limit > 0 && report.StorageBytes >= limit || s.facts.StorageFull == postgres.StorageFull || s.facts.StorageFull == postgres.StorageOver:
		report.Problem = member.StorageFull
	case limit > 0 && report.StorageBytes >= limit-limit/10:
		report.Problem = member.StorageLow
	case report.Ready && report.InRecovery && !report.Streaming:
		report.Problem = member.NotReplicating
	case report.Ready && r.lacksModule(s.facts) != "":
		report.Problem, report.Detail = member.NoModule, r.lacksModule(s.facts)
	case !report.Ready && s.detail != "":
		report.Detail = s.detail
	}
}

// target is the assignment that the prober looks at, for other goroutines.
func (r *runner) target() member.Assignment {
	r.probe.mu.Lock()
	defer r.probe.mu.Unlock()
	return r.probe.target
}
