package admin

import "time"

// OperationsRequest asks for the operations under way, and for the newest of those that have ended.
type OperationsRequest struct {
	ID string `json:"id,omitempty"` // "": all
	// Name is the name of an instance or a cluster, or a resource id. "" asks for all.
	Name  string `json:"name,omitempty"`
	Limit int    `json:"limit,omitempty"` // of those that have ended; 0: all
}

// OperationsAnswer has the operations: first those under way, then the others, the newest first.
type OperationsAnswer struct {
	Operations []Operation `json:"operations"`
}

// Operation is work on a database that takes minutes or hours.
type Operation struct {
	ID         string `json:"id"`
	Kind       string `json:"kind"`
	Database   string `json:"database"` // its name when the operation began
	ResourceID string `json:"resource_id"`
	Account    string `json:"account"`
	Region     string `json:"region"`
	// State is running, undoing, done, failed or cancelled.
	State string `json:"state"`
	Ended bool   `json:"ended"`
	Step  string `json:"step,omitempty"`
	// Done is how many of Of units are done. An Of of 0 is not known.
	Done int64  `json:"done"`
	Of   int64  `json:"of"`
	Unit string `json:"unit,omitempty"`
	// Failures is how often in a row the step failed. What follows says what it waits for, or what
	// it last failed with.
	Failures int    `json:"failures,omitempty"`
	Trouble  string `json:"trouble,omitempty"`
	// Reason says why it failed, or was cancelled.
	Reason string `json:"reason,omitempty"`
	// Left are steps that could not be undone.
	Left []string `json:"left,omitempty"`
	// Excludes are deeds on the database that wait until the operation has ended.
	Excludes   []string `json:"excludes,omitempty"`
	Cancelling bool     `json:"cancelling,omitempty"` // it is to be cancelled
	Late       bool     `json:"late,omitempty"`       // it should have ended at the deadline
	// Jobs are what hosts do for it now.
	Jobs      []OperationJob `json:"jobs,omitempty"`
	Began     time.Time      `json:"began"`
	StepBegan time.Time      `json:"step_began,omitzero"`
	Next      time.Time      `json:"next,omitzero"` // it naps until then
	Deadline  time.Time      `json:"deadline"`
	EndedAt   time.Time      `json:"ended_at,omitzero"`
	By        string         `json:"by,omitempty"` // the control plane that took it over last
}

// OperationJob is what a host does for an operation.
type OperationJob struct {
	Host string `json:"host"`
	Kind string `json:"kind"`
	// State is asked, running, done or failed.
	State string `json:"state"`
	Done  int64  `json:"done"`
	Of    int64  `json:"of"` // 0: nobody knows
	Unit  string `json:"unit,omitempty"`
	// Detail is why it failed, or what it waits for.
	Detail string    `json:"detail,omitempty"`
	Asked  time.Time `json:"asked"`
	Said   time.Time `json:"said,omitzero"` // when the host last said something of it
}

// OperationCancelRequest cancels an operation. What it did is undone, or, with Abandon, left as it
// is.
type OperationCancelRequest struct {
	ID      string `json:"id"`
	Abandon bool   `json:"abandon,omitempty"`
}
