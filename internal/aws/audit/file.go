package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// file is the newest file of a class. Older files have its name with a suffix that sorts by time.
// The mutex of its Log guards it.
type file struct {
	dir, name string
	max       int64
	keepBytes int64
	keepFiles int

	file *os.File
	size int64
	day  time.Time // on which the file's last record was written
}

func (f *file) path() string { return filepath.Join(f.dir, f.name) }

// write adds a line. A file that is full, or from a day that is over, is put aside first.
func (f *file) write(line []byte, now time.Time) error {
	if f.file == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	day := now.UTC().Truncate(24 * time.Hour)
	if f.size > 0 && (f.size+int64(len(line)) > f.max || f.day.Before(day)) {
		if err := f.rotate(now); err != nil {
			return err
		}
		if err := f.open(); err != nil {
			return err
		}
	}
	if f.day.Before(day) {
		f.day = day
	}
	// One write, so that readers see whole lines.
	n, err := f.file.Write(line)
	f.size += int64(n)
	if err != nil {
		f.close()
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

func (f *file) open() error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("open audit log: %w", err)
	}
	opened, err := os.OpenFile(f.path(), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open audit log: %w", err)
	}
	info, err := opened.Stat()
	if err != nil {
		opened.Close()
		return fmt.Errorf("open audit log: %w", err)
	}
	f.file, f.size = opened, info.Size()
	if f.size > 0 && f.day.IsZero() {
		f.day = info.ModTime().UTC().Truncate(24 * time.Hour)
	}
	return f.endLine()
}

// endLine ends a line that a crash, or a full disk, has cut short.
func (f *file) endLine() error {
	if f.size == 0 {
		return nil
	}
	var last [1]byte
	if _, err := f.file.ReadAt(last[:], f.size-1); err != nil || last[0] == '\n' {
		return nil //nolint:nilerr // then the next line is the one that is spoilt
	}
	n, err := f.file.Write([]byte{'\n'})
	f.size += int64(n)
	return err
}

// rotate puts the file aside. It deletes the oldest files if there are more than are kept.
func (f *file) rotate(now time.Time) error {
	f.close()
	if err := os.Rename(f.path(), f.path()+"."+now.UTC().Format("20060102T150405.000000000")); err != nil {
		return fmt.Errorf("rotate audit log: %w", err)
	}
	old, err := older(f.dir, f.name)
	if err != nil {
		return err
	}
	slices.Reverse(old)
	var total int64
	for i, path := range old {
		info, statErr := os.Stat(path)
		if statErr == nil {
			total += info.Size()
		}
		if i >= f.keepFiles || total > f.keepBytes {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

func (f *file) close() {
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
}

// older returns the files of a class that were put aside, the oldest first.
func older(dir, name string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, name+".*"))
	if err != nil {
		return nil, fmt.Errorf("list audit log: %w", err)
	}
	slices.Sort(files)
	return files, nil
}
