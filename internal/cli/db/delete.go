package db

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/internal/cli"
)

// deleteFlags are those of `howdah db delete`.
type deleteFlags struct {
	yes, skipSnapshot, noWait bool
	snapshot                  string
}

func newDBDelete(o *cli.Options) *cobra.Command {
	var f deleteFlags
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a DB instance or a DB cluster with all its data", Args: cli.OneName,
		Aliases: []string{"rm", "remove", "drop"}, ValidArgsFunction: o.CompleteNames,
		Long: "Deletes a database and all its data, for good. On a terminal it asks for the name again; anywhere else it needs " +
			"--yes. As in RDS, it takes --skip-final-snapshot or the name of a final snapshot; replicas and instances of a cluster " +
			"need neither.",
		Example: "  howdah db delete orders --skip-final-snapshot\n  howdah db delete orders --skip-final-snapshot --yes",
		RunE:    func(cmd *cobra.Command, args []string) error { return runDBDelete(cmd, o, args[0], &f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.yes, "yes", false, "do not ask")
	flags.BoolVar(&f.skipSnapshot, "skip-final-snapshot", false, "keep no snapshot of the data")
	flags.StringVar(&f.snapshot, "final-snapshot", "", "name of the snapshot to take first")
	flags.BoolVar(&f.noWait, "no-wait", false, "return as soon as the request is accepted")
	return cmd
}

func runDBDelete(cmd *cobra.Command, o *cli.Options, name string, f *deleteFlags) error {
	if err := cli.Exclusive(cmd, "skip-final-snapshot", "final-snapshot"); err != nil {
		return err
	}
	ctx := cmd.Context()
	api, h, err := o.Connect(cmd)
	if err != nil {
		return err
	}
	t, err := cli.Find(ctx, api, name)
	if err != nil {
		return err
	}
	if err := f.check(cmd, &t); err != nil {
		return err
	}
	if !f.yes {
		question := fmt.Sprintf("This deletes the %s %s and all its data. Type its name to go on: ", t.Kind(), t.Name)
		if err := o.Confirm(question, t.Name); err != nil {
			return err
		}
	}
	if err := remove(ctx, &t, f, cli.Given(cmd, "final-snapshot", f.snapshot)); err != nil {
		return err
	}
	if !f.noWait {
		if err := o.WaitFor(ctx, &t, cli.Gone); err != nil {
			return err
		}
		if h != nil {
			if err := prunePasswords(ctx, api, h); err != nil {
				return err
			}
		}
	} else if err := t.Refresh(ctx); err != nil {
		return err
	}
	v := viewOf(&t)
	return o.Print(v, func() error { o.Say("%s is %s", v.Name, v.Status); return nil })
}

// check refuses flags that RDS would refuse, in words of the command line, before anyone is asked
// to confirm.
func (f *deleteFlags) check(cmd *cobra.Command, t *cli.Target) error {
	if err := cli.Exclusive(cmd, "skip-final-snapshot", "final-snapshot"); err != nil {
		return err
	}
	v := viewOf(t)
	if v.Cluster != "" || v.Follows != "" || f.skipSnapshot || f.snapshot != "" {
		return nil
	}
	return fmt.Errorf("the data of %s go for good: give --skip-final-snapshot, or --final-snapshot NAME: %w", t.Name, cli.ErrUsage)
}

func remove(ctx context.Context, t *cli.Target, f *deleteFlags, snapshot *string) error {
	skip := &f.skipSnapshot
	if !f.skipSnapshot {
		skip = nil
	}
	if t.Cluster != nil {
		return t.API.RDS(ctx, "DeleteDBCluster", &rds.DeleteDBClusterMessage{
			DBClusterIdentifier: &t.Name, SkipFinalSnapshot: skip, FinalDBSnapshotIdentifier: snapshot,
		}, &rds.DeleteDBClusterResult{})
	}
	return t.API.RDS(ctx, "DeleteDBInstance", &rds.DeleteDBInstanceMessage{
		DBInstanceIdentifier: &t.Name, SkipFinalSnapshot: skip, FinalDBSnapshotIdentifier: snapshot,
	}, &rds.DeleteDBInstanceResult{})
}
