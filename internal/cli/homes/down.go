package homes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/endpoint/driver"
	"howdah/internal/host/database"
	"howdah/internal/host/kernelcut"
	"howdah/internal/identity/home"
)

// supervisorTimeout is how long the supervisor may take to end its parts, one after the other.
const supervisorTimeout = 60 * time.Second

func newDown(o *cli.Options) *cobra.Command {
	var purge, sure bool
	cmd := &cobra.Command{
		Use: "down", Short: "Stop everything of a home on this machine, databases too. Data stay unless --purge is given",
		Args: cli.Args(cobra.NoArgs), Example: "  howdah down\n  howdah down --home ~/test --purge",
		Long: "Stops control plane, edge, agents and databases of a home on this machine, and removes what the home put into the " +
			"kernel. With --purge it also deletes the home with all databases in it, and their backups in its directory repository, for good. On a terminal it then asks for the name of " +
			"the directory. Anywhere else it needs --yes, unless the home was made by `howdah up --disposable`.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := home.Open(o.Home)
			if err != nil {
				return err
			}
			if purge && !sure && !h.Disposable {
				question := fmt.Sprintf("This deletes %s with all databases in it. Type that name to go on: ", h.Dir)
				if err := o.Confirm(question, h.Dir); err != nil {
					return err
				}
			}
			if err := down(cmd.Context(), h, purge); err != nil {
				return err
			}
			return o.Print(downView{Home: h.Dir, Purged: purge}, func() error {
				if purge {
					o.Say("Howdah is down, and %s is gone", h.Dir)
					return nil
				}
				o.Say("Howdah is down; its data are kept in %s", h.Dir)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "delete the home with all databases and backups in it")
	cmd.Flags().BoolVar(&sure, "yes", false, "with --purge: do not ask")
	return cmd
}

// downView is what `howdah down` answers as JSON.
type downView struct {
	Home   string `json:"home"`
	Purged bool   `json:"purged"`
}

// down first ends the supervisor and all parts, so that nobody starts anything again. Then it ends
// the databases, and then removes what is left in the kernel. It is idempotent.
func down(ctx context.Context, h *home.Home, purge bool) error {
	if err := endHolder(ctx, filepath.Join(h.Dir, "run", "up.lock"), supervisorTimeout); err != nil {
		return err
	}
	if err := endParts(ctx, h); err != nil {
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
		all.Go(func() { errs[i] = database.StopHost(ctx, h.ID, "zone-"+filepath.Base(dir), dir, purge) })
	}
	all.Wait()
	if err := errors.Join(errors.Join(errs...), removeEndpoints(ctx, h)); err != nil {
		return err
	}
	if err := unmountStorage(ctx, h); err != nil {
		return err
	}
	if purge {
		if err := errors.Join(kernelcut.RemoveHome(ctx, h.ID), removeStorage(h), h.Purge()); err != nil {
			return fmt.Errorf("purge: %w", err)
		}
		return nil
	}
	// Only sockets are in there. Their processes have ended.
	if err := os.RemoveAll(h.RunDir()); err != nil {
		return fmt.Errorf("remove sockets: %w", err)
	}
	return nil
}

func removeEndpoints(ctx context.Context, h *home.Home) error {
	// What the drivers mend on the way is of no interest: all of it is removed.
	cfg := endpoint.Config{Home: h.ID, RunDir: h.RunDir() + "/ep", Log: slog.New(slog.DiscardHandler)}
	if err := driver.Remove(ctx, cfg); err != nil {
		return fmt.Errorf("remove endpoints: %w", err)
	}
	return nil
}
