// Package backup keeps copies of what a home is: its etcd, and the files without which nobody could
// read it, and hosts would believe nobody (authority, keys, tokens). A backup is a directory that
// appears as a whole. It is written under another name, made durable, read again and compared, and
// only then renamed. Its files are for their owner alone. What is sealed in the state is sealed in
// the backup, but the backup has the key, too: keep it like a private key. It holds no data of
// databases.
package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"howdah/internal/identity/home"
	"howdah/internal/state/etcd"
	records "howdah/internal/state/format"
)

// Names in a backup.
const (
	manifestFile = "manifest.json"
	// SnapshotFile is etcd's.
	SnapshotFile = "etcd.snapshot"
	// HomeDir holds the files of the home, by their paths in it.
	HomeDir = "home"
)

// format is the format of backups that this program writes, and the newest that it reads.
const format = 1

// Manifest says what a backup holds. It is written last.
type Manifest struct {
	Format   int       `json:"format"`
	Home     string    `json:"home"` // its id
	Version  string    `json:"version"`
	Taken    time.Time `json:"taken"`
	Revision int64     `json:"revision"` // of etcd
	Keys     int       `json:"keys"`
	// Records is the format of the home's records (package format), and Release wrote it first.
	Records int    `json:"records,omitempty"`
	Release string `json:"release,omitempty"`
	Files   []File `json:"files"`
}

// File is one file of a backup.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

var (
	// ErrDamaged says that a backup cannot be restored.
	ErrDamaged = errors.New("this backup cannot be restored")
	// ErrBusy says that somebody else is taking a backup of the home into the directory.
	ErrBusy = errors.New("a backup into this directory is being taken already")
)

// Source says what a backup is taken of.
type Source struct {
	Home     *home.Home
	Snapshot func(ctx context.Context, to io.Writer) error
	Version  string
	// Format returns the format of the home's records. It is nil if the home has none yet.
	Format func(ctx context.Context) (records.Record, error)
}

// Backup is a backup that exists.
type Backup struct {
	Path string
	Manifest
}

const (
	unfinished = ".unfinished-"
	removed    = ".removed-"
	stamp      = "20060102T150405.000Z"
)

func prefix(id string) string { return "howdah-" + id + "-" }

// Take takes a backup into a directory, which it makes. Afterwards there is a whole backup or none.
// An error leaves nothing. What a program left that was killed, the next call removes.
func Take(ctx context.Context, dir string, from Source) (Backup, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Backup{}, fmt.Errorf("take a backup: %w", err)
	}
	lock, err := home.LockFile(filepath.Join(dir, "."+prefix(from.Home.ID)+"lock"))
	if errors.Is(err, home.ErrLocked) {
		return Backup{}, ErrBusy
	}
	if err != nil {
		return Backup{}, fmt.Errorf("take a backup: %w", err)
	}
	defer lock.Release()
	left := filepath.Join(dir, unfinished+prefix(from.Home.ID))
	if err := os.RemoveAll(left); err != nil {
		return Backup{}, fmt.Errorf("remove an unfinished backup: %w", err)
	}
	if err := removeLeft(dir, from.Home.ID); err != nil {
		return Backup{}, err
	}
	b, err := take(ctx, dir, left, from)
	if err != nil {
		return Backup{}, errors.Join(fmt.Errorf("take a backup into %s: %w", dir, err), os.RemoveAll(left))
	}
	return b, nil
}

func take(ctx context.Context, dir, at string, from Source) (Backup, error) {
	m := Manifest{Format: format, Home: from.Home.ID, Version: from.Version, Taken: time.Now().UTC()}
	// A clock that was set back may name a moment that another backup has.
	for exists(pathOf(dir, m)) {
		m.Taken = m.Taken.Add(time.Millisecond)
	}
	if err := os.Mkdir(at, 0o700); err != nil {
		return Backup{}, err
	}
	file, err := writeFile(at, SnapshotFile, func(to io.Writer) error { return from.Snapshot(ctx, to) })
	if err != nil {
		return Backup{}, err
	}
	m.Files = append(m.Files, file)
	if from.Format != nil {
		now, err := from.Format(ctx) // the number only grows, and is asked for after the snapshot
		if err != nil {
			return Backup{}, err
		}
		m.Records, m.Release = now.Format, now.Release
	}
	paths, err := from.Home.Belongings()
	if err != nil {
		return Backup{}, err
	}
	for _, path := range paths {
		file, err := writeFile(at, filepath.Join(HomeDir, path), copyOf(filepath.Join(from.Home.Dir, path)))
		if err != nil {
			return Backup{}, err
		}
		m.Files = append(m.Files, file)
	}
	held, err := etcd.CheckSnapshot(filepath.Join(at, SnapshotFile))
	if err != nil {
		return Backup{}, err
	}
	m.Revision, m.Keys = held.Revision, held.Keys
	if _, err := writeFile(at, manifestFile, func(to io.Writer) error {
		text := json.NewEncoder(to)
		text.SetIndent("", "  ")
		return text.Encode(m)
	}); err != nil {
		return Backup{}, err
	}
	if err := home.SyncTree(at); err != nil {
		return Backup{}, err
	}
	if _, err := Verify(at); err != nil {
		return Backup{}, err
	}
	path := pathOf(dir, m)
	if err := os.Rename(at, path); err != nil {
		return Backup{}, err
	}
	return Backup{Path: path, Manifest: m}, home.SyncDir(dir)
}

