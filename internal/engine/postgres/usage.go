package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"howdah/internal/system/owner"
)

// Usage says how many bytes the files of a data directory take.
type Usage struct {
	Bytes int64
	// Sorts has the bytes of temporary files by the number of the process.
	Sorts map[int]int64
	// Slots has, by name of the replication slot, the bytes of decoded changes that do not fit into
	// memory. WAL is not included.
	Slots map[string]int64
}

const (
	// deepest is the depth to which directories are read. PostgreSQL's own are not half as deep.
	deepest = 16
	// mostNames bounds how many names that somebody else chose are kept in memory.
	mostNames = 10000
	namesOnce = 1000
)

var (
	sortForm = regexp.MustCompile(`(?:^|/)pgsql_tmp/pgsql_tmp([0-9]+)`)
	slotForm = regexp.MustCompile(`^pg_replslot/([^/]+)/`)
)

// MeasureUsage adds up all files of a data directory. PostgreSQL's own functions do not count the
// files of parallel sorts, decoded changes, the queue of NOTIFY and the texts of
// pg_stat_statements. With an error MeasureUsage returns what it has counted so far.
func MeasureUsage(ctx context.Context, user *owner.User, dataDir string) (Usage, error) {
	u := Usage{Sorts: map[int]int64{}, Slots: map[string]int64{}}
	err := user.Do(func() error { return u.addDir(ctx, dataDir, "", 0) })
	if err != nil {
		err = fmt.Errorf("measure storage: %w", err)
	}
	return u, err
}

// addDir adds the files below a directory. It never holds all names in memory at once. A file that
// vanishes meanwhile counts as empty.
func (u *Usage) addDir(ctx context.Context, root, below string, depth int) error {
	flags := os.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK
	if depth > 0 {
		flags |= unix.O_NOFOLLOW
	}
	dir, err := os.OpenFile(filepath.Join(root, below), flags, 0)
	if errors.Is(err, os.ErrNotExist) && depth > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := dir.ReadDir(namesOnce)
		for _, e := range entries {
			if err := u.addEntry(ctx, root, filepath.Join(below, e.Name()), e, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (u *Usage) addEntry(ctx context.Context, root, path string, e os.DirEntry, depth int) error {
	info, err := e.Info()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	u.add(path, info)
	if info.IsDir() && depth < deepest {
		return u.addDir(ctx, root, path, depth+1)
	}
	return nil
}

func (u *Usage) add(path string, info os.FileInfo) {
	bytes := info.Size()
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		bytes = max(bytes, stat.Blocks*512) // more blocks than its length needs may be allocated
	}
	if !info.Mode().IsRegular() {
		bytes = 0
	}
	u.Bytes += bytes
	if found := sortForm.FindStringSubmatch(path); found != nil {
		if pid, err := strconv.Atoi(found[1]); err == nil {
			addTo(u.Sorts, pid, bytes)
		}
	}
	if found := slotForm.FindStringSubmatch(path); found != nil {
		addTo(u.Slots, found[1], bytes)
	}
}

func addTo[K comparable](all map[K]int64, key K, bytes int64) {
	if _, known := all[key]; known || len(all) < mostNames {
		all[key] += bytes
	}
}

// Above returns the names with more than most bytes.
func Above[K comparable](all map[K]int64, most int64) (above []K) {
	for key, bytes := range all {
		if bytes > most {
			above = append(above, key)
		}
	}
	return above
}
