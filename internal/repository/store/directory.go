package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// copySize is how much is copied at once, in bytes.
	copySize = 256 << 10
	// flushEvery is after how many bytes the kernel is told to begin with writing to the disk.
	flushEvery = 8 << 20
	// placeTries is how often a directory may be removed by others before an object is put into it.
	placeTries = 20
)

// names of ours below own.
const (
	putDir    = own + "/put"
	uploadDir = own + "/upload"
)

var buffers = sync.Pool{New: func() any { b := make([]byte, copySize); return &b }}

// Directory is a store of files below a directory. Several processes, and several hosts that share
// the file system, may use it at the same time. Its files have the mode 0600, its directories 0700.
// A deletion may be undone by a loss of power. It has no goroutines, and needs not be closed.
type Directory struct {
	path, id string

	// mu guards what follows.
	mu sync.Mutex
	// device and inode are those of the directory that is known to be the repository.
	device, inode uint64
}

var _ Store = (*Directory)(nil)

// OpenDirectory opens a directory that is there. id is that of the marker which must be in it; ""
// stands for one that is only to be looked at, or to become a repository. With an id, the directory
// may be mounted and unmounted at any time: while it does not have the marker, all methods return
// ErrAway, and write nothing.
func OpenDirectory(dir, id string) (*Directory, error) {
	if !path.IsAbs(dir) {
		return nil, fmt.Errorf("open the repository %s: the path must begin with a slash", dir)
	}
	d := &Directory{path: path.Clean(dir), id: id}
	t, err := d.tree()
	if err != nil {
		return nil, err
	}
	t.close()
	return d, nil
}

// tree opens the directory anew, so that it is the one that is mounted now.
func (d *Directory) tree() (tree, error) {
	fd, err := unix.Open(d.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return tree{}, fmt.Errorf("%w: open %s: %w", ErrAway, d.path, err)
	}
	t := tree{fd: fd, path: d.path}
	if err := d.recognize(t); err != nil {
		t.close()
		return tree{}, err
	}
	return t, nil
}

// recognize returns ErrAway if the directory is not the repository.
func (d *Directory) recognize(t tree) error {
	var s unix.Stat_t
	if err := unix.Fstat(t.fd, &s); err != nil {
		return fmt.Errorf("%w: stat %s: %w", ErrAway, d.path, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.id == "" || d.device == s.Dev && d.inode == s.Ino {
		return nil
	}
	if err := CheckMarker(context.Background(), opened{tree: t}, d.id); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrAway, d.path, err)
	}
	d.device, d.inode = s.Dev, s.Ino
	return nil
}

// opened reads the marker of a tree before that is known to be the repository.
type opened struct {
	Objects
	tree
}

func (o opened) Get(_ context.Context, key string, offset, length int64) (io.ReadCloser, Object, error) {
	return o.get(key, offset, length)
}

// Get implements Objects.
func (d *Directory) Get(_ context.Context, key string, offset, length int64) (io.ReadCloser, Object, error) {
	if CheckKey(key) != nil {
		return nil, Object{}, fmt.Errorf("%w: %.80q", ErrNotFound, key)
	}
	t, err := d.tree()
	if err != nil {
		return nil, Object{}, err
	}
	defer t.close()
	return t.get(key, offset, length)
}

func (t tree) get(key string, offset, length int64) (io.ReadCloser, Object, error) {
	file, err := t.open(key, unix.O_RDONLY, 0)
	if err != nil {
		return nil, Object{}, readKindOf(err)
	}
	object, err := stat(file, key)
	if err == nil && offset > 0 {
		_, err = file.Seek(offset, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, Object{}, readKindOf(err)
	}
	if length < 0 {
		length = object.Size
	}
	return &section{file: file, Reader: io.LimitReader(file, length)}, object, nil
}

// section is a part of a file.
type section struct {
	io.Reader
	file *os.File
}

func (s *section) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = readKindOf(err)
	}
	return n, err
}

func (s *section) Close() error { return s.file.Close() }

// Head implements Objects.
func (d *Directory) Head(ctx context.Context, key string) (Object, error) {
	body, object, err := d.Get(ctx, key, 0, 0)
	if err != nil {
		return Object{}, err
	}
	return object, body.Close()
}

