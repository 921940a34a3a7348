package backups

import (
	"fmt"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
)

func newDefault(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "default NAME", Short: "Back new databases up to this repository", Args: cli.OneName,
		ValidArgsFunction: complete(o, func(r admin.Repository) bool { return !r.Default }), Example: "  howdah repository default main",
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := cli.AskAdmin[admin.Repository](cmd, o, admin.VerbRepositoryDefault, admin.RepositoryRequest{Name: args[0]})
			if err != nil {
				return err
			}
			return o.Print(out, func() error { o.Say("%s is the default repository", out.Name); return nil })
		},
	}
}

func newRemove(o *cli.Options) *cobra.Command {
	var in admin.RepositoryRemoveRequest
	var sure bool
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Forget a repository that nothing needs any more", Args: cli.OneName, Aliases: []string{"rm"},
		ValidArgsFunction: complete(o, anyOf), Example: "  howdah repository remove old\n  howdah repository remove old --delete-files",
		Long: "Forgets a repository. It is refused as long as a database, a backup or a snapshot needs it. The files stay, and --adopt takes " +
			"them again, with the key; --delete-files deletes them all.",
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Name = args[0]
			if in.DeleteFiles && !in.DryRun && !sure {
				question := fmt.Sprintf("Everything in the repository %s will be deleted, and cannot be brought back. Type its name to go on: ", in.Name)
				if err := o.Confirm(question, in.Name); err != nil {
					return err
				}
			}
			out, err := cli.AskAdmin[admin.RepositoryRemoveAnswer](cmd, o, admin.VerbRepositoryRemove, in)
			if err != nil {
				return err
			}
			return o.Print(out, func() error {
				switch {
				case in.DryRun:
					o.Say("%s can be removed", in.Name)
				case in.DeleteFiles:
					o.Say("%s is removed, and %d files in it are deleted", in.Name, out.Objects)
				default:
					o.Say("%s is removed; its files stay at %s", in.Name, where(out.Repository))
				}
				return nil
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&in.DeleteFiles, "delete-files", false, "delete everything in it, too")
	flags.BoolVar(&in.DryRun, "dry-run", false, "only look whether that would work")
	flags.BoolVar(&sure, "yes", false, "with --delete-files: do not ask")
	return cmd
}
