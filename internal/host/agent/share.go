package agent

import (
	"errors"
	"os"
	"time"

	"howdah/internal/host/tree"
)

const (
	// shareDir has a file that shows whether files here share blocks, while that is tried.
	shareDir = "shares"
	// sharesFor is how long it is believed that they do, or do not.
	sharesFor = time.Minute
)

// sharing is whether files of a host can share their blocks, for its description.
type sharing struct {
	tried time.Time
	can   bool
}

// look finds it out, if that was not done a moment ago. Whoever clones a database tries it again.
func (s *sharing) look(a *Agent, now time.Time) {
	if now.Sub(s.tried) < sharesFor {
		return
	}
	s.tried = now
	can, err := s.try(a.Path(shareDir))
	if err != nil {
		a.Log.Warn("find out whether files share blocks", "error", err)
	}
	s.can = can
}

func (s *sharing) try(dir string) (can bool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}
	defer root.Close() //nolint:errcheck // the directory is removed
	if err := root.WriteFile("block", make([]byte, 4096), 0o600); err != nil {
		return false, err
	}
	return tree.Shares(dir, "block", nil, dir, nil)
}
