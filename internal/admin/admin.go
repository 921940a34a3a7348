// Package admin is the contract of the admin API: what `howdah status` and other commands need and
// RDS has no action for. A call is POST Path+verb with JSON in and out. Any access key of the home
// signs it, with SigV4 for Service. The package has no code beyond its own types.
//
// Invariants: no answer holds a secret, except for that of a new access key, and for the key of a
// repository that somebody exports. Names in JSON are stable.
package admin

import (
	"net/http"
	"time"

	"howdah/internal/failover/postmortem"
)

const (
	// Path is the beginning of all paths of this API.
	Path = "/howdah/admin/"
	// Service is the service name that calls are signed for.
	Service = "howdah"
)

// The verbs.
const (
	VerbStatus     = "status"      // Nothing, Status
	VerbDatabase   = "database"    // DatabaseRequest, DatabaseAnswer
	VerbFailovers  = "failovers"   // FailoversRequest, FailoversAnswer
	VerbDrain      = "drain"       // DrainRequest, DrainAnswer
	VerbUndrain    = "undrain"     // HostRequest, Nothing
	VerbForgetHost = "forget-host" // HostRequest, Nothing
	VerbHostOff    = "host-off"    // HostOffRequest, HostOffAnswer
	VerbWipe       = "wipe"        // Nothing, WipeAnswer
	VerbKeyCreate  = "key-create"  // KeyCreateRequest, KeyCreateAnswer
	VerbKeyList    = "key-list"    // Nothing, KeyListAnswer
	VerbKeyDelete  = "key-delete"  // KeyRequest, Nothing

	VerbAuthorityCreate = "authority-create" // AuthorityRequest, Authority
	VerbAuthorityList   = "authority-list"   // Nothing, AuthorityListAnswer

	VerbEtcd = "etcd" // EtcdRequest, EtcdAnswer

	VerbOperations      = "operations"       // OperationsRequest, OperationsAnswer
	VerbOperationCancel = "operation-cancel" // OperationCancelRequest, Operation

	VerbRepositoryAdd       = "repository-add"        // RepositoryAddRequest, Repository
	VerbRepositoryList      = "repository-list"       // Nothing, RepositoryListAnswer
	VerbRepositoryShow      = "repository-show"       // RepositoryRequest, Repository
	VerbRepositoryCheck     = "repository-check"      // RepositoryRequest, RepositoryCheckAnswer
	VerbRepositoryDefault   = "repository-default"    // RepositoryRequest, Repository
	VerbRepositoryRemove    = "repository-remove"     // RepositoryRemoveRequest, RepositoryRemoveAnswer
	VerbRepositoryKeyExport = "repository-key-export" // RepositoryRequest, RepositoryKeyAnswer
	VerbRepositoryKeyImport = "repository-key-import" // RepositoryKeyRequest, Repository

	VerbRoleAdd    = "role-add"    // RoleAddRequest, Role
	VerbRoleList   = "role-list"   // Nothing, RoleListAnswer
	VerbRoleRemove = "role-remove" // RoleRequest, Role

	VerbBackups     = "backups"      // BackupsRequest, BackupsAnswer
	VerbBackupShow  = "backup-show"  // BackupsRequest, BackupStatus
	VerbBackupNow   = "backup-now"   // BackupBeginRequest, BackupBegun
	VerbBackupDrill = "backup-drill" // BackupBeginRequest, BackupBegun
	VerbDrills      = "drills"       // BackupsRequest, DrillsAnswer
	VerbSnapshots   = "snapshots"    // BackupsRequest, SnapshotsAnswer

	VerbSnapshotCopy     = "snapshot-copy"     // SnapshotCopyRequest, SnapshotCopy
	VerbSnapshotDownload = "snapshot-download" // SnapshotDownloadRequest, SnapshotDownload
	VerbSnapshotFetch    = "snapshot-fetch"    // SnapshotFetchRequest, a tar archive as SnapshotFetchRequest says, or Nothing

	VerbRestore = "restore" // RestoreRequest, RestorePlan
	VerbRewind  = "rewind"  // RewindRequest, RewindPlan

	VerbHeld     = "held"      // Nothing, Held
	VerbTakeOver = "take-over" // TakeOverRequest, Nothing
)

