package db

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/internal/cli"
)

func newDBReboot(o *cli.Options) *cobra.Command {
	var force, noWait bool
	cmd := &cobra.Command{
		Use: "reboot NAME", Short: "Restart a database", Args: cli.OneName, Aliases: []string{"restart"}, ValidArgsFunction: o.CompleteNames,
		Example: "  howdah db reboot orders\n  howdah db reboot orders --force-failover",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			t, err := o.Find(cmd, args[0])
			if err != nil {
				return err
			}
			began, before := o.Now(), ""
			if force {
				before = primary(ctx, &t)
			}
			if err := reboot(ctx, &t, cli.Given(cmd, "force-failover", force)); err != nil {
				return err
			}
			return finish(ctx, o, &t, !noWait, "available", func() error {
				if force {
					return sayFailover(ctx, o, &t, before, began)
				}
				o.Say("%s is available again", t.Name)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force-failover", false, "of a Multi-AZ instance: let the standby take over instead of restarting the primary")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return as soon as the request is accepted")
	return cmd
}

func reboot(ctx context.Context, t *cli.Target, force *bool) error {
	if t.Cluster == nil {
		return t.API.RDS(ctx, "RebootDBInstance", &rds.RebootDBInstanceMessage{
			DBInstanceIdentifier: &t.Name, ForceFailover: force,
		}, &rds.RebootDBInstanceResult{})
	}
	if force != nil {
		return fmt.Errorf("--force-failover is for instances: use howdah db failover %s: %w", t.Name, cli.ErrUsage)
	}
	return t.API.RDS(ctx, "RebootDBCluster", &rds.RebootDBClusterMessage{DBClusterIdentifier: &t.Name}, &rds.RebootDBClusterResult{})
}