// Put implements Objects.
func (d *Directory) Put(ctx context.Context, key string, body io.Reader) (Object, error) {
	if err := CheckKey(key); err != nil {
		return Object{}, err
	}
	t, err := d.tree()
	if err != nil {
		return Object{}, err
	}
	defer t.close()
	name := putDir + "/" + rand.Text()
	file, err := t.create(name)
	if err != nil {
		return Object{}, err
	}
	defer file.Close()
	if err = fill(ctx, file, body); err == nil {
		var object Object
		if object, err = t.place(file, name, key); err == nil {
			return object, nil
		}
	}
	return Object{}, errors.Join(err, t.remove(name, 0))
}

// create makes a file that only we may read.
func (t tree) create(name string) (*os.File, error) {
	dir, err := t.makeDir(path.Dir(name))
	if err != nil {
		return nil, kindOf(err)
	}
	dir.Close()
	file, err := t.open(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
	return file, kindOf(err)
}

// fill writes to the file what body has, and has the kernel write to the disk meanwhile. It tells
// errors of the disk from those of body, which have no kind.
func fill(ctx context.Context, file *os.File, body io.Reader) error {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	var written, flushed int64
	for {
		n, readErr := readFull(body, *buffer)
		if _, err := file.Write((*buffer)[:n]); err != nil {
			return kindOf(err)
		}
		written += int64(n)
		if errors.Is(readErr, io.EOF) {
			return nil
		}
		if err := errors.Join(readErr, ctx.Err()); err != nil {
			return err
		}
		if written-flushed >= flushEvery {
			// Where the file system does not know this, it writes at the end.
			_ = unix.SyncFileRange(int(file.Fd()), flushed, written-flushed, unix.SYNC_FILE_RANGE_WRITE)
			flushed = written
		}
	}
}

// readFull reads until the buffer is full, or until an error, which it returns as it is: io.EOF is
// the end, io.ErrUnexpectedEOF a body that was cut off. (io.ReadFull does not tell them apart.)
func readFull(r io.Reader, buffer []byte) (n int, err error) {
	for n < len(buffer) && err == nil {
		var got int
		got, err = r.Read(buffer[n:])
		n += got
	}
	return n, err
}

// place makes a file durable, and gives it its key in one step.
func (t tree) place(file *os.File, name, key string) (Object, error) {
	if err := file.Sync(); err != nil {
		return Object{}, kindOf(err)
	}
	object, err := stat(file, key)
	if err != nil {
		return Object{}, err
	}
	from, err := t.dir(path.Dir(name))
	if err != nil {
		return Object{}, kindOf(err)
	}
	defer from.Close()
	for range placeTries {
		if err = t.rename(from, path.Base(name), key); !errors.Is(err, unix.ENOENT) {
			break
		}
	}
	if err != nil {
		return Object{}, fmt.Errorf("put %.80q: %w", key, kindOf(err))
	}
	return object, nil
}

// rename moves a file into the place of a key. It returns ENOENT if the directory that it is to be
// in has just been removed, as empty ones are.
func (t tree) rename(from *os.File, name, key string) error {
	to, err := t.makeDir(path.Dir(key))
	if err != nil {
		return err
	}
	defer to.Close()
	if err := unix.Renameat(int(from.Fd()), name, int(to.Fd()), path.Base(key)); err != nil {
		return &os.PathError{Op: "rename", Path: path.Join(t.path, key), Err: err}
	}
	return to.Sync()
}

// Delete implements Objects.
func (d *Directory) Delete(ctx context.Context, keys ...string) error {
	if err := checkKeys(keys); err != nil {
		return err
	}
	t, err := d.tree()
	if err != nil {
		return err
	}
	defer t.close()
	above := map[string]bool{}
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := t.remove(key, 0)
		if err == nil {
			above[path.Dir(key)] = true
		} else if err := readKindOf(err); !errors.Is(err, ErrNotFound) {
			return kindOf(err)
		}
	}
	for dir := range above {
		t.prune(dir)
	}
	return nil
}

// prune removes a directory and those above it as far as they are empty. What cannot be removed is
// not seen in lists.
func (t tree) prune(dir string) {
	for ; dir != "."; dir = path.Dir(dir) {
		if t.remove(dir, unix.AT_REMOVEDIR) != nil {
			return
		}
	}
}
