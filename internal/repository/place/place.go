// Package place has what is done with the place of a repository before backups go there: whether a
// directory may be one, whether everything works that a repository needs, whether all hosts see the
// same place, and how a place becomes a repository.
//
// Invariants: nothing is written to a place that has another repository. What a probe writes is
// removed again, and lies below ProbePrefix.
package place

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"howdah/internal/model/member"
	"howdah/internal/repository/store"
)

// Open opens the store of a repository. Without an ID it is not checked which repository it is.
func Open(r member.Repository) (store.Store, error) {
	if r.Kind == "directory" {
		return store.OpenDirectory(r.Path, r.ID)
	}
	return store.OpenS3(store.S3Config{
		Endpoint: r.Endpoint, Region: r.Region, Bucket: r.Bucket, Prefix: r.Prefix, CA: r.CA, AccessKey: r.AccessKey, Secret: r.Secret,
	})
}

// ErrPath says that a directory cannot be a repository.
var ErrPath = errors.New("this directory cannot be a repository")

// CheckPath returns ErrPath, with what to do, for a directory that must not become a repository.
// taken are directories that have something else of the home: the repository may neither lie in one
// nor around one.
func CheckPath(path string, taken ...string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return fmt.Errorf("%w: give its whole path, from the first slash on, without . and ..", ErrPath)
	}
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: there is no %s: make it, for the user that Howdah runs as alone (mode 0700), on each host", ErrPath, path)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPath, err)
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPath, err)
	}
	if target != path {
		return fmt.Errorf("%w: a part of %s is a link: give the path that it leads to, %s", ErrPath, path, target)
	}
	if !info.IsDir() {
		return fmt.Errorf("%w: %s is no directory", ErrPath, path)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("%w: others may write to %s (mode %04o): chmod 0700 it", ErrPath, path, mode)
	}
	for _, other := range taken {
		if within(path, other) || within(other, path) {
			return fmt.Errorf("%w: %s has files of the home in it or around it (%s): choose a directory of its own", ErrPath, path, other)
		}
	}
	return nil
}

// Apart reports whether neither of two directories lies in the other.
func Apart(a, b string) bool { return !within(a, b) && !within(b, a) }

func within(path, dir string) bool {
	dir = strings.TrimSuffix(filepath.Clean(dir), "/")
	return path == dir || strings.HasPrefix(path, dir+"/")
}

var (
	// ErrTaken says that a place has a repository already.
	ErrTaken = errors.New("there is a repository already")
	// ErrNotEmpty says that a place has something else in it.
	ErrNotEmpty = errors.New("there is something else in it")
)

// Found makes a repository of an empty place. It may be called again after it was interrupted: a
// marker of the same home that has nothing beside it is replaced, unless known has its id. Else it
// returns ErrTaken or ErrNotEmpty.
func Found(ctx context.Context, s store.Store, m store.Marker, known func(id string) bool) error {
	old, err := store.ReadMarker(ctx, s)
	marked := err == nil
	if err != nil && !errors.Is(err, store.ErrNoMarker) {
		return err
	}
	if marked && old.ID == m.ID {
		return nil
	}
	beside, err := Beside(ctx, s)
	if err != nil {
		return err
	}
	switch {
	case marked && (old.Home != m.Home || known(old.ID) || beside != ""):
		return fmt.Errorf("%w: its id is %s, made by the home %s at %s", ErrTaken, old.ID, old.Home, old.Created.UTC().Format("2006-01-02 15:04Z"))
	case beside != "":
		return fmt.Errorf("%w: %.80q", ErrNotEmpty, beside)
	case marked:
		if err := s.Delete(ctx, store.MarkerKey); err != nil {
			return fmt.Errorf("replace the marker that was left: %w", err)
		}
	}
	return store.WriteMarker(ctx, s, m)
}

// Beside returns the name of something in a place that is neither the marker nor ours, or "".
func Beside(ctx context.Context, s store.Store) (string, error) {
	page, err := s.List(ctx, store.Query{Fold: true, Max: 8})
	if err != nil {
		return "", fmt.Errorf("list what is there: %w", err)
	}
	for _, o := range page.Objects {
		if o.Key != store.MarkerKey {
			return o.Key, nil
		}
	}
	for _, prefix := range page.Prefixes {
		if prefix != ProbePrefix && prefix != "lost+found/" {
			return prefix, nil
		}
	}
	return "", nil
}
