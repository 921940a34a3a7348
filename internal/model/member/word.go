package member

import "time"

// Liveness is the judge's verdict on a host.
type Liveness struct {
	Alive bool      `json:"alive"`
	Since time.Time `json:"since"`
}

// Lead is who led a database at the last look. Only reconcile writes it.
type Lead struct {
	Member string `json:"member"`
	Host   string `json:"host"`
	// Failover is the id of the newest post-mortem.
	Failover string `json:"failover,omitempty"`
}
