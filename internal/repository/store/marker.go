package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// MarkerKey is the object that says which repository a store is.
const MarkerKey = "howdah-repository.json"

// maxMarker is more than a marker has, in bytes.
const maxMarker = 1 << 16

var (
	// ErrNoMarker says that a store is no repository: nothing was ever made there, or its file
	// system is not mounted.
	ErrNoMarker = errors.New("it is no repository of Howdah, or its file system is not mounted")
	// ErrOther says that it is a repository, but another one.
	ErrOther = errors.New("it is another repository")
)

// Marker says which repository a store is.
type Marker struct {
	ID      string    `json:"id"`
	Home    string    `json:"home"`
	Created time.Time `json:"created"`
	// Proof shows whether somebody has the repository's key: see identity/repository. It is "" if
	// nothing is encrypted.
	Proof string `json:"proof,omitempty"`
}

// ReadMarker returns the marker, or ErrNoMarker.
func ReadMarker(ctx context.Context, s Objects) (Marker, error) {
	body, _, err := s.Get(ctx, MarkerKey, 0, maxMarker)
	if errors.Is(err, ErrNotFound) {
		return Marker{}, ErrNoMarker
	}
	if err != nil {
		return Marker{}, fmt.Errorf("read the repository's marker: %w", err)
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return Marker{}, fmt.Errorf("read the repository's marker: %w", err)
	}
	var m Marker
	if err := json.Unmarshal(text, &m); err != nil || m.ID == "" {
		return Marker{}, fmt.Errorf("%w: its %s has no id", ErrNoMarker, MarkerKey)
	}
	return m, nil
}

// WriteMarker makes a repository of a store that is none. If it is one already, it returns
// ErrOther, unless that has the same id. Two who do this at the same time are not told apart.
func WriteMarker(ctx context.Context, s Objects, m Marker) error {
	err := CheckMarker(ctx, s, m.ID)
	if !errors.Is(err, ErrNoMarker) {
		return err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := s.Put(ctx, MarkerKey, bytes.NewReader(append(text, '\n'))); err != nil {
		return fmt.Errorf("write the repository's marker: %w", err)
	}
	return nil
}

// CheckMarker returns ErrNoMarker or ErrOther if a store is not the repository with that id. Nothing
// may be written to a store before this.
func CheckMarker(ctx context.Context, s Objects, id string) error {
	m, err := ReadMarker(ctx, s)
	if err != nil {
		return err
	}
	if m.ID != id {
		return fmt.Errorf("%w: it has the id %.80q, and %.80q was expected", ErrOther, m.ID, id)
	}
	return nil
}
