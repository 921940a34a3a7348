package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/cmd/howdah/screen"
	"howdah/internal/postmortem"
)

// postmortemPatience is how long the record of a failover is waited for: it is
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
			api, err := o.api(cmd)
			if err != nil {
				return err
			}
			t, err := find(ctx, api, args[0])
			if err != nil {
				return err
			}
			began := o.now()
			if err := t.failover(ctx, given(cmd, "target", destination)); err != nil {
				return err
			}
			return o.finish(ctx, &t, !noWait, "available", func() { o.sayFailover(ctx, &t, began) })
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

// sayFailover tells how a failover went, by its post-mortem.
func (o *options) sayFailover(ctx context.Context, t *target, began time.Time) {
	ctx, cancel := context.WithTimeout(ctx, postmortemPatience)
	defer cancel()
	var last postmortem.Record
	err := o.poll(ctx, "the post-mortem", func() (bool, error) {
		records, err := failovers(ctx, t.api, t.resourceID(), 1)
		if err == nil && len(records) > 0 {
			last = records[0]
		}
		return !last.FirstWrite.IsZero() && last.Recorded.After(began), err
	})
	if err != nil {
		o.say("%s is available; its post-mortem is not complete yet: howdah failovers %s", t.name, t.name)
		return
	}
	o.say("%s: %s -> %s, writes again after %s", t.name, last.FromHost, last.ToHost, screen.Span(last.Outage()))
}
