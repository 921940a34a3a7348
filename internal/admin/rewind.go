package admin

import "time"

// RewindRequest asks for the data of an earlier moment in the place of those that a DB instance has.
type RewindRequest struct {
	// ID is the id of the operation, which begins with rewind-. Two calls with the same id are one.
	ID   string `json:"id"`
	Name string `json:"name"`
	// RestorePoint is what to go back to. Its Latest is refused. Its Snapshot is one of the instance, or
	// of one that had its place before.
	RestorePoint
	// KeepAs is the name of the snapshot that is made first; "": one with the time.
	KeepAs string `json:"keep_as,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// RewindPlan says what is gone back to, and what is lost by that.
type RewindPlan struct {
	Operation  string    `json:"operation"`
	Began      time.Time `json:"began"`
	Name       string    `json:"name"`
	ResourceID string    `json:"resource_id"` // as it is until the exchange
	// NextResourceID is that from then on.
	NextResourceID string `json:"next_resource_id,omitempty"`
	// To is what is gone back to, in words. Until, LSN and Before say which one it is.
	To     string    `json:"to"`
	Until  time.Time `json:"until,omitzero"`
	LSN    string    `json:"lsn,omitempty"`
	Before string    `json:"before,omitempty"`
	// FromID is the resource id of the database whose backup it begins with, which is of Taken, and of
	// which Size bytes are copied.
	FromID     string    `json:"from_resource_id"`
	Repository string    `json:"repository"`
	Label      string    `json:"label"`
	Taken      time.Time `json:"taken"`
	Size       int64     `json:"size"`
	// Snapshot is the name of the snapshot that is made first.
	Snapshot string `json:"snapshot"`
	// LostSeconds is how long ago it was what is gone back to: what was committed since is lost, and what
	// is committed until the exchange. 0: nobody knows. LostBytes is how much WAL that is, at most if
	// LostAtMost; -1: nobody knows.
	LostSeconds float64 `json:"lost_seconds"`
	LostBytes   int64   `json:"lost_bytes"`
	LostAtMost  bool    `json:"lost_at_most,omitempty"`
	// Retention is for how many days the automated backups of the database as it is stay; 0: it has none.
	Retention int      `json:"retention"`
	Hosts     []string `json:"hosts"`
	DryRun    bool     `json:"dry_run,omitempty"`
}
