package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Copied is what CopyLive did.
type Copied struct {
	Files int
	// Shared are the bytes that both files have in common on the disk, until one of them changes.
	// Written are those that were copied.
	Shared, Written int64
}

// CopyLive copies a directory in which somebody goes on working: files may change, shrink, or go
// meanwhile. What the copy of such a file has is anything that the file had meanwhile, so whoever
// uses the copy has to know what to make of it, as PostgreSQL does by its WAL. Where the file system
// can, files share their blocks, and copying takes no room and hardly any time.
//
// The caller opened source with the right to read it, and may write to to, which must not exist; nobody
// else may change what is there. skip leaves out files, and directories with all that is in them, by
// their path in source; nil leaves nothing out. Links are refused, unless they are left out. A copy
// that fails or is broken off leaves what it has made. progress, if not nil, is called after each file.
func CopyLive(ctx context.Context, source *os.Root, to string, skip func(path string) bool, progress func(Copied)) (Copied, error) {
	c := &live{ctx: ctx, source: source, to: to, skip: skip, progress: progress}
	err := fs.WalkDir(source.FS(), ".", c.visit)
	return c.done, err
}

// live is a copy under way.
type live struct {
	ctx      context.Context
	source   *os.Root
	to       string
	skip     func(string) bool
	progress func(Copied)
	done     Copied
}

func (c *live) visit(name string, d fs.DirEntry, err error) error {
	if left := c.ctx.Err(); left != nil {
		return left
	}
	if name != "." && c.skip != nil && c.skip(name) {
		if d != nil && d.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	if name != "." && errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := d.Info()
	if errors.Is(err, os.ErrNotExist) && name != "." {
		return nil
	}
	if err != nil {
		return err
	}
	target := filepath.Join(c.to, name)
	switch stat, ok := info.Sys().(*syscall.Stat_t); {
	case info.IsDir():
		return os.Mkdir(target, info.Mode().Perm())
	case !info.Mode().IsRegular() || !ok:
		return fmt.Errorf("%s: %w", name, errOddFile)
	case stat.Nlink > 1:
		return fmt.Errorf("%s: %w", name, ErrHardLink)
	}
	if err := c.file(name, target, info.Mode().Perm()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	return nil
}

// file copies one file.
func (c *live) file(name, target string, mode os.FileMode) error {
	// A pipe that takes the place of a file must not be waited for.
	in, err := c.source.OpenFile(path.Clean(name), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, errOddFile)
	}
	out, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	n, shared, err := clone(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	c.done.Files++
	if shared {
		c.done.Shared += n
	} else {
		c.done.Written += n
	}
	if c.progress != nil {
		c.progress(c.done)
	}
	return nil
}

// clone gives a file that is empty the content of another one, and says how many bytes that is. shared:
// they share their blocks.
func clone(out, in *os.File) (n int64, shared bool, err error) {
	if err := unix.IoctlFileClone(int(out.Fd()), int(in.Fd())); err == nil {
		info, err := out.Stat()
		if err != nil {
			return 0, false, err
		}
		return info.Size(), true, nil
	}
	n, err = io.Copy(out, in)
	return n, false, err
}

// Shares reports whether files of one directory can share their blocks with files in another one.
// Both directories exist, and the caller may write to them.
func Shares(one, other string) (bool, error) {
	in, err := os.CreateTemp(one, ".shares-")
	if err != nil {
		return false, err
	}
	defer func() { in.Close(); os.Remove(in.Name()) }()
	out, err := os.CreateTemp(other, ".shares-")
	if err != nil {
		return false, err
	}
	defer func() { out.Close(); os.Remove(out.Name()) }()
	if _, err := in.Write(make([]byte, 64<<10)); err != nil {
		return false, err
	}
	if err := in.Sync(); err != nil {
		return false, err
	}
	return unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil, nil
}
