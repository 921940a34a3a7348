package backups

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

func newBackupNow(o *cli.Options) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use: "now DB", Short: "Make a backup of a database now", Args: cli.OneName, ValidArgsFunction: o.CompleteNames,
		Long: "Makes a backup beside the daily ones. It is kept as long as they are. What is to be kept longer is a snapshot: " +
			"`aws rds create-db-snapshot`.",
		Example: "  howdah backup now orders\n  howdah backup now orders --wait",
		RunE: func(cmd *cobra.Command, names []string) error {
			begun, err := begin(cmd, o, admin.VerbBackupNow, "backup", names[0])
			if err != nil {
				return err
			}
			if !wait {
				return o.Print(begun, func() error {
					o.Say("A backup of %s is being made: %s", begun.Database, o.Watch(begun.Operation))
					return nil
				})
			}
			return finishBackup(cmd, o, begun)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is made")
	return cmd
}

// finishBackup waits for a backup, and says what it took.
func finishBackup(cmd *cobra.Command, o *cli.Options, begun admin.BackupBegun) error {
	if err := await(cmd, o, begun, "the backup of "+begun.Database); err != nil {
		return err
	}
	out, err := cli.AskAdmin[admin.BackupsAnswer](cmd, o, admin.VerbBackups, admin.BackupsRequest{Name: begun.ResourceID})
	if err != nil {
		return err
	}
	for _, b := range out.Backups {
		if b.Operation == begun.Operation {
			return o.Print(b, func() error {
				o.Say("%s is backed up in %s: %s, %s for %s, %s", b.Database, b.Repository, kindText(b.Kind), screen.Bytes(b.Stored), screen.Bytes(b.Size), b.Label)
				return nil
			})
		}
	}
	return fmt.Errorf("the backup of %s was removed meanwhile: see %s", begun.Database, o.Pasteable("howdah backup list "+begun.Database))
}

// begin begins an operation about the backups of a database. The id is chosen here, so that a call
// that is sent again begins nothing more.
func begin(cmd *cobra.Command, o *cli.Options, verb, prefix, name string) (admin.BackupBegun, error) {
	return cli.AskAdmin[admin.BackupBegun](cmd, o, verb, admin.BackupBeginRequest{Name: name, ID: cli.OperationID(prefix, name, o.Now())})
}

// await waits until an operation is done, and shows its steps.
func await(cmd *cobra.Command, o *cli.Options, begun admin.BackupBegun, what string) error {
	return o.Await(cmd, begun.Operation, what, stepText)
}

// awaitUntil is await, but until an operation is as far as it is waited for, or done.
func awaitUntil(cmd *cobra.Command, o *cli.Options, begun admin.BackupBegun, what string, until func(admin.Operation) bool) (admin.Operation, error) {
	return o.AwaitUntil(cmd, begun.Operation, what, stepText, until)
}

// stepText says in words what an operation does.
func stepText(p admin.Operation) string {
	switch p.Step {
	case "":
		return "waiting to begin"
	case "pick":
		return "choosing the backup and a host"
	case "try":
		return tryText(p.Unit)
	case "conclude":
		return "recording what was found"
	case "choose":
		return "choosing where the backup is made"
	case "run":
		return "making the backup"
	case "record":
		return "recording the backup"
	case "site":
		return "choosing the host that copies"
	case "copy":
		return "copying"
	case "show":
		return "recording the copy"
	case "place":
		return "choosing a host"
	case "make":
		return makeText(p.Unit)
	}
	return p.Step
}

// makeText says what a host does that makes a download ready, by what it counts.
func makeText(unit string) string {
	switch {
	case strings.HasSuffix(unit, "dumped"):
		return "dumping"
	case unit == "" || strings.HasPrefix(unit, "bytes of"):
		return tryText(unit)
	}
	return "making it ready to be fetched"
}

// tryText says what a host does, by what it counts.
func tryText(unit string) string {
	switch {
	case unit == "":
		return "asking a host"
	case strings.HasSuffix(unit, " of files"):
		return "restoring files"
	case strings.HasSuffix(unit, " of wal"):
		return "replaying WAL"
	}
	return "looking whether all is there"
}
