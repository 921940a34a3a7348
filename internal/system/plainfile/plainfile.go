// Package plainfile reads and replaces small files as a whole.
package plainfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Most is the largest file that Read reads, in bytes.
const Most = 16 << 20

// ErrOther says that a path leads to no plain file, or to one that is too long.
var ErrOther = errors.New("it is no plain file, or it is too large")

// Read reads a file that somebody else may have exchanged for anything. It never waits for a pipe,
// and never reads a device without end. If there is no file, it returns os.ErrNotExist.
func Read(path string) ([]byte, error) {
	file, size, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if size > Most {
		return nil, fmt.Errorf("read %s: %w", path, ErrOther)
	}
	text, err := io.ReadAll(io.LimitReader(file, Most+1))
	if err == nil && len(text) > Most {
		err = fmt.Errorf("read %s: %w", path, ErrOther)
	}
	return text, err
}

// Tail returns the end of such a file, at most this many bytes. The file may have any length.
func Tail(path string, most int64) ([]byte, error) {
	file, size, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(max(0, size-most), io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the end of %s: %w", path, err)
	}
	return io.ReadAll(io.LimitReader(file, most))
}

// open opens a plain file and returns its size in bytes.
func open(path string) (*os.File, int64, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("read %s: %w", path, ErrOther)
	}
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// Replace puts a text in the place of a file in one step, so that nobody reads half of it, and
// syncs the text. The name is as durable as the directory. The file belongs to the caller's user.
func Replace(path string, text []byte, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(tmp.Name())
	_, writeErr := tmp.Write(text)
	err = errors.Join(writeErr, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
