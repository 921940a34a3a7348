package admin

import "time"

// OperationsRequest asks for operations: those under way, and the newest of those that have
// ended.
type OperationsRequest struct {
	ID string `json:"id,omitempty"` // "": all
	// Name is that of an instance or a cluster, or a resource id; "": of all.
	Name  string `json:"name,omitempty"`
	Limit int    `json:"limit,omitempty"` // of those that have ended; 0: all
}

// OperationsAnswer holds them, those under way first, and the newest first.
type OperationsAnswer struct {
	Operations []Operation `json:"operations"`
}

// Operation is a deed about a database that takes minutes or hours.
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
	// Done of Of units; an Of of 0 is not known.
	Done int64  `json:"done"`
	Of   int64  `json:"of"`
	Unit string `json:"unit,omitempty"`
	// Failures in a row of the step, and what it waits for or failed with last.
	Failures int    `json:"failures,omitempty"`
	Trouble  string `json:"trouble,omitempty"`
	// Reason is why it failed, or was cancelled.
	Reason string `json:"reason,omitempty"`
	// Left are steps that could not be undone.
	Left []string `json:"left,omitempty"`
	// Excludes are deeds to the database that wait until it has ended.
	Excludes   []string  `json:"excludes,omitempty"`
	Cancelling bool      `json:"cancelling,omitempty"` // it is to be cancelled
	Late       bool      `json:"late,omitempty"`       // it should have ended at the deadline
	Began      time.Time `json:"began"`
	StepBegan  time.Time `json:"step_began,omitzero"`
	Next       time.Time `json:"next,omitzero"` // it naps until then
	Deadline   time.Time `json:"deadline"`
	EndedAt    time.Time `json:"ended_at,omitzero"`
	By         string    `json:"by,omitempty"` // the control plane that took it over last
}

// OperationCancelRequest has an operation cancelled: what it did is undone, or, with Abandon,
// left as it is.
type OperationCancelRequest struct {
	ID      string `json:"id"`
	Abandon bool   `json:"abandon,omitempty"`
}
