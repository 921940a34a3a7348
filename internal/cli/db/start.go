package db

import (
	"context"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/internal/cli"
)

// deed returns a command that does one thing to an instance or a cluster, and then waits for a
// status.
func deed(o *cli.Options, cmd cobra.Command, status string, do func(context.Context, *cli.Target) error) *cobra.Command {
	var noWait bool
	cmd.Args, cmd.ValidArgsFunction = cli.OneName, o.CompleteNames
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		t, err := o.Find(cmd, args[0])
		if err != nil {
			return err
		}
		if err := do(ctx, &t); err != nil {
			return err
		}
		return finish(ctx, o, &t, !noWait, status, func() error { o.Say("%s is %s", t.Name, t.Status()); return nil })
	}
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return as soon as the request is accepted")
	return &cmd
}

func newDBStart(o *cli.Options) *cobra.Command {
	return deed(o, cobra.Command{
		Use: "start NAME", Short: "Start a database that is stopped", Example: "  howdah db start orders",
	}, "available", func(ctx context.Context, t *cli.Target) error {
		if t.Cluster != nil {
			return t.API.RDS(ctx, "StartDBCluster", &rds.StartDBClusterMessage{DBClusterIdentifier: &t.Name}, &rds.StartDBClusterResult{})
		}
		return t.API.RDS(ctx, "StartDBInstance", &rds.StartDBInstanceMessage{DBInstanceIdentifier: &t.Name}, &rds.StartDBInstanceResult{})
	})
}

func newDBStop(o *cli.Options) *cobra.Command {
	return deed(o, cobra.Command{
		Use: "stop NAME", Short: "Stop a database; its data stay", Example: "  howdah db stop orders",
	}, "stopped", func(ctx context.Context, t *cli.Target) error {
		if t.Cluster != nil {
			return t.API.RDS(ctx, "StopDBCluster", &rds.StopDBClusterMessage{DBClusterIdentifier: &t.Name}, &rds.StopDBClusterResult{})
		}
		return t.API.RDS(ctx, "StopDBInstance", &rds.StopDBInstanceMessage{DBInstanceIdentifier: &t.Name}, &rds.StopDBInstanceResult{})
	})
}

func newDBPromote(o *cli.Options) *cobra.Command {
	return deed(o, cobra.Command{
		Use: "promote NAME", Short: "Make a read replica a database of its own", Example: "  howdah db promote orders-replica",
		Long: "Ends the replication of a read replica, which then takes writes. It cannot be undone.",
	}, "available", func(ctx context.Context, t *cli.Target) error {
		return t.API.RDS(ctx, "PromoteReadReplica", &rds.PromoteReadReplicaMessage{DBInstanceIdentifier: &t.Name}, &rds.PromoteReadReplicaResult{})
	})
}
