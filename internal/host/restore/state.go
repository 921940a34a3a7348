package restore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/host/tree"
	"howdah/internal/model/lsn"
)

// phase is what a restore does next.
type phase string

// The phases, in their order.
const (
	copying   phase = "copying"   // files, from the beginning
	replaying phase = "replaying" // WAL: all files are there
	ending    phase = "ending"    // recovery has ended at the target, and the server was stopped
	renewing  phase = "renewing"  // nothing but data of the source is there
	whole     phase = "whole"     // all is done
)

// state is what a restore remembers. It lies beside the data, where their owner can change it: that
// harms nobody else.
type state struct {
	Phase    phase          `json:"phase"`
	Database string         `json:"database"`
	Source   backup.Restore `json:"source"`
	// Boot is the start of the machine in which WAL was replayed: the replay is not safe from a
	// loss of power, and begins anew after one.
	Boot   string    `json:"boot,omitempty"`
	Began  time.Time `json:"began"`
	Result Result    `json:"result"`
	// Exhaust says that no commit follows the moment that was asked for, which is fine: all of the
	// archive is replayed.
	Exhaust bool `json:"exhaust,omitempty"`
	// Archived is the timeline of the newest file of WAL in the archive; 0: nobody knows.
	Archived int `json:"archived,omitempty"`
	// Timeline is the one that is followed.
	Timeline int `json:"timeline,omitempty"`
	// Forks lead from it back to the backup's, the newest first.
	Forks []fork `json:"forks,omitempty"`
	// Start is where the replay begins.
	Start string `json:"start,omitempty"`
	// Reach is up to where a clone has to have WAL.
	Reach lsn.LSN `json:"reach,omitempty"`
}

// load reads how far the restore is. What is of another source, or of another start of the machine,
// is begun anew.
func (w *work) load() error {
	fresh := state{Phase: copying, Database: w.Place.Database, Source: w.Source, Began: w.began.UTC()}
	text, err := w.User.ReadFile(w.path(stateFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read how far the restore is: %w", err)
	}
	var s state
	switch {
	case err != nil || json.Unmarshal(text, &s) != nil:
		s = fresh
	case s.Database != fresh.Database || !same(s.Source, fresh.Source):
		s = fresh
	case s.Phase == replaying && s.Boot != boot():
		s.Phase = copying
	case s.Phase == renewing && !tree.Exists(w.part()) && tree.Exists(DataDir(w.Dir)):
		s.Phase = whole // it died after the rename
	case s.Phase == renewing && !tree.Exists(w.part()), s.Phase == ending && !tree.Exists(w.part()), s.Phase == whole && !tree.Exists(DataDir(w.Dir)):
		s = fresh // somebody took it
	}
	w.state = s
	if s.Phase == copying && tree.Exists(DataDir(w.Dir)) {
		// It is of another source, or nobody knows of what.
		return w.User.Do(func() error { return os.RemoveAll(DataDir(w.Dir)) })
	}
	return nil
}

func same(a, b backup.Restore) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// enter notes that a phase begins. All that was written before is on the disk by then.
func (w *work) enter(p phase) error {
	w.state.Phase, w.state.Boot = p, boot()
	text, err := json.MarshalIndent(w.state, "", " ")
	if err == nil {
		err = w.User.ReplaceFile(w.path(stateFile), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("note how far the restore is: %w", err)
	}
	return nil
}

// boot names this start of the machine.
func boot() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
