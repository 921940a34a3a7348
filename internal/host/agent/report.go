package agent

import (
	"errors"
	"os"
	"strings"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/model/member"
)

// softEvery bounds how often a report is written for positions and sizes alone:
// nobody decides anything by them.
const softEvery = 10 * time.Second

// report publishes what is known of the member, when something that matters
// changed, and now and then otherwise.
func (r *runner) report() {
	r.aimProbe()
	r.disk.look(r.agent.Dir, time.Now())
	r.secrecy.look(r.dir(), time.Now())
	now := r.describe()
	if sameFacts(now, r.reported) && (now.At.Sub(r.reported.At) < softEvery || sameAll(now, r.reported)) {
		return
	}
	r.reported = now
	r.publisher.publish(now)
}

// aimProbe has the prober look at a server that should serve.
func (r *runner) aimProbe() {
	if r.want.Want == member.Running && r.postmaster.alive() {
		r.probe.aim(r.want)
		return
	}
	r.probe.aim(member.Assignment{})
}

func (r *runner) describe() member.Report {
	s := r.probe.last()
	report := member.Report{
		ID: r.id, Host: r.agent.Name, Agent: r.agent.life, Generation: r.acted, Rendered: r.rendered,
		Patroni: r.patroni.alive(), Postgres: r.postmaster.alive(), OwnKey: r.patroni.alive() && r.ownKey,
		Problem: r.problem, Detail: r.detail, At: time.Now().UTC(),
		Timeline: r.reported.Timeline, LSN: r.reported.LSN, OwnerSerial: r.reported.OwnerSerial,
		StorageBytes: r.reported.StorageBytes, Authority: r.reported.Authority, CertUntil: r.reported.CertUntil,
		Encryption: r.secrecy.how,
	}
	if r.want.Want == member.Absent {
		_, err := os.Stat(r.dir())
		left, groupErr := r.group.Processes()
		report.Gone = errors.Is(err, os.ErrNotExist) && groupErr == nil && len(left) == 0
	}
	report.Follows = r.postmaster.alive() && !s.ready && s.follows
	if r.postmaster.alive() && s.ready {
		report.Ready, report.InRecovery, report.Streaming = true, s.facts.InRecovery, s.facts.Streaming
		report.Timeline, report.LSN, report.LagSeconds = s.facts.Timeline, s.facts.LSN, s.facts.LagSeconds
		report.Paused = s.facts.Paused
		report.OwnerSerial, report.StorageBytes = s.ownerSerial, s.size
		report.Authority, report.CertUntil = s.shown.authority, s.shown.until
	}
	r.addProblem(&report, s)
	if h := r.hangs.last(); h.why != "" && h.postmaster == r.postmaster.process {
		report.Ready, report.Problem, report.Detail = false, member.Hangs, h.why
	}
	return report
}

// addProblem judges what was seen; a problem of the processes comes first.
func (r *runner) addProblem(report *member.Report, s sight) {
	limit := r.want.Limits.StorageBytes
	full := r.want.Want == member.Running && (r.disk.full || s.noRoom)
	switch {
	case full && (report.Problem == member.None || report.Problem == member.StartFails):
		// It is also why nothing starts.
		report.Problem, report.Detail = member.DiskFull, r.disk.detail
	case report.Problem != member.None && report.Problem != member.StartFails:
	case r.lacking != "" && r.want.Want == member.Running && !report.Postgres:
		report.Problem, report.Detail = member.NoRoom, r.lacking
	case report.Problem != member.None:
	case r.refused != "":
		report.Problem, report.Detail = member.BadAssignment, r.refused
	case r.want.Encrypted && report.Postgres && report.Encryption == member.NotEncrypted && !r.secrecy.looked.IsZero():
		report.Problem, report.Detail = member.NotEncryptable, "its data lie in a directory that is not encrypted"
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

// sameFacts: nothing that decisions depend on differs.
func sameFacts(a, b member.Report) bool {
	a.At, a.LSN, a.LagSeconds, a.StorageBytes, a.Detail = b.At, b.LSN, b.LagSeconds, b.StorageBytes, b.Detail
	return a == b
}

func sameAll(a, b member.Report) bool {
	a.At = b.At
	return a == b
}

// target is the assignment that the prober looks at, for other goroutines.
func (r *runner) target() member.Assignment {
	r.probe.mu.Lock()
	defer r.probe.mu.Unlock()
	return r.probe.target
}
