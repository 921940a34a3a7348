package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"howdah/internal/host/proc"
)

// Ending ends all members of a host whose agent does not run. All fields are required.
type Ending struct {
	HomeID, Host string
	Dir          string // of the host
	// Stop ends what a member runs. It is called for all members at once; whatever of one's
	// processes is left when it answers nil is killed.
	Stop func(ctx context.Context, procs *proc.Host, group *proc.Group, dir string) error
	// Release is the kind's: see Kind.
	Release func(dir string) error
}

// Run does it. Nothing is left running when it returns nil. It is idempotent.
func (e Ending) Run(ctx context.Context) error {
	procs, err := OpenProcesses(e.HomeID, e.Host, e.Dir)
	if err != nil {
		return fmt.Errorf("open host %s: %w", e.Host, err)
	}
	entries, err := os.ReadDir(filepath.Join(e.Dir, "members"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("find members of %s: %w", e.Host, err)
	}
	errs := make([]error, len(entries))
	var all sync.WaitGroup
	for i, entry := range entries {
		if IsMemberID(entry.Name()) {
			all.Go(func() { errs[i] = e.end(ctx, procs, filepath.Join(e.Dir, "members", entry.Name())) })
		}
	}
	all.Wait()
	errs = append(errs, killRest(ctx, procs))
	e.forgetTrash()
	return errors.Join(errs...)
}

func (e Ending) end(ctx context.Context, procs *proc.Host, dir string) error {
	id := filepath.Base(dir)
	group, err := procs.Group(groupName(id))
	if err != nil {
		return fmt.Errorf("stop %s: %w", id, err)
	}
	if err := e.Stop(ctx, procs, group, dir); err != nil {
		return err
	}
	if _, err := group.Kill(ctx); err != nil {
		return fmt.Errorf("stop %s: %w", id, err)
	}
	_ = e.Release(dir) // what it does not know it leaves: that costs memory, and nothing else
	// One that is busy stays until the host goes down: nothing of ours can wait for it.
	if _, err = lockDir(dir, e.Release); err != nil {
		err = fmt.Errorf("remove the key of %s: %w", id, err)
	}
	return errors.Join(err, group.Remove())
}

// forgetTrash releases what members had that were deleted, and whose files the agent had no
// time to remove: they may be removed by whoever does not know of it.
func (e Ending) forgetTrash() {
	entries, err := os.ReadDir(filepath.Join(e.Dir, trashDir))
	if err != nil {
		return // nothing was deleted yet
	}
	for _, entry := range entries {
		_ = e.Release(filepath.Join(e.Dir, trashDir, entry.Name()))
	}
}

// killRest ends members whose directory is gone already.
func killRest(ctx context.Context, procs *proc.Host) error {
	groups, err := procs.Groups()
	if err != nil {
		return fmt.Errorf("find processes: %w", err)
	}
	for _, name := range groups {
		group, err := procs.Group(name)
		if err != nil {
			return err
		}
		if _, err := group.Kill(ctx); err != nil {
			return fmt.Errorf("stop %s: %w", name, err)
		}
		if err := group.Remove(); err != nil {
			return fmt.Errorf("stop %s: %w", name, err)
		}
	}
	return nil
}
