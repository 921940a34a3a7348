package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Schedule takes backups again and again, and keeps the newest.
type Schedule struct {
	Dir   string
	Every time.Duration
	Keep  int
	From  Source
	Log   *slog.Logger

	mu   sync.Mutex
	fail string // guarded by mu: why the last attempt failed; "" if it did not
}

const (
	// takeTimeout bounds one backup. It allows for a large etcd on a slow disk.
	takeTimeout = 10 * time.Minute
	// tryAgain is the pause before a backup that failed is tried again.
	tryAgain = time.Minute
)

// Run works until ctx ends. It takes a backup at once if one is already due.
func (s *Schedule) Run(ctx context.Context) error {
	for pause := s.untilDue(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		err := s.once(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to end
		}
		pause = s.Every
		if errors.Is(err, ErrBusy) {
			err = nil // somebody else takes it
		}
		if err != nil {
			s.Log.Error("no backup of the home", "error", err)
			pause = min(s.Every, tryAgain)
		}
		s.note(err)
	}
}

// untilDue returns how long to wait, by the newest backup that can be restored.
func (s *Schedule) untilDue() time.Duration {
	b, ok := newest(s.Dir, s.From.Home.ID)
	if !ok {
		return 0
	}
	return max(0, min(s.Every, s.Every-time.Since(b.Taken)))
}

func (s *Schedule) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	b, err := Take(ctx, s.Dir, s.From)
	if err != nil {
		return err
	}
	s.Log.Info("backup of the home taken", "path", b.Path, "keys", b.Keys)
	if err := Prune(s.Dir, s.From.Home.ID, s.Keep); err != nil {
		return fmt.Errorf("remove old backups: %w", err)
	}
	return nil
}

func (s *Schedule) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = ""
	if err != nil {
		s.fail = err.Error()
	}
}

// Failing says why the last backup was not taken. It returns "" if the last one was taken, or if s
// is nil.
func (s *Schedule) Failing() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fail
}