func pathOf(dir string, m Manifest) string {
	return filepath.Join(dir, prefix(m.Home)+m.Taken.Format(stamp))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func copyOf(path string) func(io.Writer) error {
	return func(to io.Writer) error {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = io.Copy(to, file)
		return err
	}
}

func writeFile(dir, path string, write func(io.Writer) error) (File, error) {
	full := filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		return File{}, err
	}
	file, err := os.OpenFile(full, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return File{}, err
	}
	sum := sha256.New()
	err = write(io.MultiWriter(file, sum))
	info, statErr := file.Stat()
	if err := errors.Join(err, statErr, file.Close()); err != nil {
		return File{}, fmt.Errorf("write %s: %w", path, err)
	}
	return File{Path: path, Size: info.Size(), SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// Verify reads all of a backup and returns what it holds. It returns ErrDamaged if anything is
// missing, or is not what was written.
func Verify(path string) (Backup, error) {
	damaged := func(why error) (Backup, error) {
		return Backup{Path: path}, fmt.Errorf("%s: %w: %w", path, ErrDamaged, why)
	}
	text, err := os.ReadFile(filepath.Join(path, manifestFile))
	if err != nil {
		return damaged(err)
	}
	b := Backup{Path: path}
	if err := json.Unmarshal(text, &b.Manifest); err != nil {
		return damaged(err)
	}
	if b.Format > format || b.Format < 1 {
		return damaged(fmt.Errorf("it has format %d, and this version of Howdah reads %d", b.Format, format))
	}
	if err := (records.Record{Format: b.Records, Release: b.Release}).Check("of this version"); err != nil {
		return b, fmt.Errorf("%s: %w", path, err)
	}
	seen := map[string]bool{}
	for _, f := range b.Files {
		if !filepath.IsLocal(f.Path) {
			return damaged(fmt.Errorf("it names the file %s", f.Path))
		}
		seen[f.Path] = true
		if err := f.check(path); err != nil {
			return damaged(err)
		}
	}
	for _, needed := range []string{SnapshotFile, filepath.Join(HomeDir, home.ConfigFile)} {
		if !seen[needed] {
			return damaged(fmt.Errorf("it has no %s", needed))
		}
	}
	held, err := etcd.CheckSnapshot(filepath.Join(path, SnapshotFile))
	if err != nil {
		return damaged(err)
	}
	if held.Revision != b.Revision || held.Keys != b.Keys {
		return damaged(errors.New("its snapshot is not the one that its manifest describes"))
	}
	return b, nil
}

func (f File) check(dir string) error {
	file, err := os.Open(filepath.Join(dir, f.Path))
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err != nil {
		return fmt.Errorf("read %s: %w", f.Path, err)
	}
	if size != f.Size || hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%s is not what was written", f.Path)
	}
	return nil
}

// Found is a backup in a directory, or the reason why what looks like one is none.
type Found struct {
	Backup
	Err error
}

// List finds and verifies the backups in a directory, the newest first. If id is not "", it lists
// only backups of the home with this id.
func List(dir, id string) ([]Found, error) {
	paths, err := find(dir, id)
	if err != nil {
		return nil, err
	}
	var all []Found
	for _, path := range paths {
		b, err := Verify(path)
		all = append(all, Found{b, err})
	}
	return all, nil
}

// find returns what looks like a backup in a directory, the newest first. It reads no contents.
func find(dir, id string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("look for backups: %w", err)
	}
	var paths []string
	for _, e := range slices.Backward(entries) {
		if e.IsDir() && strings.HasPrefix(e.Name(), "howdah-"+id) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, nil
}

// newest returns the newest backup of a home that can be restored. ok is false if there is none.
func newest(dir, id string) (b Backup, ok bool) {
	paths, err := find(dir, id)
	if err != nil {
		return Backup{}, false
	}
	for _, path := range paths {
		if b, err := Verify(path); err == nil {
			return b, true
		}
	}
	return Backup{}, false
}

// Prune removes the backups of a home, except for the newest keep that can be restored. It leaves
// those that cannot be restored, for a person to look at.
func Prune(dir, id string, keep int) error {
	if paths, err := find(dir, id); err != nil || len(paths) <= keep {
		return err // all of them may stay, and each is large to read
	}
	all, err := List(dir, id)
	if err != nil {
		return err
	}
	var errs []error
	whole := 0
	for _, f := range all {
		if f.Err != nil || f.Home != id {
			continue
		}
		if whole++; whole > keep {
			errs = append(errs, remove(f.Path))
		}
	}
	return errors.Join(errs...)
}

// remove makes a backup vanish as a whole, as it appeared.
func remove(path string) error {
	gone := filepath.Join(filepath.Dir(path), removed+filepath.Base(path))
	if err := os.Rename(path, gone); err != nil {
		return fmt.Errorf("remove a backup: %w", err)
	}
	if err := os.RemoveAll(gone); err != nil {
		return fmt.Errorf("remove a backup: %w", err)
	}
	return nil
}

// removeLeft removes what is left of backups whose removal was killed.
func removeLeft(dir, id string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look for backups: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), removed+prefix(id)) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("remove a backup: %w", err)
		}
	}
	return nil
}
