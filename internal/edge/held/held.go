// Package held is what an edge that owns addresses leaves for the agent of its host: which
// of them are there, and for whom. When the edge has died and another member leads, the
// agent takes them away, so that two hosts do not answer for one address.
//
// An edge that runs holds the lock of the record, and the agent acts only while it has
// that lock itself.
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

// Record is where the edge of a host keeps what it holds.
type Record struct{ path string }

// RecordOf is that of a host of a home on this machine.
func RecordOf(homeID, host string) Record {
	return Record{filepath.Join(home.RunDir(homeID), "held-"+host+".json")}
}

// Lock is had by the edge as long as it runs. It answers home.ErrLocked.
func (r Record) Lock() (*home.Lock, error) { return home.LockFile(r.path + ".lock") }

// Write replaces the record, in one step.
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

// Read is nothing where no edge of the host has ever held anything.
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
