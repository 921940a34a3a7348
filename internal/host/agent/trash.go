package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// trashDir has the files of members that were deleted, until somebody has the time.
const trashDir = "trash"

// emptyTrash deletes what members left, until ctx ends. It may take long; nobody waits for it.
func (a *Agent) emptyTrash(ctx context.Context) error {
	for {
		if err := a.emptyTrashOnce(ctx); err != nil && ctx.Err() == nil {
			a.Log.Warn("empty trash", "error", err)
		}
		if !sleep(ctx, time.Second) {
			return nil
		}
	}
}

func (a *Agent) emptyTrashOnce(ctx context.Context) error {
	entries, err := os.ReadDir(a.path(trashDir))
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		dir := a.path(trashDir, e.Name())
		if id, ok := notedKey(e.Name()); ok {
			errs = append(errs, a.dropKey(dir, id))
			continue
		}
		if id, ok := notedGroup(e.Name()); ok {
			errs = append(errs, a.dropGroup(dir, id))
			continue
		}
		if e.IsDir() {
			errs = append(errs, a.Kind.Release(dir))
		}
		errs = append(errs, a.removeThrown(ctx, dir))
	}
	return errors.Join(append(errs, a.removeThrownOut(ctx))...)
}

// throwAway puts a path of ours into the trash, if it is there.
func (a *Agent) throwAway(path string) error {
	to := a.path(trashDir, filepath.Base(path)+"-"+strconv.FormatInt(time.Now().UnixNano(), 10))
	if err := os.Rename(path, to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("throw %s away: %w", path, err)
	}
	return nil
}
