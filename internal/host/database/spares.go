package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/pace"
	"howdah/internal/model/param"
)

// sparesKept is how many prepared data directories wait for each version; only one
// does until the first was taken, as not every host gets new databases.
const sparesKept = 2

// initdbScript stands for initdb in a member's Patroni configuration.
const initdbScript = "initdb"

// spares keeps data directories ready, so that a new database need not wait for
// initdb. Each is a cluster of its own.
type spares struct {
	host *Host
	keep int // of each version

	// Used by run only.
	ready map[int]int  // how many there were, by major version
	taken map[int]bool // one was taken
	// By full version.
	read      map[string]param.Catalogue // not published yet
	published map[string]bool
}

func newSpares(a *Host) *spares {
	return &spares{
		host: a, keep: sparesKept, ready: map[int]int{}, taken: map[int]bool{},
		read: map[string]param.Catalogue{}, published: map[string]bool{},
	}
}

func (s *spares) dir(major int) string { return s.host.Path("spares", fmt.Sprint(major)) }

// user is whom they belong to until they are handed over.
func (s *spares) user() *postgres.User { return s.host.OwnerOf(s.host.Path("spares")) }

// run refills the spares until ctx ends.
func (s *spares) run(ctx context.Context) error {
	s.dropHalfMade()
	for {
		if err := s.refill(ctx); err != nil && ctx.Err() == nil {
			s.host.Log.Warn("prepare data directory", "error", err)
		}
		if !pace.Sleep(ctx, time.Second) {
			return nil
		}
	}
}

// dropHalfMade removes what a killed agent left.
func (s *spares) dropHalfMade() {
	left, err := filepath.Glob(s.host.Path("spares", "*", "making-*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		s.removeData(dir)
	}
}

// removeData removes a data directory, and what a PostgreSQL that was killed while it worked
// on it left in memory.
func (s *spares) removeData(dir string) {
	_ = postgres.RemoveShared(dir) // what it does not know it leaves: that costs memory, and nothing else
	_ = s.user().Do(func() error { return os.RemoveAll(dir) })
}

func (s *spares) refill(ctx context.Context) error {
	installs, err := postgres.Installed()
	if err != nil {
		return err
	}
	var failed []error
	for _, install := range installs {
		failed = append(failed, s.refillVersion(ctx, install))
	}
	return errors.Join(failed...)
}

func (s *spares) refillVersion(ctx context.Context, install postgres.Install) error {
	dir := s.dir(install.Major)
	if err := s.user().MakeDir(dir); err != nil {
		return err
	}
	ready, err := filepath.Glob(filepath.Join(dir, "ready-*"))
	if err != nil {
		return err
	}
	missing := s.wanted(install.Major, len(ready)) - len(ready)
	if s.keep > 0 && !s.catalogued(ctx, install) {
		missing = max(missing, 1)
	}
	for ; missing > 0 && ctx.Err() == nil; missing-- {
		making := filepath.Join(dir, fmt.Sprintf("making-%d", time.Now().UnixNano()))
		if err := postgres.Prepare(ctx, install, s.user(), making); err != nil {
			s.removeData(making)
			return fmt.Errorf("PostgreSQL %d: %w", install.Major, err)
		}
		s.readCatalogue(ctx, install, making)
		err := s.user().Do(func() error { return os.Rename(making, strings.Replace(making, "making-", "ready-", 1)) })
		if err != nil {
			return fmt.Errorf("keep data directory: %w", err)
		}
		s.ready[install.Major]++
	}
	return nil
}

// wanted is how many spares of a version there should be, where so many are.
func (s *spares) wanted(major, ready int) int {
	s.taken[major] = s.taken[major] || ready < s.ready[major]
	s.ready[major] = ready
	if s.taken[major] {
		return s.keep
	}
	return min(s.keep, 1)
}
