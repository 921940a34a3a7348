package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const recordSuffix = ".json"

// record is what must be known about a group to find its processes again without a control group.
type record struct {
	// Era is when and where the sessions were recorded. In another era they mean nothing.
	Era string `json:"era"`
	// Sessions are the processes that were started, oldest first. Each leads the session and the
	// process group that have its id.
	Sessions []Process `json:"sessions"`
	// Begun is the command that is being started, until its process is recorded.
	Begun []string `json:"begun,omitempty"`
	// Dead are the processes that the last Kill found. They may still be zombies.
	Dead []Process `json:"dead"`
	// UID is the user of the processes. It is nil if nothing was ever started.
	UID *int `json:"uid"`
	// DataDir is where PostgreSQL works, resolved. It is "" if there is none.
	DataDir string `json:"data_dir"`
}

// record returns the group's record, or an empty one. It is read only once: nobody else writes it,
// and a Kill must not wait for a disk that hangs.
func (g *Group) record() (record, error) {
	g.noting.Lock()
	defer g.noting.Unlock()
	if g.noted != nil {
		return *g.noted, nil
	}
	r, err := g.load()
	if err != nil {
		return record{}, err
	}
	g.noted = &r
	return r, nil
}

func (g *Group) load() (record, error) {
	path := g.host.recordPath(g.name)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 { // empty after a power cut
		return record{}, nil
	}
	if err != nil {
		return record{}, fmt.Errorf("read record of %s: %w", g.name, err)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return record{}, fmt.Errorf("read record %s: %w", path, err)
	}
	era, err := g.host.processes.Era()
	if err != nil {
		return record{}, err
	}
	if r.Era != era {
		r.Sessions, r.Begun, r.Dead = nil, nil, nil
	}
	return r, nil
}

// remember changes the record until the next save writes it.
func (g *Group) remember(r record) {
	g.noting.Lock()
	defer g.noting.Unlock()
	g.noted = &r
}

// save replaces the record as a whole. The record need not survive a power cut, because the
// processes do not either.
func (g *Group) save(r record) error {
	era, err := g.host.processes.Era()
	if err != nil {
		return err
	}
	r.Era = era
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write record of %s: %w", g.name, err)
	}
	path := g.host.recordPath(g.name)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return fmt.Errorf("write record of %s: %w", g.name, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write record of %s: %w", g.name, err)
	}
	g.remember(r)
	return nil
}
