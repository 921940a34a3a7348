package member

import (
	"encoding/json"
	"time"
)

// Job asks a host for work that takes minutes or hours. A host does what has one name once, goes on
// without the control plane, and keeps how it ended until the job is gone. Only the operations'
// runner writes it.
type Job struct {
	Name string `json:"name"` // OPERATION/STEP
	Host string `json:"host"`
	Kind string `json:"kind"`
	// Turn is that of the operation when the job was asked for. A host begins nothing of a lower
	// turn than it has seen of the operation.
	Turn int64           `json:"turn"`
	Args json.RawMessage `json:"args"`
	// At is when it was asked for.
	At time.Time `json:"at"`
}

// JobState is how far a job is.
type JobState string

// The states.
const (
	JobRuns   JobState = "running"
	JobDone   JobState = "done"
	JobFailed JobState = "failed"
)

// JobReport is how far a job is. Only the host's agent writes it.
type JobReport struct {
	Name string `json:"name"`
	// Asked is the revision at which the job's key was written. A report on an earlier job of the
	// same name says nothing of this one.
	Asked int64    `json:"asked"`
	State JobState `json:"state"`
	Done  int64    `json:"done,omitempty"`
	Of    int64    `json:"of,omitempty"` // 0: nobody knows
	Unit  string   `json:"unit,omitempty"`
	// Result is what came of it, as its kind says, or what others need of it while it goes on. It has
	// 8 KiB at most.
	Result json.RawMessage `json:"result,omitempty"`
	// Detail is why it failed, or what it waits for.
	Detail string    `json:"detail,omitempty"`
	Final  bool      `json:"final,omitempty"` // another try would fail, too
	At     time.Time `json:"at"`
}
