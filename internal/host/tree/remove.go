// Package tree works on whole directories that may belong to somebody else: it removes them, copies
// them, and gives them away. It follows no links.
package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Deep is how many directories below each other are open at once. A database's user may have made
// any number of them, so what is deeper is first moved up.
const Deep = 256

// Exists reports whether there is something at a path. The path may lead through links. What cannot
// be looked at counts as there.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// Remove removes a directory of somebody else, of any depth and width, and follows no links. The
// directory in which it lies is ours.
func Remove(ctx context.Context, path string) error {
	return remove(ctx, path, os.Geteuid() == 0)
}

// RemoveOwn is Remove with the rights of the user that owns all of it. A removal that ends half way
// may leave more than one directory. Their names begin with that of the one to be removed.
func RemoveOwn(ctx context.Context, path string) error { return remove(ctx, path, false) }

func remove(ctx context.Context, path string, root bool) error {
	above, err := os.OpenFile(filepath.Dir(path), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer above.Close()
	t := &tree{ctx: ctx, root: root, top: int(above.Fd()), names: []string{filepath.Base(path)}}
	for len(t.names) > 0 {
		last := len(t.names) - 1
		switch err := t.remove(t.top, t.names[last], 0); {
		case errors.Is(err, errDeep): // it comes again after what was moved out of it
		case err != nil:
			return fmt.Errorf("remove %s: %w", path, err)
		default:
			t.names = t.names[:last]
		}
	}
	return nil
}

// errDeep says that a directory was moved out of one that is being removed.
var errDeep = errors.New("it was too deep")

// tree is what is being removed.
type tree struct {
	ctx   context.Context
	root  bool     // who removes it has root's rights
	top   int      // descriptor of the directory that it lies in
	names []string // what of it is there, the last one first
}

// remove removes one name of an open directory.
func (t *tree) remove(dir int, name string, depth int) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	err := unix.Unlinkat(dir, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return err
	}
	if depth >= Deep {
		// A directory that is encrypted and has no key here, or that lies in a subvolume, can be
		// removed but not moved.
		if err := t.moveUp(dir, name); !errors.Is(err, unix.ENOKEY) && !errors.Is(err, unix.EXDEV) {
			return err
		}
	}
	if err := t.clear(dir, name, depth); err != nil {
		return err
	}
	if err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// deepMark is in the names of directories that were moved out of a tree.
const deepMark = "-deep-"

// moveUp puts a directory beside the tree. Its name begins with that of the tree. So after a crash
// whoever looks for the tree finds it, too.
func (t *tree) moveUp(dir int, name string) error {
	of, _, _ := strings.Cut(t.names[0], deepMark)
	to := fmt.Sprintf("%s%s%d", of, deepMark, time.Now().UnixNano())
	if err := unix.Renameat(dir, name, t.top, to); err != nil {
		return err
	}
	t.names = append(t.names, to)
	return errDeep
}

// clear removes what is in a directory. It reads names in parts, and begins again as long as there
// were any, because some file systems leave out what moves meanwhile.
func (t *tree) clear(dir int, name string, depth int) error {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	if t.root {
		// Nobody may go on filling it, also not by a descriptor that is already open.
		if err := errors.Join(unix.Fchown(fd, 0, 0), unix.Fchmod(fd, 0o700)); err != nil {
			return err
		}
	}
	for {
		names, err := file.Readdirnames(1000)
		for _, each := range names {
			if err := t.remove(fd, each, depth+1); err != nil {
				return err
			}
		}
		if len(names) == 0 {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}
