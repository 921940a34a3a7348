package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/kernelcut"
	"howdah/internal/host/proc"
	"howdah/internal/model/patroni"
)

// databaseTimeout is how long a database may take to stop in good order.
const databaseTimeout = 60 * time.Second

// StopHost stops all databases of a host whose agent does not run: in good order,
// or at once when kill is set, because their data are to be deleted anyway. Nothing
// is left running, nor in the kernel, when it returns nil. It is idempotent.
func StopHost(ctx context.Context, homeID, host, dir string, kill bool) error {
	procs, err := OpenProcesses(homeID, host, dir)
	if err != nil {
		return fmt.Errorf("open host %s: %w", host, err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "members"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("find members of %s: %w", host, err)
	}
	errs := make([]error, len(entries))
	var all sync.WaitGroup
	for i, e := range entries {
		if memberIDForm.MatchString(e.Name()) {
			all.Go(func() { errs[i] = stopMember(ctx, procs, filepath.Join(dir, "members", e.Name()), kill) })
		}
	}
	all.Wait()
	errs = append(errs, killRest(ctx, procs))
	forgetTrash(filepath.Join(dir, trashDir))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	// Nothing runs any more that a cut would have to hold.
	return kernelcut.RemoveHost(ctx, homeID, host)
}

// stopMember ends Patroni at once, so that it calls no election for a database
// that is only being stopped, and PostgreSQL in good order.
func stopMember(ctx context.Context, procs *proc.Host, dir string, kill bool) error {
	id := filepath.Base(dir)
	group, err := procs.Group(groupName(id))
	if err != nil {
		return fmt.Errorf("stop %s: %w", id, err)
	}
	if leader, err := group.Leader(); err == nil {
		if err := procs.Signal(leader, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
			return fmt.Errorf("stop Patroni of %s: %w", id, err)
		}
	}
	if !kill {
		if err := stopServer(ctx, procs, group, filepath.Join(dir, patroni.DataDir)); err != nil {
			return fmt.Errorf("stop PostgreSQL of %s: %w", id, err)
		}
	}
	if _, err := group.Kill(ctx); err != nil {
		return fmt.Errorf("stop %s: %w", id, err)
	}
	// What it does not know it leaves: that costs memory, and nothing else.
	_ = postgres.RemoveShared(filepath.Join(dir, patroni.DataDir))
	// One that is busy stays until the host goes down: nothing of ours can wait for it.
	if _, err = lockDir(dir, releaseShared); err != nil {
		err = fmt.Errorf("remove the key of %s: %w", id, err)
	}
	return errors.Join(err, group.Remove())
}

// forgetTrash frees the shared memory of members that were deleted, and whose files the
// agent had no time to remove: they may be removed by whoever does not know of it.
func forgetTrash(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // nothing was deleted yet
	}
	for _, e := range entries {
		_ = postgres.RemoveShared(filepath.Join(dir, e.Name(), patroni.DataDir))
	}
}

// stopServer asks a server for a fast shutdown and waits for its end; one that
// does not end in time is left to be killed.
func stopServer(ctx context.Context, procs *proc.Host, group *proc.Group, dataDir string) error {
	pid, err := postgres.Postmaster(dataDir)
	if err != nil || pid == 0 {
		return err
	}
	postmaster, err := procs.Find(pid)
	if errors.Is(err, proc.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	if own, err := inGroup(group, postmaster); err != nil || !own {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	exit, err := procs.Watch(ctx, postmaster)
	if err != nil {
		return err
	}
	if err := procs.Signal(postmaster, syscall.SIGINT); err != nil && !errors.Is(err, proc.ErrGone) {
		return err
	}
	select {
	case <-exit:
	case <-ctx.Done():
	}
	return nil
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
