package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/cmd/howdah/screen"
	"howdah/internal/admin"
	"howdah/internal/failover/postmortem"
)

// postmortemPatience is how long the command waits for the record of a failover. The record is
// complete a little after the database serves again, and later on a busy machine.
const postmortemPatience = 30 * time.Second

func newDBFailover(o *options) *cobra.Command {
	var destination string
	var noWait bool
	cmd := &cobra.Command{
		Use: "failover NAME", Short: "Give the primary role to a standby, in good order", Args: oneName,
		Aliases: []string{"switchover"}, ValidArgsFunction: o.completeNames,
		Long: "Gives the primary role of a Multi-AZ instance or of a cluster to a standby that is in sync: clients are cut off and " +
			"can write again within about a second, and nothing is lost.",
		Example: "  howdah db failover orders\n  howdah db failover shop --target shop-2",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			t, err := o.find(cmd, args[0])
			if err != nil {
				return err
			}
			began, before := o.now(), t.primary(ctx)
			if err := t.failover(ctx, given(cmd, "target", destination)); err != nil {
				return err
			}
			return o.finish(ctx, &t, !noWait, "available", func() error { return o.sayFailover(ctx, &t, before, began) })
		},
	}
	cmd.Flags().StringVar(&destination, "target", "", "of a cluster: the instance that shall be the writer")
	complete(cmd, "target", o.completeTargets)
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return as soon as the request is accepted")
	return cmd
}

func (t *target) failover(ctx context.Context, destination *string) error {
	if t.cluster != nil {
		return t.api.RDS(ctx, "FailoverDBCluster", &rds.FailoverDBClusterMessage{
			DBClusterIdentifier: &t.name, TargetDBInstanceIdentifier: destination,
		}, &rds.FailoverDBClusterResult{})
	}
	if destination != nil {
		return fmt.Errorf("--target is for clusters: %s is an instance, with one standby: %w", t.name, errUsage)
	}
	force := true
	return t.api.RDS(ctx, "RebootDBInstance", &rds.RebootDBInstanceMessage{
		DBInstanceIdentifier: &t.name, ForceFailover: &force,
	}, &rds.RebootDBInstanceResult{})
}

// primary returns the host of the primary, or "" if nobody knows it.
func (t *target) primary(ctx context.Context) string {
	d, _, err := t.truth(ctx)
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
func (o *options) sayFailover(ctx context.Context, t *target, before string, began time.Time) error {
	if d, _, err := t.truth(ctx); err == nil && d != nil && d.Abandoned != "" {
		return fmt.Errorf("%w: %s; %s is still the primary of %s: howdah status", errNoFailover, d.Abandoned, t.primary(ctx), t.name)
	}
	limited, cancel := context.WithTimeout(ctx, postmortemPatience)
	defer cancel()
	var last postmortem.Record
	err := o.poll(limited, "the post-mortem", func() (bool, error) {
		records, err := failovers(limited, t.api, t.resourceID(), 1)
		if err == nil && len(records) > 0 {
			last = records[0]
		}
		return !last.FirstWrite.IsZero() && last.Recorded.After(began), err
	})
	now := t.primary(ctx)
	switch {
	case err == nil:
		o.say("%s: %s -> %s, writes again after %s", t.name, last.FromHost, last.ToHost, screen.Span(last.Outage()))
	case before == "" || now == "":
		return fmt.Errorf("%s is available, and nobody can say whether the failover took place: howdah failovers %s", t.name, t.name)
	case before == now:
		return fmt.Errorf("%w: %s is still the primary of %s: howdah events, howdah status", errNoFailover, now, t.name)
	default:
		o.say("%s: %s -> %s; the post-mortem is not complete yet: howdah failovers %s", t.name, before, now, t.name)
	}
	return nil
}
