package homes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"howdah/internal/cli"
	"howdah/internal/cli/screen"
	"howdah/internal/identity/home"
	"howdah/internal/system/imagefs"
)

// storage is the file system in a file for a home's databases. The zero value is none.
type storage struct {
	file string
	size int64
}

// leastStorage is the least size of such a file system, in bytes: room for a few small databases.
const leastStorage = 1 << 30

var storageForm = regexp.MustCompile(`^(.+):([0-9]{1,6})([MGT])$`)

var unitBytes = map[string]int64{"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

// parseStorage reads --storage.
func parseStorage(text string) (storage, error) {
	if text == "" {
		return storage{}, nil
	}
	parts := storageForm.FindStringSubmatch(text)
	if parts == nil {
		return storage{}, fmt.Errorf("--storage: %q is not FILE:SIZE, such as disk.img:20G: %w", text, cli.ErrUsage)
	}
	number, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || number*unitBytes[parts[3]] < leastStorage {
		return storage{}, fmt.Errorf("--storage: a file system has 1G at least: %w", cli.ErrUsage)
	}
	if os.Geteuid() != 0 {
		return storage{}, fmt.Errorf("--storage: only root mounts file systems: %w", cli.ErrUsage)
	}
	file, err := filepath.Abs(parts[1])
	return storage{file, number * unitBytes[parts[3]]}, err
}

// make makes the file for a home that does not exist yet.
func (s storage) make(ctx context.Context, o *cli.Options) error {
	if s.file == "" {
		return nil
	}
	if _, err := home.Open(o.Home); !errors.Is(err, home.ErrNone) {
		return nil // it has one: see checkUp
	}
	if err := imagefs.Make(ctx, s.file, s.size); err != nil {
		return err
	}
	o.Say("Made a file system of %s in %s. The file takes room as it is written to.", screen.Bytes(s.size), s.file)
	return nil
}

// placeOf says where a home's databases lie.
func placeOf(h *home.Home) string {
	if h.Storage == "" {
		return "in " + h.DataRoot
	}
	return "in the file " + h.Storage
}

// mountStorage mounts the file system of a home's databases, before anything looks for the
// databases.
func mountStorage(ctx context.Context, h *home.Home) error {
	if h.Storage == "" {
		return nil
	}
	return imagefs.Mount(ctx, h.Storage, h.DataRoot)
}

func unmountStorage(ctx context.Context, h *home.Home) error {
	if h.Storage == "" {
		return nil
	}
	return imagefs.Unmount(ctx, h.Storage, h.DataRoot)
}

// removeStorage deletes the file, with all databases in it.
func removeStorage(h *home.Home) error {
	if h.Storage == "" {
		return nil
	}
	if err := os.Remove(h.Storage); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
