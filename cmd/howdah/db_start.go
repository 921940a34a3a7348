package main

import (
	"context"

	"github.com/spf13/cobra"

	"howdah/api/rds"
)

// deed returns a command that does one thing to an instance or a cluster, and then waits for a
// status.
func deed(o *options, cmd cobra.Command, status string, do func(context.Context, *target) error) *cobra.Command {
	var noWait bool
	cmd.Args, cmd.ValidArgsFunction = oneName, o.completeNames
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		t, err := o.find(cmd, args[0])
		if err != nil {
			return err
		}
		if err := do(ctx, &t); err != nil {
			return err
		}
		return o.finish(ctx, &t, !noWait, status, func() error { o.say("%s is %s", t.name, t.status()); return nil })
	}
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return as soon as the request is accepted")
	return &cmd
}

func newDBStart(o *options) *cobra.Command {
	return deed(o, cobra.Command{
		Use: "start NAME", Short: "Start a database that is stopped", Example: "  howdah db start orders",
	}, "available", func(ctx context.Context, t *target) error {
		if t.cluster != nil {
			return t.api.RDS(ctx, "StartDBCluster", &rds.StartDBClusterMessage{DBClusterIdentifier: &t.name}, &rds.StartDBClusterResult{})
		}
		return t.api.RDS(ctx, "StartDBInstance", &rds.StartDBInstanceMessage{DBInstanceIdentifier: &t.name}, &rds.StartDBInstanceResult{})
	})
}

func newDBStop(o *options) *cobra.Command {
	return deed(o, cobra.Command{
		Use: "stop NAME", Short: "Stop a database; its data stay", Example: "  howdah db stop orders",
	}, "stopped", func(ctx context.Context, t *target) error {
		if t.cluster != nil {
			return t.api.RDS(ctx, "StopDBCluster", &rds.StopDBClusterMessage{DBClusterIdentifier: &t.name}, &rds.StopDBClusterResult{})
		}
		return t.api.RDS(ctx, "StopDBInstance", &rds.StopDBInstanceMessage{DBInstanceIdentifier: &t.name}, &rds.StopDBInstanceResult{})
	})
}

func newDBPromote(o *options) *cobra.Command {
	return deed(o, cobra.Command{
		Use: "promote NAME", Short: "Make a read replica a database of its own", Example: "  howdah db promote orders-replica",
		Long: "Ends the replication of a read replica, which then takes writes. It cannot be undone.",
	}, "available", func(ctx context.Context, t *target) error {
		return t.api.RDS(ctx, "PromoteReadReplica", &rds.PromoteReadReplicaMessage{DBInstanceIdentifier: &t.name}, &rds.PromoteReadReplicaResult{})
	})
}
