package logfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// block is the unit of holes, in bytes. No file system has larger blocks by default.
const block = 4096

// Trim deletes files that were last written before a moment. Then it deletes the oldest ones until
// all together take no more than limit bytes. The newest belongs to PostgreSQL: it is never
// deleted, but loses its beginning if it alone is too large.
func (d Dir) Trim(before time.Time, limit int64) error {
	root, found, err := d.look()
	if err != nil || len(found) == 0 {
		if root != nil {
			_ = root.Close()
		}
		return err
	}
	defer func() { _ = root.Close() }()
	var total int64
	for _, info := range found {
		total += used(info)
	}
	newest := found[len(found)-1]
	var failed error
	for _, info := range found[:len(found)-1] {
		if !info.ModTime().Before(before) && total <= limit {
			continue
		}
		if err := root.Remove(filepath.Join(d.Sub, info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("delete log: %w", err))
			continue
		}
		total -= used(info)
	}
	if total > limit {
		failed = errors.Join(failed, d.behead(root, newest.Name(), limit/2))
	}
	return failed
}

// behead gives up the beginning of a file, so that keep bytes of it are left. What is left stays at
// its place in the file.
func (d Dir) behead(root *os.Root, name string, keep int64) error {
	file, info, err := d.open(root, name, os.O_WRONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	length := (info.Size() - keep) / block * block
	if length <= 0 {
		return nil
	}
	err = unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, length)
	if errors.Is(err, unix.EOPNOTSUPP) {
		// This file system has no holes. No log is better than no disk. The collector appends,
		// wherever the end is.
		err = file.Truncate(0)
	}
	if err != nil {
		return fmt.Errorf("shorten log %s: %w", name, err)
	}
	return nil
}
