package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// replaceFile puts a text in the place of a file in one step, and makes it durable.
func replaceFile(path string, text []byte, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(tmp.Name())
	_, writeErr := tmp.Write(text)
	if err := errors.Join(writeErr, tmp.Chmod(mode), tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// SyncDir makes the names in a directory durable, where its file system can.
func SyncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("make a directory durable: %w", err)
	}
	defer file.Close()
	if err := file.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("make a directory durable: %w", err)
	}
	return nil
}

// SyncTree makes all files below a directory durable, and their names.
func SyncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		return file.Sync()
	})
}
