package fence

import (
	"time"

	"howdah/internal/model/lsn"
	"howdah/internal/model/patroni"
)

// Phase is how far a case is.
type Phase string

// The phases. A case that is over is deleted.
const (
	// Suspected: the primary's host is silent; the standbys' hosts look whether
	// they reach the primary.
	Suspected Phase = "suspected"
	// Cutting: the standbys' hosts cut themselves off from the primary.
	Cutting Phase = "cutting"
	// Revoked: the leader key was taken away; the cut lasts until the old primary
	// is known to be down or to follow.
	Revoked Phase = "revoked"
)

// Case is a primary that is suspected, or proved, to be lost. Written by the
// judge only.
type Case struct {
	ID         string     `json:"id"`
	Phase      Phase      `json:"phase"`
	Leadership Leadership `json:"leadership"`
	Host       string     `json:"host"`     // of the primary
	Postgres   string     `json:"postgres"` // its address and port
	Patroni    string     `json:"patroni"`  // address and port of its Patroni
	Opened     time.Time  `json:"opened"`
	Evidence   []string   `json:"evidence"`
	Cut        time.Time  `json:"cut"`
	Proof      Proof      `json:"proof"`
	RevokedAt  time.Time  `json:"revoked_at"`
	// Candidates are the standbys that could be promoted by the cuts that the judge
	// counted. Empty in a case of an older release, or with another proof.
	Candidates []string `json:"candidates,omitempty"`
	// Waiting says why there is no proof, and what would help; "" while it is early.
	Waiting string `json:"waiting,omitempty"`
}

// Wanted reports whether the primary has to be cut off.
func (c Case) Wanted() bool { return c.Phase == Cutting || c.Phase == Revoked }

// Witness is what a standby's host sees of the suspected primary. Written by
// that host's agent.
type Witness struct {
	Case     string    `json:"case"`
	Host     string    `json:"host"`
	Patroni  bool      `json:"patroni"`  // it answered
	Postgres bool      `json:"postgres"` // it answered
	At       time.Time `json:"at"`
}

// CutReport says that a standby is cut off from the primary: it confirms nothing
// to it any more. Written by the standby's agent, after the fact.
type CutReport struct {
	Case   string    `json:"case"`
	Host   string    `json:"host"`
	Member string    `json:"member"` // name of the standby
	How    string    `json:"how"`
	LSN    lsn.LSN   `json:"lsn"` // what it has received
	At     time.Time `json:"at"`
}

// Death is a primary that does not run any more, proved on its own host. Written by
// that host's agent, after the fact; taken away by the gate that lets the same member
// be promoted again.
type Death struct {
	Database string    `json:"database"`
	Member   string    `json:"member"` // name
	Host     string    `json:"host"`
	Proof    Proof     `json:"proof"`
	At       time.Time `json:"at"`
}

// Plea is a promotion that waits, because it is not certain that the old primary can
// acknowledge nothing. The judge has the other standbys cut off from it. Written by the
// gate of the member that waits; taken away by the gate that lets one through, or by
// the judge when the old primary leads again.
type Plea struct {
	Database string       `json:"database"`
	Member   string       `json:"member"` // that waits
	Old      patroni.Sync `json:"old"`    // of the old primary
	Why      string       `json:"why"`
	Missing  []string     `json:"missing,omitempty"` // standbys that would have to be cut off
	At       time.Time    `json:"at"`
}

// Passed is the member of a database that a gate let through last. Written by the gate;
// taken away by the judge when the primary before it leads on all the same.
type Passed struct {
	Database string    `json:"database"`
	Member   string    `json:"member"`
	Old      string    `json:"old"` // the primary before it
	Why      string    `json:"why"`
	At       time.Time `json:"at"`
	// LeaderRevision is that of the leader key which the member had: what is about an
	// earlier key of the same member is about the time before. 0 from an older release.
	LeaderRevision int64 `json:"leader_revision,omitempty"`
}

// Before reports whether a case is about an earlier time of the member as primary: it was
// let through anew since. caseAt and passedAt are the revisions of the two records.
func (p Passed) Before(c Case, caseAt, passedAt int64) bool {
	if p.Member != c.Leadership.Leader {
		return false
	}
	if p.LeaderRevision == 0 {
		return caseAt < passedAt
	}
	return c.Leadership.LeaderRevision < p.LeaderRevision
}

// Sworn is an operator's word that a host is off. Written by server; taken away by
// the judge when the host is heard.
type Sworn struct {
	Host string    `json:"host"`
	By   string    `json:"by"`
	At   time.Time `json:"at"`
}

// Off reports whether a proof says that the primary does not run any more, so that none
// of its standbys has to be cut off.
func (p Proof) Off() bool {
	return p.Method == "killed" || p.Method == "stonith" || p.Method == "operator"
}

// Kind tells incidents apart.
type Kind string

// The kinds of incidents.
const (
	// Failover: a primary was replaced. The first half of a post-mortem.
	Failover Kind = "failover"
	// Hang: a Patroni had to be restarted.
	Hang Kind = "hang"
	// WALEnd: where the WAL of a primary ended that was replaced while its host was
	// lost, as that host found out when it came back. Revoked is the failover's own.
	WALEnd Kind = "wal-end"
)

// Incident is a failure as those saw it who dealt with it: the agent of the
// member's host, or the judge when that host was lost. Written once.
type Incident struct {
	Kind     Kind      `json:"kind"`
	Database string    `json:"database"`
	Member   string    `json:"member"` // member name
	Host     string    `json:"host"`
	Cause    string    `json:"cause"`
	Planned  bool      `json:"planned"`
	Detected time.Time `json:"detected"`
	Fenced   time.Time `json:"fenced"`
	Revoked  time.Time `json:"revoked"`
	Proof    Proof     `json:"proof"`
	Evidence []string  `json:"evidence,omitempty"`
	// OldEnd is where the old primary's WAL ended, if it could be read.
	OldEnd lsn.LSN `json:"old_end,omitempty"`
	// Timeline is the one that OldEnd is on.
	Timeline int `json:"timeline,omitempty"`
}
