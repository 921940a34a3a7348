package store

import (
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// tree is the directory of a repository, open for one operation. Names are relative to it, without
// a link and without leaving it; "." is the directory itself.
type tree struct {
	fd   int
	path string // for messages
}

func (t tree) close() { unix.Close(t.fd) }

// openTries is how often the kernel may say that a directory was moved while it was passed through.
const openTries = 100

// open opens a name without following links. The file has the right name for messages.
func (t tree) open(name string, flags int, mode uint32) (*os.File, error) {
	how := unix.OpenHow{
		Flags: uint64(flags) | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY, Mode: uint64(mode),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	}
	var err error
	for range openTries {
		var fd int
		if fd, err = unix.Openat2(t.fd, name, &how); err == nil {
			return os.NewFile(uintptr(fd), path.Join(t.path, name)), nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return nil, &os.PathError{Op: "open", Path: path.Join(t.path, name), Err: err}
}

// dir opens a directory.
func (t tree) dir(name string) (*os.File, error) {
	return t.open(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
}

// makeDir opens a directory, and makes it and those above it if they are not there. What it made
// is durable.
func (t tree) makeDir(name string) (*os.File, error) {
	dir, err := t.dir(name)
	if !errors.Is(err, unix.ENOENT) || name == "." {
		return dir, err
	}
	above, err := t.makeDir(path.Dir(name))
	if err != nil {
		return nil, err
	}
	defer above.Close()
	err = unix.Mkdirat(int(above.Fd()), path.Base(name), 0o700)
	if err == nil {
		err = above.Sync()
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, &os.PathError{Op: "mkdir", Path: path.Join(t.path, name), Err: err}
	}
	return t.dir(name)
}

// remove removes a file, or a directory that is empty.
func (t tree) remove(name string, flags int) error {
	dir, err := t.dir(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Unlinkat(int(dir.Fd()), path.Base(name), flags); err != nil {
		return &os.PathError{Op: "remove", Path: path.Join(t.path, name), Err: err}
	}
	return nil
}

// removeAll removes a directory with the plain files in it.
func (t tree) removeAll(name string) error {
	dir, err := t.dir(name)
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	dir.Close()
	for _, inside := range names {
		err = errors.Join(err, t.remove(name+"/"+inside, 0))
	}
	return errors.Join(err, t.remove(name, unix.AT_REMOVEDIR))
}

// stat returns what is known of an open file, or ErrNotFound if it is no plain file.
func stat(file *os.File, key string) (Object, error) {
	var s unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &s); err != nil {
		return Object{}, &os.PathError{Op: "stat", Path: file.Name(), Err: err}
	}
	return objectOf(key, &s)
}

// objectOf returns what is known of an object from what the system knows of its file.
func objectOf(key string, s *unix.Stat_t) (Object, error) {
	if s.Mode&unix.S_IFMT != unix.S_IFREG {
		return Object{}, fmt.Errorf("%w: %.80q is no plain file", ErrNotFound, key)
	}
	modified := modifiedOf(s)
	etag := fmt.Sprintf("%x-%x-%x", s.Ino, modified.UnixNano(), s.Size)
	return Object{Key: key, Size: s.Size, Modified: modified.UTC(), ETag: etag}, nil
}

func modifiedOf(s *unix.Stat_t) time.Time { return time.Unix(s.Mtim.Unix()) }
