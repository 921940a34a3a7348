package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"howdah/api/rds"
)

func newDBReboot(o *options) *cobra.Command {
	var force, noWait bool
	cmd := &cobra.Command{
		Use: "reboot NAME", Short: "Restart a database", Args: oneName, Aliases: []string{"restart"}, ValidArgsFunction: o.completeNames,
		Example: "  howdah db reboot orders\n  howdah db reboot orders --force-failover",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			t, err := o.find(cmd, args[0])
			if err != nil {
				return err
			}
			began, before := o.now(), ""
			if force {
				before = t.primary(ctx)
			}
			if err := t.reboot(ctx, given(cmd, "force-failover", force)); err != nil {
				return err
			}
			return o.finish(ctx, &t, !noWait, "available", func() error {
				if force {
					return o.sayFailover(ctx, &t, before, began)
				}
				o.say("%s is available again", t.name)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force-failover", false, "of a Multi-AZ instance: let the standby take over instead of restarting the primary")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return as soon as the request is accepted")
	return cmd
}

func (t *target) reboot(ctx context.Context, force *bool) error {
	if t.cluster == nil {
		return t.api.RDS(ctx, "RebootDBInstance", &rds.RebootDBInstanceMessage{
			DBInstanceIdentifier: &t.name, ForceFailover: force,
		}, &rds.RebootDBInstanceResult{})
	}
	if force != nil {
		return fmt.Errorf("--force-failover is for instances: use howdah db failover %s: %w", t.name, errUsage)
	}
	return t.api.RDS(ctx, "RebootDBCluster", &rds.RebootDBClusterMessage{DBClusterIdentifier: &t.name}, &rds.RebootDBClusterResult{})
}
