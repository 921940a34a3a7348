package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/agent"
	"howdah/internal/endpoint"
	"howdah/internal/endpoint/driver"
	"howdah/internal/home"
	"howdah/internal/proc"
)

// supervisorTimeout is how long the supervisor and its parts get to end.
const supervisorTimeout = 60 * time.Second

func newDown(o *options) *cobra.Command {
	var purge bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop everything of a home on this machine, databases too; data stay unless --purge",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := home.Open(o.home)
			if err != nil {
				return err
			}
			return down(cmd.Context(), h, purge)
		},
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "delete the home with all databases in it")
	return cmd
}

// down ends the supervisor with its parts first, so that nobody starts anything
// again, then the databases, then what is left in the kernel.
func down(ctx context.Context, h *home.Home, purge bool) error {
	if err := stopSupervisor(ctx, h); err != nil {
		return err
	}
	hosts, err := filepath.Glob(filepath.Join(h.DataRoot, "*", "proc"))
	if err != nil {
		return fmt.Errorf("find hosts: %w", err)
	}
	errs := make([]error, len(hosts))
	var all sync.WaitGroup
	for i, dir := range hosts {
		dir = filepath.Dir(dir)
		all.Go(func() { errs[i] = agent.StopHost(ctx, h.ID, "zone-"+filepath.Base(dir), dir, purge) })
	}
	all.Wait()
	errs = append(errs, removeEndpoints(ctx, h))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if !purge {
		fmt.Println("Howdah is down; its data are kept in", h.Dir)
		return nil
	}
	if err := h.Purge(); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	fmt.Println("Howdah is down, and", h.Dir, "is gone")
	return nil
}

func stopSupervisor(ctx context.Context, h *home.Home) error {
	pid := h.Holder("up")
	if pid == 0 {
		return nil
	}
	process, err := proc.Find(pid)
	if err != nil {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop the supervisor: %w", err)
	}
	deadline := time.Now().Add(supervisorTimeout)
	for h.Holder("up") == process.PID {
		if time.Now().After(deadline) {
			return fmt.Errorf("the supervisor (process %d) does not end: see %s", pid, h.LogFile("up"))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func removeEndpoints(ctx context.Context, h *home.Home) error {
	forwarder, _, err := driver.Open(ctx, endpoint.Config{Home: h.ID, RunDir: h.RunDir() + "/ep", Log: newLog("down")})
	if err != nil {
		return fmt.Errorf("open endpoints: %w", err)
	}
	return forwarder.Remove(ctx)
}
