package backups

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

func newSnapshotCreate(o *cli.Options) *cobra.Command {
	var noWait bool
	cmd := &cobra.Command{
		Use: "create DB SNAPSHOT", Short: "Make a snapshot of a database", Args: cli.Args(cobra.ExactArgs(2)), Aliases: []string{"new", "add"},
		ValidArgsFunction: o.CompleteNames,
		Long: "Makes a snapshot, as `aws rds create-db-snapshot` and `create-db-cluster-snapshot` do. It is kept until it is deleted. The database " +
			"goes on meanwhile. Ctrl-C leaves the snapshot being made.",
		Example: "  howdah snapshot create orders before-sale",
		RunE: func(cmd *cobra.Command, names []string) error {
			t, err := o.Find(cmd, names[0])
			if err != nil {
				return err
			}
			name, err := create(cmd.Context(), &t, names[1])
			if err != nil {
				return err
			}
			return finishSnapshot(cmd, o, &t, name, noWait)
		},
	}
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return as soon as it has begun")
	return cmd
}

// create begins a snapshot, and returns its name as RDS writes it.
func create(ctx context.Context, t *cli.Target, name string) (string, error) {
	if t.Cluster != nil {
		var out rds.CreateDBClusterSnapshotResult
		err := t.API.RDS(ctx, "CreateDBClusterSnapshot", &rds.CreateDBClusterSnapshotMessage{DBClusterIdentifier: &t.Name, DBClusterSnapshotIdentifier: &name}, &out)
		if err != nil {
			return "", err
		}
		return cli.Value(out.DBClusterSnapshot.DBClusterSnapshotIdentifier), nil
	}
	var out rds.CreateDBSnapshotResult
	err := t.API.RDS(ctx, "CreateDBSnapshot", &rds.CreateDBSnapshotMessage{DBInstanceIdentifier: &t.Name, DBSnapshotIdentifier: &name}, &out)
	if err != nil {
		return "", err
	}
	return cli.Value(out.DBSnapshot.DBSnapshotIdentifier), nil
}

// finishSnapshot waits for a snapshot, and says what it took.
func finishSnapshot(cmd *cobra.Command, o *cli.Options, t *cli.Target, name string, noWait bool) error {
	all, err := cli.AskAdmin[admin.SnapshotsAnswer](cmd, o, admin.VerbSnapshots, admin.BackupsRequest{Name: t.ResourceID()})
	if err != nil {
		return err
	}
	begun := admin.BackupBegun{Database: t.Name, ResourceID: t.ResourceID()}
	for _, s := range all.Snapshots {
		if s.Name == name {
			begun.Operation = s.Operation
		}
	}
	if begun.Operation == "" {
		return fmt.Errorf("the snapshot %s was deleted meanwhile: see %s", name, o.Pasteable("howdah snapshot list"))
	}
	if noWait {
		return o.Print(begun, func() error {
			o.Say("The snapshot %s of %s is being made: %s", name, t.Name, o.Watch(begun.Operation))
			return nil
		})
	}
	if err := await(cmd, o, begun, "the snapshot "+name); err != nil {
		return err
	}
	s, err := made(cmd, o, begun, name)
	if err != nil {
		return err
	}
	return o.Print(s, func() error {
		o.Say("%s has the data of %s of %s: it added %s to repository %s", s.Name, s.Database, at(s.Taken), screen.Bytes(s.Stored), s.Repository)
		return nil
	})
}

func newSnapshotDelete(o *cli.Options) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete SNAPSHOT", Short: "Delete a snapshot that a user made", Args: cli.OneName, Aliases: []string{"rm", "remove"},
		ValidArgsFunction: completeSnapshots(o),
		Long: "Deletes a snapshot, for good. What its files shared with other backups stays for those. A copy that is still being made is given up. " +
			"On a terminal it asks for the name again; anywhere else it needs --yes.",
		Example: "  howdah snapshot delete before-sale\n  howdah snapshot delete cluster/before-sale --yes",
		RunE:    func(cmd *cobra.Command, names []string) error { return runSnapshotDelete(cmd, o, names[0], yes) },
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func runSnapshotDelete(cmd *cobra.Command, o *cli.Options, name string, yes bool) error {
	api, err := o.API(cmd)
	if err != nil {
		return err
	}
	kind, name, err := kindOf(cmd.Context(), api, name)
	if err != nil {
		return err
	}
	if !yes {
		if err := o.Confirm(fmt.Sprintf("This deletes the snapshot %s, and nobody can restore it any more. Type its name to go on: ", name), name); err != nil {
			return err
		}
	}
	if kind == admin.KindCluster {
		err = api.RDS(cmd.Context(), "DeleteDBClusterSnapshot", &rds.DeleteDBClusterSnapshotMessage{DBClusterSnapshotIdentifier: &name}, &rds.DeleteDBClusterSnapshotResult{})
	} else {
		err = api.RDS(cmd.Context(), "DeleteDBSnapshot", &rds.DeleteDBSnapshotMessage{DBSnapshotIdentifier: &name}, &rds.DeleteDBSnapshotResult{})
	}
	if err != nil {
		return err
	}
	return o.Print(map[string]string{"name": name, "kind": kind, "state": "deleted"}, func() error { o.Say("%s is deleted", name); return nil })
}

// kindOf returns the kind of the caller's snapshot of a name, and the name without a kind before it.
func kindOf(ctx context.Context, api *client.Client, text string) (kind, name string, err error) {
	kind, name = splitKind(text)
	if kind != admin.KindCluster {
		var out rds.DBSnapshotMessage
		err := api.RDS(ctx, "DescribeDBSnapshots", &rds.DescribeDBSnapshotsMessage{DBSnapshotIdentifier: &name}, &out)
		if err == nil {
			return admin.KindInstance, name, nil
		}
		if !client.IsCode(err, rds.ErrDBSnapshotNotFound) {
			return "", name, err
		}
	}
	if kind != admin.KindInstance {
		var out rds.DBClusterSnapshotMessage
		err := api.RDS(ctx, "DescribeDBClusterSnapshots", &rds.DescribeDBClusterSnapshotsMessage{DBClusterSnapshotIdentifier: &name}, &out)
		if err == nil || !client.IsCode(err, rds.ErrDBClusterSnapshotNotFound) {
			return admin.KindCluster, name, err
		}
	}
	return "", name, fmt.Errorf("there is no snapshot %q: see howdah snapshot list", name)
}
