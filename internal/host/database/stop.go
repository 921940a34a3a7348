package database

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
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
	err := agent.Ending{
		HomeID: homeID, Host: host, Dir: dir, Release: releaseShared,
		Stop: func(ctx context.Context, procs *proc.Host, group *proc.Group, dir string) error {
			return stopMember(ctx, procs, group, dir, kill)
		},
	}.Run(ctx)
	if err != nil {
		return err
	}
	// Nothing runs any more that a cut would have to hold.
	return kernelcut.RemoveHost(ctx, homeID, host)
}

// stopMember ends Patroni at once, so that it calls no election for a database
// that is only being stopped, and PostgreSQL in good order.
func stopMember(ctx context.Context, procs *proc.Host, group *proc.Group, dir string, kill bool) error {
	id := filepath.Base(dir)
	if leader, err := group.Leader(); err == nil {
		if err := procs.Signal(leader, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
			return fmt.Errorf("stop Patroni of %s: %w", id, err)
		}
	}
	if kill {
		return nil
	}
	if err := stopServer(ctx, procs, group, filepath.Join(dir, patroni.DataDir)); err != nil {
		return fmt.Errorf("stop PostgreSQL of %s: %w", id, err)
	}
	return nil
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
	if own, err := group.Has(postmaster); err != nil || !own {
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
