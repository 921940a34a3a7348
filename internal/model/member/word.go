package member

import "time"

// Liveness is the judge's word on a host.
type Liveness struct {
	Alive bool      `json:"alive"`
	Since time.Time `json:"since"`
}

// Lead is who led a database when it was looked at last. Written by reconcile.
type Lead struct {
	Member string `json:"member"`
	Host   string `json:"host"`
	// Failover is the id of the newest post-mortem.
	Failover string `json:"failover,omitempty"`
}
