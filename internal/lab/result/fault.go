package result

import (
	"time"

	"howdah/internal/failover/postmortem"
)

// Fault is a fault that was made in a point.
type Fault struct {
	Kind  string    `json:"kind"`
	Began time.Time `json:"began"`
	// Proof says by what it is known that it took place, and Healed by what that it is over.
	Proof  string `json:"proof"`
	Healed string `json:"healed,omitempty"`
	// Postmortems are those of the failovers that it led to.
	Postmortems []postmortem.Record `json:"postmortems,omitempty"`
}
