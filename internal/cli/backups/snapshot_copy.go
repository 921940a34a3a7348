package backups

import (
	"fmt"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

func newSnapshotCopy(o *cli.Options) *cobra.Command {
	var in admin.SnapshotCopyRequest
	var noWait bool
	cmd := &cobra.Command{
		Use: "copy SNAPSHOT NEW", Short: "Copy a snapshot, also into another repository", Args: cli.Args(cobra.ExactArgs(2)),
		ValidArgsFunction: completeSnapshots(o),
		Long: "Makes a copy of a snapshot. Without --repository it is in the repository of the snapshot, as `aws rds copy-db-snapshot` does it: a " +
			"second name for the same files. With another repository all files that the snapshot needs are copied there, and read again with the key " +
			"of that repository; the copy then needs nothing of the first one. The RDS API names no repository: there, a copy into another region goes " +
			"to the repository that was added with --copies. Ctrl-C leaves the copy going on.",
		Example: "  howdah snapshot copy before-sale before-sale-far --repository far\n  howdah snapshot copy before-sale kept --dry-run",
		RunE: func(cmd *cobra.Command, names []string) error {
			in.Snapshot, in.Name = names[0], names[1]
			return runSnapshotCopy(cmd, o, in, noWait)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&in.Repository, "repository", "", "where the copy is to be (default: the repository of the snapshot)")
	flags.BoolVar(&in.DryRun, "dry-run", false, "only say what would be copied")
	flags.BoolVar(&noWait, "no-wait", false, "return as soon as the copy has begun")
	cli.Complete(cmd, "repository", func(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
		return complete(o, anyOf)(cmd, nil, text)
	})
	return cmd
}

func runSnapshotCopy(cmd *cobra.Command, o *cli.Options, in admin.SnapshotCopyRequest, noWait bool) error {
	out, err := cli.AskAdmin[admin.SnapshotCopy](cmd, o, admin.VerbSnapshotCopy, in)
	if err != nil {
		return err
	}
	shot := out.Snapshot
	switch {
	case in.DryRun:
		return o.Print(out, func() error {
			o.Say("would copy %s to %s in repository %s: %s", out.From, shot.Name, shot.Repository, copiedText(out))
			return nil
		})
	case shot.State == "available":
		return o.Print(out, func() error {
			o.Say("%s is a copy of %s in repository %s: %s", shot.Name, out.From, shot.Repository, copiedText(out))
			return nil
		})
	}
	begun := admin.BackupBegun{Operation: shot.Operation, Database: shot.Database, ResourceID: shot.ResourceID}
	if noWait {
		return o.Print(out, func() error {
			o.Say("%s is being copied to %s in repository %s: %s", out.From, shot.Name, shot.Repository, o.Watch(begun.Operation))
			return nil
		})
	}
	if err := await(cmd, o, begun, "the copy of "+out.From); err != nil {
		return err
	}
	made, err := made(cmd, o, begun, shot.Name)
	if err != nil {
		return err
	}
	return o.Print(made, func() error {
		o.Say("%s is a copy of %s in repository %s: %s", made.Name, out.From, made.Repository, screen.Bytes(made.Stored))
		return nil
	})
}

// copiedText says how much is copied.
func copiedText(c admin.SnapshotCopy) string {
	switch {
	case c.Bytes > 0:
		return "about " + screen.Bytes(c.Bytes) + " are copied"
	case c.Snapshot.Repository == c.FromRepository:
		return "a second name for the same files"
	}
	return "the data are there already, and nothing is copied"
}

// made returns the snapshot that an operation has made.
func made(cmd *cobra.Command, o *cli.Options, begun admin.BackupBegun, name string) (admin.Snapshot, error) {
	all, err := cli.AskAdmin[admin.SnapshotsAnswer](cmd, o, admin.VerbSnapshots, admin.BackupsRequest{Name: begun.ResourceID})
	if err != nil {
		return admin.Snapshot{}, err
	}
	for _, s := range all.Snapshots {
		if s.Name == name && s.Operation == begun.Operation {
			return s, nil
		}
	}
	return admin.Snapshot{}, fmt.Errorf("the snapshot %s was deleted meanwhile: see %s", name, o.Pasteable("howdah snapshot list"))
}
