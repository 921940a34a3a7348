// Package seen has what edges tell others. It has no code, so that those who only read its records
// need not link an edge.
package seen

import (
	"time"

	"howdah/internal/edge/endpoint"
)

// Switch is what an edge saw when the primary of a database changed. That edge writes it.
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

// Status is what an edge says of itself. That edge writes it.
type Status struct {
	Name    string        `json:"name"`
	Info    endpoint.Info `json:"info"`
	Started time.Time     `json:"started"`
	// OwnNames says that the edge knows members by names that no other database has.
	OwnNames bool `json:"own_names,omitempty"`
	// Reads is the newest format of records that the edge reads (package format).
	Reads int `json:"reads,omitempty"`
	// Own is the only host whose endpoints the edge serves. With "" it serves those of all hosts.
	Own string `json:"own,omitempty"`
	// Names is where the edge answers for the names of databases, as ip:port. It is "" while it does
	// not.
	Names string `json:"names,omitempty"`
}

// Between is what members see in place of a client's address, where an edge hides it. That edge
// writes it.
type Between struct {
	// Addresses lists the addresses of the edge's machine, except loopback. Members may also see
	// the endpoint's own address.
	Addresses []string `json:"addresses"`
}
