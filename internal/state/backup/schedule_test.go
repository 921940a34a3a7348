package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
)

// Backups are taken again and again, and only the newest are kept. If one could not be taken,
// Failing says so until the next one was.
func TestSchedule(t *testing.T) {
	t.Parallel()
	h := hometest.New(t)
	var full atomic.Bool
	from := source(h)
	from.Snapshot = func(ctx context.Context, to io.Writer) error {
		if full.Load() {
			return syscall.ENOSPC
		}
		return h.Member.Snapshot(ctx, to)
	}
	s := &Schedule{Dir: filepath.Join(t.TempDir(), "b"), Every: 100 * time.Millisecond, Keep: 2, From: from, Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = s.Run(ctx) })
	defer done.Wait()
	defer cancel()
	first := ""
	newer := func() error {
		all, err := List(s.Dir, h.ID)
		if err != nil || len(all) == 0 {
			return fmt.Errorf("%d backups, %w", len(all), err)
		}
		if len(all) > 3 || all[0].Err != nil {
			t.Errorf("%+v", all)
		}
		if first == "" {
			first = all[0].Path
		}
		if len(all) < 2 || all[len(all)-1].Path <= first {
			return errors.New("the first one is still there")
		}
		return nil
	}
	testkit.Eventually(t, 20*time.Second, newer)
	full.Store(true)
	testkit.Eventually(t, 20*time.Second, func() error {
		if s.Failing() == "" {
			return errors.New("nothing is told")
		}
		return nil
	})
	full.Store(false)
	testkit.Eventually(t, 20*time.Second, func() error {
		if why := s.Failing(); why != "" {
			return errors.New(why)
		}
		return nil
	})
	var none *Schedule
	if none.Failing() != "" {
		t.Error("who takes none fails")
	}
}
