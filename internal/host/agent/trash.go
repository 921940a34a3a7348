package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"howdah/internal/host/pace"
)

// trashDir has the files of members that were deleted, until somebody has the time.
const trashDir = "trash"

// trash removes what members left.
type trash struct{ agent *Agent }

// EmptyTrash removes what is in the trash now, and what was thrown away within subvolumes.
func (a *Agent) EmptyTrash(ctx context.Context) error { return (&trash{a}).empty(ctx) }

// run deletes what members left, until ctx ends. It may take long; nobody waits for it.
func (t *trash) run(ctx context.Context) error {
	for {
		if err := t.empty(ctx); err != nil && ctx.Err() == nil {
			t.agent.Log.Warn("empty trash", "error", err)
		}
		if !pace.Sleep(ctx, time.Second) {
			return nil
		}
	}
}

func (t *trash) empty(ctx context.Context) error {
	entries, err := os.ReadDir(t.agent.Path(trashDir))
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		dir := t.agent.Path(trashDir, e.Name())
		if id, ok := notedKey(e.Name()); ok {
			errs = append(errs, t.dropKey(dir, id))
			continue
		}
		if id, ok := notedGroup(e.Name()); ok {
			errs = append(errs, t.dropGroup(dir, id))
			continue
		}
		if e.IsDir() {
			errs = append(errs, t.agent.Kind.Release(dir))
		}
		errs = append(errs, t.remove(ctx, dir))
	}
	return errors.Join(append(errs, t.removeThrownOut(ctx))...)
}

// TrashPath is a path in the trash. Whatever is renamed to it is removed, with its key, as soon as
// somebody has the time. Its name has to be one that nothing else has had.
func (a *Agent) TrashPath(name string) string { return a.Path(trashDir, name) }

// ThrowAway puts a path of ours into the trash, if it is there.
func (a *Agent) ThrowAway(path string) error {
	to := a.Path(trashDir, filepath.Base(path)+"-"+strconv.FormatInt(time.Now().UnixNano(), 10))
	if err := os.Rename(path, to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("throw %s away: %w", path, err)
	}
	return nil
}
