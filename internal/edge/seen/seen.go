// Package seen is what edges tell others: it holds no code, so that those who
// only read it need not link an edge.
package seen

import (
	"time"

	"howdah/internal/edge/endpoint"
)

// Switch is what an edge saw when the primary of a database changed. Written by
// the edge.
type Switch struct {
	Database   string    `json:"database"`
	From       string    `json:"from"` // member names
	To         string    `json:"to"`
	Elected    time.Time `json:"elected"`     // the new leader key was seen
	Serving    time.Time `json:"serving"`     // the new primary accepted writes
	Switched   time.Time `json:"switched"`    // the endpoints led there
	Sessions   int       `json:"sessions"`    // that were cut from the old one
	FirstWrite time.Time `json:"first_write"` // a commit, confirmed as a client's would be
}

// Status is what an edge says of itself. Written by the edge.
type Status struct {
	Name    string        `json:"name"`
	Info    endpoint.Info `json:"info"`
	Started time.Time     `json:"started"`
	// OwnNames: it knows members by names that no other database has.
	OwnNames bool `json:"own_names,omitempty"`
	// Reads is the newest format of records that it reads (package format).
	Reads int `json:"reads,omitempty"`
	// Own is the host whose endpoints it serves alone; "": it serves those of all hosts.
	Own string `json:"own,omitempty"`
}

// Between is what members see in place of a client's address where an edge hides it.
// Written by the edge.
type Between struct {
	// Addresses are those of the edge's machine, other than loopback; besides them it
	// may be the endpoint's own.
	Addresses []string `json:"addresses"`
}
