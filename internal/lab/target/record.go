package target

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"howdah/internal/system/plainfile"
)

// record is what a run remembers of what it made, so that the next one finds it.
type record struct {
	Identifier string `json:"identifier"`
	// Snapshot is the snapshot of the data, once it is whole.
	Snapshot string `json:"snapshot,omitempty"`
}

// recordName is the file of the record, in the directory of a run.
const recordName = "target.json"

// load reads the record, or makes it. It is idempotent.
func (h *Howdah) load() error {
	if h.record.Identifier != "" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(h.Dir, recordName))
	switch {
	case errors.Is(err, os.ErrNotExist):
		h.record = record{Identifier: identifier(h.Experiment, letters(2))}
		err = h.save()
	case err == nil:
		err = json.Unmarshal(text, &h.record)
	}
	if err != nil {
		return fmt.Errorf("remember the lab's database: %w", err)
	}
	if h.password, err = h.oldPassword(); err != nil {
		return err
	}
	if h.password == "" {
		h.password = letters(16)
	}
	return nil
}

// save writes the record, whole or not at all.
func (h *Howdah) save() error {
	text, err := json.Marshal(h.record)
	if err != nil {
		return err
	}
	path := filepath.Join(h.Dir, recordName)
	if err := os.MkdirAll(h.Dir, 0o755); err != nil { //nolint:gosec // others may read results
		return err
	}
	if err := plainfile.Replace(path, text, 0o600); err != nil {
		return fmt.Errorf("remember the lab's database: %w", err)
	}
	return nil
}

// forget removes the password. The identifier stays: the result names it.
func (h *Howdah) forget() error {
	if err := os.Remove(h.passFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the password of the lab's database: %w", err)
	}
	h.password = letters(16)
	return nil
}

// letters returns random hex digits: two for each byte.
func letters(bytes int) string {
	random := make([]byte, bytes)
	_, _ = rand.Read(random) // it never fails
	return hex.EncodeToString(random)
}
