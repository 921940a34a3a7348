// Package spare keeps data directories prepared, and hands one to the member that asks: a new
// database need not wait for initdb. It knows the parameters of each version by them.
package spare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/osuser"
	"howdah/internal/host/pace"
	"howdah/internal/identity/home"
	"howdah/internal/model/param"
	"howdah/internal/system/owner"
)

// sparesDir has prepared data, below the host's directory.
const sparesDir = "spares"

const (
	// sparesKept is how many prepared data directories wait for each version. Only one does until the
	// first was taken, as not every host gets new databases.
	sparesKept = 2
	// takenLately: until so long after one was taken, only one is made anew. The database that is being
	// made needs the processors more.
	takenLately = 30 * time.Second
)

// Keeper keeps data directories ready, so that a new database need not wait for
// initdb. Each is a cluster of its own.
type Keeper struct {
	Agent *agent.Agent
	Keep  int // of each version

	// Used by Run only.
	ready map[int]int       // how many there were, by major version
	taken map[int]time.Time // when one was taken last
	// By full version.
	read      map[string]param.Catalogue // not published yet
	published map[string]bool
}

// New is a keeper that keeps as many as is usual.
func New(a *agent.Agent) *Keeper {
	return &Keeper{
		Agent: a, Keep: sparesKept, ready: map[int]int{}, taken: map[int]time.Time{},
		read: map[string]param.Catalogue{}, published: map[string]bool{},
	}
}

// Dir is where those of a version are.
func (s *Keeper) Dir(major int) string { return s.Agent.Path(sparesDir, fmt.Sprint(major)) }

// User is whom they belong to until they are handed over.
func (s *Keeper) User() *owner.User { return s.Agent.OwnerOf(s.Agent.Path(sparesDir)) }

// Run refills the spares until ctx ends.
func (s *Keeper) Run(ctx context.Context) error {
	s.dropHalfMade()
	for {
		if err := s.refill(ctx); err != nil && ctx.Err() == nil {
			s.Agent.Log.Warn("prepare data directory", "error", err)
		}
		if !pace.Sleep(ctx, time.Second) {
			return nil
		}
	}
}

// dropHalfMade removes what a killed agent left.
func (s *Keeper) dropHalfMade() {
	left, err := filepath.Glob(s.Agent.Path(sparesDir, "*", "making-*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		s.removeData(dir)
	}
}

// removeData removes a data directory, and what a PostgreSQL that was killed while it worked
// on it left in memory.
func (s *Keeper) removeData(dir string) {
	_ = postgres.RemoveShared(dir) // what it does not know it leaves: that costs memory, and nothing else
	_ = s.User().Do(func() error { return os.RemoveAll(dir) })
}

func (s *Keeper) refill(ctx context.Context) error {
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

func (s *Keeper) refillVersion(ctx context.Context, install postgres.Install) error {
	dir := s.Dir(install.Major)
	if err := s.User().MakeDir(dir); err != nil {
		return err
	}
	ready, err := filepath.Glob(filepath.Join(dir, "ready-*"))
	if err != nil {
		return err
	}
	missing := s.wanted(install.Major, len(ready), time.Now()) - len(ready)
	if s.Keep > 0 && !s.catalogued(ctx, install) {
		missing = max(missing, 1)
	}
	for ; missing > 0 && ctx.Err() == nil; missing-- {
		making := filepath.Join(dir, fmt.Sprintf("making-%d", time.Now().UnixNano()))
		if err := postgres.Prepare(ctx, install, s.User(), making); err != nil {
			s.removeData(making)
			return fmt.Errorf("PostgreSQL %d: %w", install.Major, err)
		}
		s.readCatalogue(ctx, install, making)
		err := s.User().Do(func() error { return os.Rename(making, strings.Replace(making, "making-", "ready-", 1)) })
		if err != nil {
			return fmt.Errorf("keep data directory: %w", err)
		}
		s.ready[install.Major]++
	}
	return nil
}

// wanted is how many spares of a version there should be, where so many are.
func (s *Keeper) wanted(major, ready int, now time.Time) int {
	if ready < s.ready[major] {
		s.taken[major] = now
	}
	s.ready[major] = ready
	if at := s.taken[major]; at.IsZero() || now.Sub(at) < takenLately {
		return min(s.Keep, 1)
	}
	return s.Keep
}

// Dirs are where data are that no member has yet: patterns below the host's directory.
func Dirs() []string { return []string{sparesDir, handedDir + "/*"} }

// Open makes the directories. It is called before anything else.
func (s *Keeper) Open() error {
	if err := home.OpenWay(s.Agent.Path(handedDir)); err != nil {
		return fmt.Errorf("make directories of the host: %w", err)
	}
	return s.makeSpares()
}

// makeSpares makes the directory of prepared data, whose user runs nothing else. That of
// an older release was of all members' user.
func (s *Keeper) makeSpares() error {
	dir := s.Agent.Path(sparesDir)
	if u := s.Agent.OwnerOf(dir); u != nil && u.UID > 0 && osuser.Name(u.UID) == "" {
		if err := os.Rename(dir, s.Agent.TrashPath(fmt.Sprintf("spares-%d", time.Now().UnixNano()))); err != nil {
			return fmt.Errorf("give up prepared data of an older release: %w", err)
		}
	}
	return s.Agent.Give(dir)
}
