package admin

// These are codes of problems. member.Problem has the codes of members' problems.
const (
	ProblemEtcd     = "etcd-member-down"
	ProblemNoEdge   = "no-edge"
	ProblemEdge     = "edge-away"
	ProblemNoHost   = "no-host"
	ProblemHost     = "host-lost"
	ProblemMember   = "member-down"
	ProblemPrimary  = "no-primary"
	ProblemSync     = "no-standby-in-sync"
	ProblemPlace    = "no-place"
	ProblemPlan     = "held-up"
	ProblemLacks    = "lacks-extensions"
	ProblemOlder    = "older-extensions"
	ProblemFence    = "fence-open"
	ProblemProof    = "no-proof"
	ProblemVersions = "version-differs"
	ProblemFull     = "etcd-full"
	ProblemHeld     = "held"
	ProblemStranger = "unknown-data"
	ProblemBackup   = "no-backup"
	ProblemLate     = "operation-late"

	ProblemNoRepository = "no-repository"
	ProblemKeyAtHome    = "key-not-exported"
	ProblemRepository   = "repository-away"
	ProblemLowRoom      = "repository-low"

	ProblemDrill         = "drill-failed"
	ProblemBackupLate    = "backup-late"
	ProblemNotRestorable = "not-restorable"
)

// Problem is something that is wrong.
type Problem struct {
	Code    string `json:"code"`
	Subject string `json:"subject"` // "host zone-b", "db demo", …
	// ResourceID is the resource id of the database, if the problem is about one.
	ResourceID string `json:"resource_id,omitempty"`
	Text       string `json:"text"`
	// Command mends the problem, or shows more. It is "" if Howdah mends the problem by itself.
	Command string `json:"command,omitempty"`
}
