// Package logfile reads the log files that PostgreSQL's collector writes, one for each hour, and
// keeps them from filling the disk. It touches only plain files with the names that PostgreSQL was
// told to use, in the one directory of a Dir.
//
// A place in a file is a byte offset that stays right for ever. Files grow only at their end, and
// what is given up at the beginning of one leaves a hole.
package logfile

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNoFile says that there is no log file of this name.
var ErrNoFile = errors.New("there is no such log file")

// nameForm is the form of the files' names, as the setting log_filename has it.
var nameForm = regexp.MustCompile(`^postgresql\.log\.[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}$`)

// Dir is where a member's log files are.
type Dir struct {
	// Root is a directory that only the platform can replace. Nothing outside of it is reached,
	// whatever links lie in it.
	Root string
	// Sub is the directory of the files, below Root.
	Sub string
	// Owner names the member. A marker of one member leads nowhere in another's files.
	Owner string
}

// File is one log file.
type File struct {
	Name    string    `json:"name"`
	Size    int64     `json:"size"` // bytes
	Written time.Time `json:"written"`
}

// List returns the files, the oldest first. It returns none if there is no directory.
func (d Dir) List() ([]File, error) {
	root, found, err := d.look()
	if err != nil || root == nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	files := make([]File, len(found))
	for i, info := range found {
		files[i] = File{info.Name(), info.Size(), info.ModTime().UTC()}
	}
	return files, nil
}

// look opens the root and finds the files below it, sorted by name and so by age. Without a
// directory it returns nil.
func (d Dir) look() (*os.Root, []fs.FileInfo, error) {
	root, err := os.OpenRoot(d.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("look for logs: %w", err)
	}
	names, err := namesIn(root, d.Sub)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = root.Close()
		return nil, nil, fmt.Errorf("look for logs: %w", err)
	}
	var found []fs.FileInfo
	for _, name := range names {
		if info, err := root.Lstat(filepath.Join(d.Sub, name)); err == nil && info.Mode().IsRegular() {
			found = append(found, info)
		}
	}
	slices.SortFunc(found, func(a, b fs.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	return root, found, nil
}

const (
	// mostNames is how many log files are looked at. Usually there are some hundreds, one for each
	// hour. The member's user may have made millions.
	mostNames = 2000
	// namesOnce is how many names are read at once.
	namesOnce = 1000
)

// namesIn returns the names of log files in a directory. If there are too many, it returns the
// oldest, which are deleted first, and the newest. It never holds all names, and does not wait if
// there is a pipe in the directory's place.
func namesIn(root *os.Root, dir string) ([]string, error) {
	file, err := root.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var found []string
	for {
		names, err := file.Readdirnames(namesOnce)
		for _, name := range names {
			if nameForm.MatchString(name) {
				found = append(found, name)
			}
		}
		if len(found) > mostNames {
			slices.Sort(found)
			found = slices.Delete(found, mostNames/2, len(found)-mostNames/2)
		}
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// open opens a plain file. It refuses a link or a pipe.
func (d Dir) open(root *os.Root, name string, flag int) (*os.File, fs.FileInfo, error) {
	if !nameForm.MatchString(name) {
		return nil, nil, ErrNoFile
	}
	path := filepath.Join(d.Sub, name)
	named, err := root.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !named.Mode().IsRegular() {
		return nil, nil, ErrNoFile
	}
	if err != nil {
		return nil, nil, fmt.Errorf("look at log %s: %w", name, err)
	}
	file, err := root.OpenFile(path, flag|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ErrNoFile
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open log %s: %w", name, err)
	}
	info, err := file.Stat()
	if err == nil && (!os.SameFile(named, info) || links(info) != 1) {
		err = ErrNoFile // exchanged meanwhile, or a second name of another file
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// identity tells a file from all others of its name: from that of another member, and from the one
// that was here before the member was copied anew.
func (d Dir) identity(info fs.FileInfo) string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s/%s/%d", d.Owner, info.Name(), inode(info))
	return fmt.Sprintf("%08x", h.Sum32())
}

func inode(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}

// used returns how many bytes a file takes on disk.
func used(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}

// links returns how many names a file has.
func links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink) //nolint:unconvert // it is shorter on other machines
	}
	return 0
}
