package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

var errOddFile = errors.New("neither a file nor a directory")

// Copy copies files and directories with their modes, and follows no link. Nobody but the caller
// may change either side.
func Copy(from, to string) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // only names were read
	return CopyRoot(source, to)
}

// CopyRoot is Copy from a directory that somebody with the right to do so has opened, to where the
// caller may write.
func CopyRoot(source *os.Root, to string) error {
	return fs.WalkDir(source.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, path)
		switch stat, ok := info.Sys().(*syscall.Stat_t); {
		case info.IsDir():
			return os.Mkdir(target, info.Mode().Perm())
		case !info.Mode().IsRegular() || !ok:
			return fmt.Errorf("%s: %w", path, errOddFile)
		case stat.Nlink > 1:
			return fmt.Errorf("%s: %w", path, ErrHardLink)
		default:
			return copyFile(source, path, target, info.Mode().Perm())
		}
	})
}

func copyFile(source *os.Root, path, target string, mode os.FileMode) error {
	in, err := source.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Sync writes the file system of a directory to the disk.
func Sync(dir string) error {
	// Where others may exchange it, it may be a pipe.
	file, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.Syncfs(int(file.Fd())); err != nil {
		return fmt.Errorf("write %s out: %w", dir, err)
	}
	return nil
}
