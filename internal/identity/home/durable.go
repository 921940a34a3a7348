package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// SyncDir makes the names in a directory durable, if its file system can do that.
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
