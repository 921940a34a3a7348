package nameserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"howdah/internal/model/zone"
	"howdah/internal/system/plainfile"
)

// keepEvery is the pause between two looks whether the file has the newest book.
const keepEvery = time.Second

// kept is a book in a file.
type kept struct {
	Zone  zone.Zone               `json:"zone"`
	Names map[string][]netip.Addr `json:"names"`
}

// KeepIn makes Run keep what the server answers in a file, and takes over what an earlier process left
// there. So an edge that starts while no control plane runs answers as the one before it. A file that
// cannot be read counts as none: its content comes again with the state. Call it before Run.
func (s *Server) KeepIn(path string) {
	s.path, s.kept = path, s.book.Load()
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var k kept
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	if err != nil {
		s.log.Warn("read the names of before", "error", err)
		return
	}
	s.Set(NewBook(k.Zone, k.Names, nil))
	s.kept = s.book.Load()
}

// keep writes what the server answers until ctx ends.
func (s *Server) keep(ctx context.Context) {
	timer := time.NewTicker(keepEvery)
	defer timer.Stop()
	for said := false; ; {
		if b := s.book.Load(); b != s.kept {
			err := b.write(s.path)
			if err == nil {
				s.kept = b
			} else if !said {
				s.log.Warn("keep the names", "error", err)
			}
			said = err != nil
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

func (b *Book) write(path string) error {
	text, err := json.Marshal(kept{b.zone, b.names})
	if err == nil {
		err = plainfile.Replace(path, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
