package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"howdah/internal/host/pace"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
	"howdah/internal/repository/store"
	"howdah/internal/system/plainfile"
)

const (
	// sweepEvery is how often it is looked whether exports left parts in buckets.
	sweepEvery = time.Minute
	// sweepTimeout bounds the removal of one.
	sweepTimeout = 30 * time.Second
	// giveUpAfter is for how long it is tried to remove what a role opens no more.
	giveUpAfter = 7 * 24 * time.Hour
)

// note is about an upload of an export, from before its first part until nothing is left of it. It is on
// disk, so that an agent which was killed knows afterwards which uploads were its own: those of others in
// the bucket look the same.
type note struct {
	Member   string    `json:"member"`
	Endpoint string    `json:"endpoint"`
	Bucket   string    `json:"bucket"`
	File     string    `json:"file"` // with the prefix of the role
	Upload   string    `json:"upload"`
	Begun    time.Time `json:"begun"`
}

// begins notes an upload. The caller calls done when Put has returned, and says whether it is whole. If it
// is not, Put may not have reached the server to give it up, and the next sweep does.
func (s *Server) begins(n note) (done func(whole bool)) {
	// A sweep never sees a note that is not counted.
	s.mu.Lock()
	file, err := os.CreateTemp(s.config.Notes, "*.json")
	if err == nil {
		s.noted[filepath.Base(file.Name())] = true
	}
	s.mu.Unlock()
	if err == nil {
		err = errors.Join(json.NewEncoder(file).Encode(n), file.Sync(), file.Close(), home.SyncDir(s.config.Notes))
	}
	if err != nil {
		s.config.Log.Warn("an export is not noted, and leaves parts in the bucket if this agent is killed now", "error", err)
	}
	if file == nil {
		return func(bool) {}
	}
	path := file.Name()
	return func(whole bool) {
		s.mu.Lock()
		delete(s.noted, filepath.Base(path))
		s.mu.Unlock()
		if whole {
			_ = os.Remove(path) // else the next sweep finds that nothing is left
		}
	}
}

// Run removes from buckets what exports left there that were broken off, until ctx ends: of this agent,
// and of those before it on this host that were killed. It removes nothing of anybody else.
func (s *Server) Run(ctx context.Context) error {
	for {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.config.Log.Warn("parts of exports are left in buckets", "error", err)
		}
		if !pace.Sleep(ctx, sweepEvery) {
			return nil
		}
	}
}

// sweep gives up the uploads of notes that no export of ours has under way.
func (s *Server) sweep(ctx context.Context) error {
	entries, err := os.ReadDir(s.config.Notes)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	all := []error{err}
	for _, e := range entries {
		s.mu.Lock()
		underWay := s.noted[e.Name()]
		s.mu.Unlock()
		if underWay || ctx.Err() != nil {
			continue
		}
		all = append(all, s.remove(ctx, filepath.Join(s.config.Notes, e.Name())))
	}
	return errors.Join(all...)
}

// remove removes an upload and its note.
func (s *Server) remove(ctx context.Context, path string) error {
	text, err := plainfile.Read(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // its export has just ended
	}
	if err != nil {
		return err
	}
	var n note
	if json.Unmarshal(text, &n) != nil {
		return os.Remove(path) // we were killed before it was written, and before any part was sent
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	err = s.giveUp(ctx, n)
	switch {
	case err == nil:
		s.config.Log.Info("removed the parts of an export that was broken off", "member", n.Member, "bucket", n.Bucket, "file", n.File)
	case time.Since(n.Begun) > giveUpAfter:
		s.config.Log.Warn("parts of an export stay in the bucket", "member", n.Member, "bucket", n.Bucket, "file", n.File, "upload", n.Upload, "error", err)
	default:
		return fmt.Errorf("remove the parts of %.200q in %s: %w", n.File, n.Bucket, err)
	}
	return os.Remove(path)
}

// giveUp removes the upload from the bucket. That it is not there any more is fine.
func (s *Server) giveUp(ctx context.Context, n note) error {
	access, err := s.config.Ask(ctx, n.Member, member.Export)
	if err != nil {
		return err
	}
	key, inside := strings.CutPrefix(n.File, access.Prefix)
	if access.Endpoint != n.Endpoint || access.Bucket != n.Bucket || !inside {
		return fmt.Errorf("%w: the role %s leads elsewhere by now", errNotAllowed, access.Role)
	}
	objects, err := s.open(access)
	if err != nil {
		return err
	}
	defer objects.Close()
	if err := objects.Abort(ctx, key, n.Upload); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}
