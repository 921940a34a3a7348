package agent

import (
	"errors"
	"os"
	"time"

	"howdah/internal/model/member"
)

// softEvery bounds how often a report is written for positions and sizes alone:
// nobody decides anything by them.
const softEvery = 10 * time.Second

// report publishes what is known of the member, when something that matters
// changed, and now and then otherwise.
func (m *Member) report() {
	m.workload.Aim()
	m.disk.look(m.agent.Dir, time.Now())
	m.secrecy.look(m.Dir(), time.Now())
	now := m.describe()
	if sameFacts(now, m.Reported) && (now.At.Sub(m.Reported.At) < softEvery || sameAll(now, m.Reported)) {
		return
	}
	m.Reported = now
	m.publisher.publish(now)
}

func (m *Member) describe() member.Report {
	report := member.Report{
		ID: m.ID, Host: m.agent.Name, Agent: m.agent.life, Generation: m.Acted,
		Problem: m.Problem, Detail: m.Detail, At: time.Now().UTC(), Encryption: m.secrecy.how,
	}
	if m.Want.Want == member.Absent {
		_, err := os.Stat(m.Dir())
		left, groupErr := m.Group.Processes()
		report.Gone = errors.Is(err, os.ErrNotExist) && groupErr == nil && len(left) == 0
	}
	m.workload.Describe(&report)
	return report
}

// Trouble finds the problems that a member of any kind may have, and reports whether there is
// one. serves: there is a process that has data open; noRoom: it was refused to write; lacking
// says why there is no room for what it has to do first. A problem of the processes comes first.
func (m *Member) Trouble(report *member.Report, serves, noRoom bool, lacking string) (found bool) {
	full := m.Want.Want == member.Running && (m.disk.full || noRoom)
	switch {
	case full && (report.Problem == member.None || report.Problem == member.StartFails):
		// It is also why nothing starts.
		report.Problem, report.Detail = member.DiskFull, m.disk.detail
	case m.volume.detail != "" && m.Want.Want == member.Running && (report.Problem == member.None || report.Problem == member.StartFails):
		report.Problem, report.Detail = member.StorageFull, m.volume.detail
	case report.Problem != member.None && report.Problem != member.StartFails:
	case lacking != "" && m.Want.Want == member.Running:
		report.Problem, report.Detail = member.NoRoom, lacking
	case report.Problem != member.None:
	case m.refused != "":
		report.Problem, report.Detail = member.BadAssignment, m.refused
	case m.Want.Encrypted && serves && report.Encryption == member.NotEncrypted && !m.secrecy.looked.IsZero():
		report.Problem, report.Detail = member.NotEncryptable, "its data lie in a directory that is not encrypted"
	default:
		return false
	}
	return true
}

// sameFacts: nothing that decisions depend on differs.
func sameFacts(a, b member.Report) bool {
	a.At, a.LSN, a.LagSeconds, a.StorageBytes, a.Detail = b.At, b.LSN, b.LagSeconds, b.StorageBytes, b.Detail
	if a.Archived != nil && b.Archived != nil {
		now := *a.Archived
		now.Restorable, now.Waiting = b.Archived.Restorable, b.Archived.Waiting
		a.Archived = &now
	}
	return sameAll(a, b)
}

func sameAll(a, b member.Report) bool {
	a.At = b.At
	if a.Archived != nil && b.Archived != nil && *a.Archived == *b.Archived {
		a.Archived = b.Archived
	}
	return a == b
}
