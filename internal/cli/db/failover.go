package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
	"howdah/internal/failover/postmortem"
)

// postmortemPatience is how long the command waits for the record of a failover. The record is
// complete a little after the database serves again, and later on a busy machine.
const postmortemPatience = 30 * time.Second

func newDBFailover(o *cli.Options) *cobra.Command {
	var destination string
	var noWait bool
	cmd := &cobra.Command{
		Use: "failover NAME", Short: "Give the primary role to a standby, in good order", Args: cli.OneName,
		Aliases: []string{"switchover"}, ValidArgsFunction: o.CompleteNames,
		Long: "Gives the primary role of a Multi-AZ instance or of a cluster to a standby that is in sync: clients are cut off and " +
			"can write again within about a second, and nothing is lost.",
		Example: "  howdah db failover orders\n  howdah db failover shop --target shop-2",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			t, err := o.Find(cmd, args[0])
			if err != nil {
				return err
			}
			began, before := o.Now(), primary(ctx, &t)
			if err := failover(ctx, &t, cli.Given(cmd, "target", destination)); err != nil {
				return err
			}
			return finish(ctx, o, &t, !noWait, "available", func() error { return sayFailover(ctx, o, &t, before, began) })
		},
	}
	cmd.Flags().StringVar(&destination, "target", "", "of a cluster: the instance that shall be the writer")
	cli.Complete(cmd, "target", o.CompleteTargets)
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return as soon as the request is accepted")
	return cmd
}

func failover(ctx context.Context, t *cli.Target, destination *string) error {
	if t.Cluster != nil {
		return t.API.RDS(ctx, "FailoverDBCluster", &rds.FailoverDBClusterMessage{
			DBClusterIdentifier: &t.Name, TargetDBInstanceIdentifier: destination,
		}, &rds.FailoverDBClusterResult{})
	}
	if destination != nil {
		return fmt.Errorf("--target is for clusters: %s is an instance, with one standby: %w", t.Name, cli.ErrUsage)
	}
	force := true
	return t.API.RDS(ctx, "RebootDBInstance", &rds.RebootDBInstanceMessage{
		DBInstanceIdentifier: &t.Name, ForceFailover: &force,
	}, &rds.RebootDBInstanceResult{})
}

// primary returns the host of the primary, or "" if nobody knows it.
func primary(ctx context.Context, t *cli.Target) string {
	d, _, err := t.Truth(ctx)
	if err != nil || d == nil {
		return ""
	}
	for _, m := range d.Members {
		if m.Role == admin.RolePrimary {
			return m.Host
		}
	}
	return ""
}

var errNoFailover = errors.New("the failover did not take place")

// sayFailover tells how a failover went, by its post-mortem. It returns an error if there was no
// failover. before is the host of the primary when the failover was asked for.
func sayFailover(ctx context.Context, o *cli.Options, t *cli.Target, before string, began time.Time) error {
	if d, _, err := t.Truth(ctx); err == nil && d != nil && d.Abandoned != "" {
		return fmt.Errorf("%w: %s; %s is still the primary of %s: howdah status", errNoFailover, d.Abandoned, primary(ctx, t), t.Name)
	}
	limited, cancel := context.WithTimeout(ctx, postmortemPatience)
	defer cancel()
	var last postmortem.Record
	err := o.Poll(limited, "the post-mortem", func() (bool, error) {
		records, err := failovers(limited, t.API, t.ResourceID(), 1)
		if err == nil && len(records) > 0 {
			last = records[0]
		}
		return !last.FirstWrite.IsZero() && last.Recorded.After(began), err
	})
	now := primary(ctx, t)
	switch {
	case err == nil:
		o.Say("%s: %s -> %s, writes again after %s", t.Name, last.FromHost, last.ToHost, screen.Span(last.Outage()))
	case before == "" || now == "":
		return fmt.Errorf("%s is available, and nobody can say whether the failover took place: howdah failovers %s", t.Name, t.Name)
	case before == now:
		return fmt.Errorf("%w: %s is still the primary of %s: howdah events, howdah status", errNoFailover, now, t.Name)
	default:
		o.Say("%s: %s -> %s; the post-mortem is not complete yet: howdah failovers %s", t.Name, before, now, t.Name)
	}
	return nil
}
