package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/system/owner"
)

// Copied is what CopyLive did.
type Copied struct {
	Files int
	// Shared are the bytes that both files have in common on the disk, until one of them changes.
	// Written are those that were copied.
	Shared, Written int64
}

// Live is a directory that is copied while somebody goes on working in it.
type Live struct {
	// From is the directory, and By whose rights it is read with.
	From string
	By   *owner.User
	// To is made with the rights of As, to whom all that is made belongs. It must not exist, and
	// nobody else may change what is there.
	To string
	As *owner.User
	// Skip leaves out files, and directories with all that is in them, by their path below From. It
	// is called with the rights of By; nil leaves nothing out.
	Skip func(from *os.Root, path string) bool
	// Largest is how large a file may be; 0: of any size.
	Largest int64
	// Progress, if set, is called after each file. An error ends the copy.
	Progress func(Copied) error
}

// deepest is how far below each other directories may lie.
const deepest = 16

var (
	errDeepLive = errors.New("directories lie too far below each other")
	errLarge    = errors.New("a file is larger than it may be")
)

// Odd reports whether a copy failed for something in the source that is neither a file nor a
// directory, or that has two names, or is larger or deeper than it may be. Another try fails, too.
func Odd(err error) bool {
	for _, odd := range []error{errOddFile, ErrHardLink, errDeepLive, errLarge} {
		if errors.Is(err, odd) {
			return true
		}
	}
	return false
}

// CopyLive copies a directory in which somebody goes on working: files may change, shrink, or go
// meanwhile. What the copy of such a file has is anything that the file had meanwhile, so whoever
// uses the copy has to know what to make of it, as PostgreSQL does by its WAL. Where the file system
// can, files share their blocks, and copying takes no room and hardly any time.
//
// Links are refused, unless they are left out, and so is what has two names. A copy that fails or is
// broken off leaves what it has made.
func CopyLive(ctx context.Context, l Live) (Copied, error) {
	c := &live{Live: l}
	err := l.By.Do(func() (err error) {
		c.from, err = os.OpenRoot(l.From)
		return err
	})
	if err != nil {
		return Copied{}, err
	}
	defer c.from.Close() //nolint:errcheck // only names were read
	err = c.dir(ctx, ".", 0)
	return c.done, err
}

// live is a copy under way.
type live struct {
	Live
	from *os.Root
	done Copied
}

// dir copies a directory.
func (c *live) dir(ctx context.Context, name string, depth int) error {
	if depth > deepest {
		return fmt.Errorf("%s: %w", name, errDeepLive)
	}
	var in *os.File
	var mode os.FileMode
	err := c.By.Do(func() (err error) {
		if in, err = c.from.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0); err != nil {
			return err
		}
		info, err := in.Stat()
		if err == nil {
			mode = info.Mode().Perm()
		}
		return err
	})
	if in != nil {
		defer in.Close()
	}
	if name != "." && errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := c.As.Do(func() error { return os.Mkdir(filepath.Join(c.To, name), mode) }); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := in.ReadDir(1000)
		for _, e := range entries {
			if err := c.entry(ctx, path.Join(name, e.Name()), depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || err == nil && len(entries) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// entry copies what has a name, if it is still there.
func (c *live) entry(ctx context.Context, name string, depth int) error {
	var info os.FileInfo
	var skip bool
	err := c.By.Do(func() (err error) {
		if skip = c.Skip != nil && c.Skip(c.from, name); skip {
			return nil
		}
		info, err = c.from.Lstat(name)
		return err
	})
	switch {
	case skip || errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return c.dir(ctx, name, depth+1)
	}
	if err := c.file(name, info.Mode()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	if err := ctx.Err(); err != nil || c.Progress == nil {
		return err
	}
	return c.Progress(c.done)
}

// file copies one file.
func (c *live) file(name string, mode os.FileMode) error {
	if !mode.IsRegular() {
		return errOddFile
	}
	in, err := openLive(c.from, c.By, name)
	if err != nil {
		return err
	}
	defer in.Close()
	n, shared, err := copyTo(in, filepath.Join(c.To, name), c.As, mode.Perm(), c.Largest)
	if err != nil {
		return err
	}
	c.done.Files++
	if shared {
		c.done.Shared += n
	} else {
		c.done.Written += n
	}
	return nil
}

// openLive opens a plain file with one name, with a user's rights.
func openLive(from *os.Root, by *owner.User, name string) (in *os.File, err error) {
	err = by.Do(func() error {
		// A pipe that takes the place of a file must not be waited for.
		if in, err = from.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0); err != nil {
			return err
		}
		info, err := in.Stat()
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		switch {
		case !info.Mode().IsRegular() || !ok:
			return errOddFile
		case stat.Nlink > 1:
			return ErrHardLink
		}
		return nil
	})
	if errors.Is(err, unix.ELOOP) {
		err = errOddFile // it became a link
	}
	if err != nil && in != nil {
		in.Close()
	}
	return in, err
}

// copyTo makes a new file of a user's with the content of an open one, and says how many bytes that
// is. shared: they share their blocks.
func copyTo(in *os.File, target string, as *owner.User, mode os.FileMode, largest int64) (n int64, shared bool, err error) {
	if info, err := in.Stat(); err != nil || largest > 0 && info.Size() > largest {
		return 0, false, errors.Join(err, errLarge)
	}
	var out *os.File
	err = as.Do(func() (err error) {
		out, err = os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, mode)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	n, shared, err = clone(out, in, largest)
	return n, shared, errors.Join(err, out.Close())
}

func clone(out, in *os.File, largest int64) (n int64, shared bool, err error) {
	if err := unix.IoctlFileClone(int(out.Fd()), int(in.Fd())); err == nil {
		info, err := out.Stat()
		if err == nil && largest > 0 && info.Size() > largest {
			err = errLarge
		}
		if err != nil {
			return 0, false, err
		}
		return info.Size(), true, nil
	}
	var from io.Reader = in
	if largest > 0 {
		from = io.LimitReader(in, largest+1)
	}
	n, err = io.Copy(out, from)
	if err == nil && largest > 0 && n > largest {
		err = errLarge
	}
	return n, false, err
}

// CopyFile copies one file of a directory in which somebody goes on working, as CopyLive does. It may
// have largest bytes. target is made with the rights of as, and replaces nothing.
func CopyFile(dir, name string, by *owner.User, target string, as *owner.User, largest int64) (bytes int64, shared bool, err error) {
	var root *os.Root
	err = by.Do(func() (err error) {
		root, err = os.OpenRoot(dir)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	defer root.Close() //nolint:errcheck // only names were read
	in, err := openLive(root, by, name)
	if err != nil {
		return 0, false, fmt.Errorf("copy %s: %w", name, err)
	}
	defer in.Close()
	return copyTo(in, target, as, 0o600, largest)
}

// largestProbe is how large a file may be that is copied to find out whether blocks can be shared.
const largestProbe = 1 << 20

// Shares reports whether a file can share its blocks with files in a directory. Both users may
// reach what is theirs; nothing is left there.
func Shares(dir, name string, by *owner.User, to string, as *owner.User) (bool, error) {
	probe := filepath.Join(to, fmt.Sprintf(".shares-%d", time.Now().UnixNano()))
	_, shared, err := CopyFile(dir, name, by, probe, as, largestProbe)
	gone := as.Do(func() error {
		if err := os.Remove(probe); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	})
	return shared, errors.Join(err, gone)
}