// Error is the body of every answer that is not 200.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Hint says what the user can do about it. It may be "".
	Hint string `json:"hint,omitempty"`
	// Status is the HTTP status. It is not part of the body.
	Status int `json:"-"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Codes of errors that only this API has.
const (
	CodeUnknownVerb    = "UnknownVerb"
	CodeInvalidRequest = "InvalidRequest"
	CodeWrongService   = "WrongService"
	CodeHostNotFound   = "HostNotFound"
	CodeKeyNotFound    = "KeyNotFound"
	CodeKeyOfHome      = "KeyOfHome"
	CodeHostAlive      = "HostAlive"
	CodeOnlyCopy       = "OnlyCopy"
	CodeNotDisposable  = "NotDisposable"
	CodeUnavailable    = "ServiceUnavailable"

	CodeRepositoryNotFound = "RepositoryNotFound"
	CodeRepositoryExists   = "RepositoryAlreadyExists"
	CodeRepositoryInUse    = "RepositoryInUse"
	CodeRepositoryRefused  = "RepositoryRefused" // its place is not fit, or does not work
	CodeRepositoryKey      = "RepositoryKeyWrong"

	CodeRoleNotFound = "RoleNotFound"
	CodeRoleExists   = "RoleAlreadyExists"
	CodeRoleInUse    = "RoleInUse"

	CodeDatabaseNotFound = "DatabaseNotFound"
	CodeBackupRefused    = "BackupRefused" // no backup or drill can be begun now

	CodeRestoreRefused = "RestoreRefused" // that cannot be restored
	CodeRewindRefused  = "RewindRefused"  // the database cannot go back in its place

	CodeDownloadRefused   = "DownloadRefused"
	CodeDownloadEncrypted = "DownloadNotEncrypted" // the caller has to say that this is all right
	CodeNotReady          = "DownloadNotReady"     // nothing can be fetched now

	CodeOperationNotFound = "OperationNotFound"
	CodeOperationEnded    = "OperationEnded"

	CodeInternal = "InternalFailure"
)

// statuses has the HTTP status of the codes above. Any other code is the caller's fault.
var statuses = map[string]int{
	CodeUnknownVerb: http.StatusNotFound, CodeHostNotFound: http.StatusNotFound, CodeKeyNotFound: http.StatusNotFound,
	CodeRepositoryNotFound: http.StatusNotFound, CodeRepositoryExists: http.StatusConflict, CodeRepositoryInUse: http.StatusConflict,
	CodeRoleNotFound: http.StatusNotFound, CodeRoleExists: http.StatusConflict, CodeRoleInUse: http.StatusConflict,
	CodeDatabaseNotFound: http.StatusNotFound, CodeBackupRefused: http.StatusConflict, CodeRestoreRefused: http.StatusConflict, CodeRewindRefused: http.StatusConflict,
	CodeDownloadRefused: http.StatusConflict, CodeDownloadEncrypted: http.StatusConflict, CodeNotReady: http.StatusConflict,
	CodeOperationNotFound: http.StatusNotFound, CodeOperationEnded: http.StatusConflict,
	CodeKeyOfHome: http.StatusConflict, CodeHostAlive: http.StatusConflict, CodeOnlyCopy: http.StatusConflict,
	CodeNotDisposable: http.StatusForbidden, CodeWrongService: http.StatusForbidden,
	CodeUnavailable: http.StatusServiceUnavailable, CodeInternal: http.StatusInternalServerError,
}

// NewError returns an error with a code, and with the HTTP status that belongs to it.
func NewError(code, message, hint string) *Error {
	status, known := statuses[code]
	if !known {
		status = http.StatusBadRequest
	}
	return &Error{Code: code, Message: message, Hint: hint, Status: status}
}

// Nothing is the request or the answer of verbs that have none.
type Nothing struct{}

// DatabaseRequest asks for the databases of this name in the caller's account and region. An
// instance and a cluster may share a name.
type DatabaseRequest struct {
	Name string `json:"name"`
}

// DatabaseAnswer is empty if there is none.
type DatabaseAnswer struct {
	Databases []Database `json:"databases"`
	Problems  []Problem  `json:"problems"`
}

// FailoversRequest asks for post-mortems, newest first.
type FailoversRequest struct {
	Name  string `json:"name,omitempty"`  // of an instance or a cluster, or a resource id; "": all
	Limit int    `json:"limit,omitempty"` // 0: all
}

// FailoversAnswer has the post-mortems, newest first.
type FailoversAnswer struct {
	Failovers []postmortem.Record `json:"failovers"`
}

// HostRequest names a host.
type HostRequest struct {
	Host string `json:"host"`
}

// HostOffRequest is an operator's word that a host is off. With DryRun it only asks what that would
// mean.
type HostOffRequest struct {
	Host   string `json:"host"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// HostOffAnswer names the databases whose primary is on the host. By that word another member may
// take the primary's place.
type HostOffAnswer struct {
	Databases []string `json:"databases"`
}

// DrainRequest asks for a host to be emptied. With DryRun it only asks what that would move.
type DrainRequest struct {
	Host   string `json:"host"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// DrainAnswer says what is on the host and where it goes.
type DrainAnswer struct {
	Draining bool   `json:"draining"`
	Moves    []Move `json:"moves"`
}

// Move is one member that has to leave a host.
type Move struct {
	Database   string `json:"database"`
	ResourceID string `json:"resource_id"`
	Member     string `json:"member"`
	Role       string `json:"role"`
	To         string `json:"to,omitempty"`      // host
	Step       string `json:"step,omitempty"`    // what is going on
	Problem    string `json:"problem,omitempty"` // why it cannot move now
}

// WipeAnswer says what was deleted.
type WipeAnswer struct {
	Instances int     `json:"instances"`
	Clusters  int     `json:"clusters"`
	Members   int     `json:"members"`
	Seconds   float64 `json:"seconds"`
	// Pending has members on lost hosts, as HOST/MEMBER. They are deleted when those hosts return.
	Pending []string `json:"pending,omitempty"`
}

// Step is a stage of what is going on.
type Step struct {
	Name  string    `json:"name"`
	Began time.Time `json:"began"`
}
