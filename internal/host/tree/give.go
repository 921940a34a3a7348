package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"howdah/internal/system/owner"
)

// ErrHardLink says that a file can also be reached by another name.
var ErrHardLink = errors.New("a file has two names")

// Give gives all of a directory to a user. Nobody else may get there meanwhile.
func Give(dir string, to *owner.User) error {
	if to == nil {
		return nil
	}
	if to.UID <= 0 {
		return fmt.Errorf("give %s to nobody: %w", dir, os.ErrPermission)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // only names were read
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && !info.IsDir() && stat.Nlink > 1 {
			return fmt.Errorf("%s: %w", path, ErrHardLink)
		}
		return root.Lchown(path, to.UID, to.GID)
	})
	if err != nil {
		return fmt.Errorf("give %s to user %s: %w", dir, to.Name, err)
	}
	return nil
}
