package database

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/failover/gate"
	"howdah/internal/host/pace"
	"howdah/internal/system/plainfile"
)

const (
	unbarEvery = 5 * time.Second
	// unbarAfter is longer than a promotion takes that a gate has let through.
	unbarAfter = 10 * time.Minute
)

// unbar has a standby start, and follow whatever timeline its primary is on, although a gate has
// barred that one for a promotion which did not happen. It looks while the server does not run, as
// PostgreSQL does not start on a timeline that is barred, and now and then while it does.
func (r *runner) unbar(ctx context.Context) {
	for looked := time.Now(); pace.Sleep(ctx, unbarEvery); {
		pid, err := postgres.Postmaster(r.dataDir)
		down := err == nil && pid == 0
		if !down && time.Since(looked) < unbarAfter {
			continue
		}
		looked = time.Now()
		before := looked
		if !down {
			before = looked.Add(-unbarAfter)
		}
		if err := r.removeBarred(before); err != nil && !errors.Is(err, postgres.ErrNoData) {
			r.Log.Debug("remove what bars timelines", "error", err)
		}
	}
}

// removeBarred removes what bars timelines after the newest that the server knows of, if it was made
// before a moment. What bars older ones is needed by standbys of whoever was promoted.
func (r *runner) removeBarred(before time.Time) error {
	control, err := postgres.ReadControl(r.dataDir)
	if err != nil {
		return err
	}
	wal := filepath.Join(r.dataDir, "pg_wal")
	names, err := namesIn(r.User(), wal)
	if err != nil {
		return err
	}
	return r.User().Do(func() error {
		for _, name := range slices.Backward(names) {
			n, ok := gate.ParseHistoryName(name)
			if !ok {
				continue
			}
			path := filepath.Join(wal, name)
			text, err := plainfile.Read(path)
			if err != nil || n <= control.Timeline || string(text) != gate.Barred {
				return err
			}
			if info, err := os.Lstat(path); err != nil || info.ModTime().After(before) {
				return err
			}
			if err := os.Remove(path); err != nil {
				return err
			}
		}
		return nil
	})
}
