// Package held has the record that an edge with addresses of its own leaves for the agent of its
// host: which addresses are on the host, and for which members. When the edge has died and another
// member leads, the agent removes those addresses, so that no two hosts answer for one address.
//
// A running edge holds the lock of the record. The agent acts only while it holds that lock itself.
package held

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"howdah/internal/identity/home"
)

// Place is an endpoint that leads to a member of this host.
type Place struct {
	Database string `json:"database"`
	Member   string `json:"member"` // the primary that it came with
	Listen   string `json:"listen"` // ip:port
}

// Record is the file in which the edge of a host keeps what it holds.
type Record struct{ path string }

// RecordOf returns the record of a host of a home on this machine.
func RecordOf(homeID, host string) Record {
	return Record{filepath.Join(home.RunDir(homeID), "held-"+host+".json")}
}

// Lock takes the lock, which the edge holds as long as it runs. It returns home.ErrLocked if
// another process has it.
func (r Record) Lock() (*home.Lock, error) { return home.LockFile(r.path + ".lock") }

// Write replaces the record atomically.
func (r Record) Write(places []Place) error {
	text, err := json.Marshal(places)
	if err != nil {
		return fmt.Errorf("keep what is held: %w", err)
	}
	if err := os.WriteFile(r.path+".new", text, 0o600); err != nil {
		return fmt.Errorf("keep what is held: %w", err)
	}
	if err := os.Rename(r.path+".new", r.path); err != nil {
		return fmt.Errorf("keep what is held: %w", err)
	}
	return nil
}

// Read returns the record. It returns nothing if no edge of the host has ever held an address.
func (r Record) Read() ([]Place, error) {
	text, err := os.ReadFile(r.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what is held: %w", err)
	}
	var places []Place
	if err := json.Unmarshal(text, &places); err != nil {
		return nil, fmt.Errorf("read what is held: %w", err)
	}
	return places, nil
}
