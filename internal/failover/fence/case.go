package fence

import (
	"time"

	"howdah/internal/model/lsn"
	"howdah/internal/model/patroni"
)

// Phase says how far a case has come.
type Phase string

// The phases. A case that has ended is deleted.
const (
	// Suspected: the primary's host is silent. The standbys' hosts check whether they reach the
	// primary.
	Suspected Phase = "suspected"
	// Cutting: the standbys' hosts cut themselves off from the primary.
	Cutting Phase = "cutting"
	// Revoked: the leader key was taken away. The cuts last until the old primary is known to be
	// down, or to follow.
	Revoked Phase = "revoked"
)

// Case is a primary that is suspected, or proved, to be lost. Only the judge writes it.
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
	// Candidates are the standbys that can be promoted, given the cuts that the judge counted. It
	// is empty in a case of an older release, and if the proof is not by cuts.
	Candidates []string `json:"candidates,omitempty"`
	// Waiting says why there is no proof, and what would help. It is "" in the first seconds.
	Waiting string `json:"waiting,omitempty"`
}

// Wanted reports whether the standbys have to cut the primary off.
func (c Case) Wanted() bool { return c.Phase == Cutting || c.Phase == Revoked }

// Witness is what a standby's host sees of the suspected primary. That host's agent writes it.
type Witness struct {
	Case     string    `json:"case"`
	Host     string    `json:"host"`
	Patroni  bool      `json:"patroni"`  // it answered
	Postgres bool      `json:"postgres"` // it answered
	At       time.Time `json:"at"`
}

// CutReport says that a standby is cut off from the primary, and confirms nothing to it any more.
// The standby's agent writes it after the cut.
type CutReport struct {
	Case   string    `json:"case"`
	Host   string    `json:"host"`
	Member string    `json:"member"` // name of the standby
	How    string    `json:"how"`
	LSN    lsn.LSN   `json:"lsn"` // what it has received
	At     time.Time `json:"at"`
}

// Death is a proof that a primary does not run any more, made on its own host. That host's agent
// writes it after the fact. The gate that lets the same member be promoted again removes it.
type Death struct {
	Database string    `json:"database"`
	Member   string    `json:"member"` // name
	Host     string    `json:"host"`
	Proof    Proof     `json:"proof"`
	At       time.Time `json:"at"`
}

// Plea is a promotion that waits at a gate, because the old primary may still be able to
// acknowledge commits. The judge then has the other standbys cut off from that primary. The gate of
// the waiting member writes the plea. The gate that lets a member through removes it, or the judge
// does so when the old primary leads again.
type Plea struct {
	Database string       `json:"database"`
	Member   string       `json:"member"` // that waits
	Old      patroni.Sync `json:"old"`    // of the old primary
	Why      string       `json:"why"`
	Missing  []string     `json:"missing,omitempty"` // standbys that would have to be cut off
	At       time.Time    `json:"at"`
}

// Passed is the member of a database that a gate let through last. That gate writes it. The judge
// removes it when the member has become primary, or when the primary before it leads on.
type Passed struct {
	Database string    `json:"database"`
	Member   string    `json:"member"`
	Old      string    `json:"old"` // the primary before it
	Why      string    `json:"why"`
	At       time.Time `json:"at"`
	// LeaderRevision is the revision of the leader key that the member had. A case about an earlier
	// key of the same member is about an earlier time. 0 comes from an older release.
	LeaderRevision int64 `json:"leader_revision,omitempty"`
}

// Before reports whether a case is about an earlier time of the same member as primary, that is,
// whether a gate let the member through after it. caseAt and passedAt are the revisions of the two
// records; they decide if p has no LeaderRevision.
func (p Passed) Before(c Case, caseAt, passedAt int64) bool {
	if p.Member != c.Leadership.Leader {
		return false
	}
	if p.LeaderRevision == 0 {
		return caseAt < passedAt
	}
	return c.Leadership.LeaderRevision < p.LeaderRevision
}

// Timeline is the newest timeline that a promotion of a database was to begin. The gate that lets a
// member through writes it. So no two promotions take the same number, although the second one may
// not have heard of the first.
type Timeline struct {
	Database string `json:"database"`
	Number   int    `json:"number"`
	Member   string `json:"member"`
	// LeaderRevision is the revision of the leader key that the member had.
	LeaderRevision int64 `json:"leader_revision"`
}

// Sworn is an operator's word that a host is off. The server writes it. The judge removes it when
// the host is heard.
type Sworn struct {
	Host string    `json:"host"`
	By   string    `json:"by"`
	At   time.Time `json:"at"`
}

// Off reports whether a proof says that the primary does not run any more. Then none of its
// standbys has to be cut off.
func (p Proof) Off() bool {
	return p.Method == "killed" || p.Method == "stonith" || p.Method == "operator"
}

// Kind is the kind of an incident.
type Kind string

// The kinds of incidents.
const (
	// Failover: a primary was replaced. The incident is the first half of a post-mortem.
	Failover Kind = "failover"
	// Hang: a Patroni had to be restarted.
	Hang Kind = "hang"
	// WALEnd: a primary was replaced while its host was lost, and that host came back and found
	// where the primary's WAL ended. Revoked is the time of that failover's revocation.
	WALEnd Kind = "wal-end"
)

// Incident is a failure as seen by whoever dealt with it: the agent of the member's host, or the
// judge if that host was lost. It is written once.
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
	// Timeline is the timeline of OldEnd.
	Timeline int `json:"timeline,omitempty"`
}
