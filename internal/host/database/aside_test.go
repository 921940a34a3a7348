package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// What was put aside stays while the primary is alone, and goes when a standby is in
// sync; and never while it is what PostgreSQL runs on.
func TestWhatIsKeptGoesWithTheNextCopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, serves)
	agent, _ := w.run(nil)
	w.Leads("db-1", "m2", "")
	a := w.Assignment("db-1", 1)
	a.Cluster.Sync = "on"
	w.Assign(a)
	w.Awaits(a.ID, hosttest.Soon, serving)
	dir := filepath.Join(w.Dir, "members", a.ID)
	kept, data := filepath.Join(dir, "data.kept"), filepath.Join(dir, "data")
	w.Must(os.Rename(data, kept))
	w.Must(os.Symlink("data.kept", data))

	stays := func(why string) {
		t.Helper()
		agent.looks(t, a.ID)
		if _, err := os.Stat(kept); err != nil {
			t.Errorf("%s: %v", why, err)
		}
	}
	stays("the primary is alone")
	w.Leads("db-1", "m2", "m3")
	stays("it is in use")
	w.Leads("db-1", "m2", "")
	w.Must(os.Remove(data))
	w.Must(os.Mkdir(data, 0o700))
	stays("the primary is alone, and a copy is there")
	w.Leads("db-1", "m2", "m3")
	testkit.Eventually(t, hosttest.Soon, func() error {
		if _, err := os.Stat(kept); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("it is kept still: %w", err)
		}
		return nil
	})
}

// looks waits until the runner of a member has looked for data to delete, with what is
// there now.
func (a *Host) looks(t *testing.T, id string) {
	t.Helper()
	from := time.Now()
	r := a.runner(t.Context(), id)
	testkit.Eventually(t, hosttest.Soon, func() error {
		last := make(chan time.Time, 1)
		r.Do(func(context.Context) { last <- r.aside.Looked() })
		// The look after the first one began after it.
		if at := <-last; at.Sub(from) < time.Second {
			return fmt.Errorf("it looked last at %s", at)
		}
		return nil
	})
}

// Whoever finds no room for a copy says so.
func TestNoRoomIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	w.run(nil)
	a := w.Assignment("db-1", 1)
	w.Assign(a)
	w.Awaits(a.ID, hosttest.Soon, hosttest.Running(1))
	dir := filepath.Join(w.Dir, "members", a.ID)
	w.Must(os.WriteFile(filepath.Join(dir, "data.kept.size"), []byte("1000000000000\n"), 0o644)) // the database's user reads it
	w.Must(os.Mkdir(filepath.Join(dir, "data.kept"), 0o700))
	w.Awaits(a.ID, hosttest.Soon, func(r member.Report) error {
		if r.Problem != member.NoRoom || !strings.Contains(r.Detail, "MiB are needed") {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	w.Must(os.WriteFile(filepath.Join(dir, "data.kept.size"), []byte("1\n"), 0o600))
	w.Awaits(a.ID, hosttest.Soon, hosttest.Running(1))
}
