// Package postmortem combines what several processes saw of one failover: the agent or the judge
// that ended the old primary, the edge that led clients to the new one, and PostgreSQL's own
// timelines. It is pure.
package postmortem

import (
	"encoding/json"
	"fmt"
	"time"

	"howdah/internal/edge/seen"
	"howdah/internal/failover/fence"
	"howdah/internal/model/lsn"
)

// Record is the post-mortem of one failover. Facts are added as they come in.
type Record struct {
	ID       string `json:"id"` // sorts by time
	Database string `json:"database"`
	Name     string `json:"name"` // of the DB instance or cluster, at the time
	Cause    string `json:"cause"`
	Planned  bool   `json:"planned"`

	From     string `json:"from"` // member names
	FromHost string `json:"from_host"`
	To       string `json:"to"`
	ToHost   string `json:"to_host"`

	// When each phase happened. The zero time means that nobody saw it.
	Detected   time.Time `json:"detected"`
	Fenced     time.Time `json:"fenced"`
	Revoked    time.Time `json:"revoked"`
	Elected    time.Time `json:"elected"`
	Promoted   time.Time `json:"promoted"` // the new primary accepts writes
	Switched   time.Time `json:"switched"` // the endpoint leads there
	FirstWrite time.Time `json:"first_write"`
	Recorded   time.Time `json:"recorded"`

	Method   string   `json:"method"` // how the old primary was fenced
	Proof    string   `json:"proof"`
	Evidence []string `json:"evidence,omitempty"`
	Sessions int      `json:"sessions"` // client sessions that were cut

	Timeline int     `json:"timeline"`
	Fork     lsn.LSN `json:"fork"`    // where the new timeline began
	OldEnd   lsn.LSN `json:"old_end"` // where the old primary's WAL ended; 0: not known
	// Discarded is how many bytes of WAL the old primary had beyond the fork. They were never
	// acknowledged, and are gone. It is negative while it is not known.
	Discarded int64 `json:"discarded"`
}

const (
	// Keep is how long the post-mortems of a deleted database are kept. Of a database that exists,
	// the newest Most are kept.
	Keep = 90 * 24 * time.Hour
	Most = 100
)

const (
	// window is how far the facts of one failover may be apart.
	window = 2 * time.Minute
	// skew is how far the clocks of hosts may differ. What began later than this after the record
	// belongs to another failover.
	skew = 10 * time.Second
	// patience is how long the record waits for the old primary's host. Only that host knows what
	// was discarded.
	patience = 24 * time.Hour
)

// Open reports whether more facts may still come in.
func (r Record) Open(now time.Time) bool {
	age := now.Sub(r.Recorded)
	return age < window || r.Discarded < 0 && age < patience
}

// Outage returns the time from when the failure was noticed until a write worked again. It returns
// 0 if either was not seen.
func (r Record) Outage() time.Duration {
	if r.Detected.IsZero() || r.FirstWrite.IsZero() {
		return 0
	}
	return r.FirstWrite.Sub(r.Detected)
}

// AddIncident adds what was seen of the old primary's end. It ignores an incident of another
// failover. Adding the same incident again changes nothing.
func (r *Record) AddIncident(i fence.Incident) {
	if i.Member != r.From {
		return
	}
	switch i.Kind {
	case fence.Failover:
		r.addFailover(i)
	case fence.WALEnd:
		// This may come in much later, so it names the revocation that it is about. If the WAL is
		// on a later timeline, the member has already followed somebody else.
		if i.OldEnd > 0 && !r.Revoked.IsZero() && i.Revoked.Equal(r.Revoked) && i.Timeline == r.Timeline-1 {
			r.OldEnd = i.OldEnd
		}
	case fence.Hang:
	}
	r.weigh()
}

func (r *Record) addFailover(i fence.Incident) {
	if !r.near(i.Detected) {
		return
	}
	if i.Detected.Before(r.Detected) && !r.Detected.IsZero() && !i.Revoked.IsZero() && i.Revoked.Before(r.Detected) {
		return // an earlier one of the same member
	}
	r.Cause, r.Planned = i.Cause, i.Planned
	r.Detected, r.Fenced, r.Revoked = i.Detected, i.Fenced, i.Revoked
	r.Method, r.Proof, r.Evidence = i.Proof.Method, i.Proof.Text, i.Evidence
	if i.OldEnd > 0 {
		r.OldEnd = i.OldEnd
	}
}

// near reports whether something that happened then may be part of this failover. The record begins
// when the new primary serves.
func (r *Record) near(then time.Time) bool {
	apart := r.Recorded.Sub(then)
	return apart < window && apart > -skew
}

// AddSwitch adds what an edge saw. It ignores any other change of primaries.
func (r *Record) AddSwitch(s seen.Switch) {
	if s.To != r.To || s.From != r.From || !r.near(s.Elected) {
		return
	}
	r.Elected, r.Promoted, r.Switched, r.FirstWrite, r.Sessions = s.Elected, s.Serving, s.Switched, s.FirstWrite, s.Sessions
}

// AddHistory finds where the new timeline began. history is Patroni's list of [timeline, position,
// reason, …], in which each timeline ended at its position.
func (r *Record) AddHistory(history []byte) {
	var lines [][]any
	if json.Unmarshal(history, &lines) != nil {
		return
	}
	for _, line := range lines {
		if len(line) < 2 {
			continue
		}
		ended, _ := line[0].(float64)
		at, _ := line[1].(float64)
		if int(ended) == r.Timeline-1 {
			r.Fork = lsn.LSN(at)
		}
	}
	r.weigh()
}

// weigh computes Discarded once both ends are known. A planned failover discards nothing: a primary
// that stops in an orderly way has sent everything before.
func (r *Record) weigh() {
	switch {
	case r.Fork == 0:
	case r.Planned:
		r.Discarded = 0
	case r.OldEnd > 0:
		r.Discarded = max(int64(r.OldEnd)-int64(r.Fork), 0)
	}
}

// Summary returns one line for lists.
func (r Record) Summary() string {
	outage := "not measured"
	if d := r.Outage(); d > 0 {
		outage = d.Round(time.Millisecond).String()
	}
	return fmt.Sprintf("%s: %s -> %s, %s, first write after %s", r.Name, r.FromHost, r.ToHost, r.Cause, outage)
}
