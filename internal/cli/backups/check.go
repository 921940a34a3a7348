package backups

import (
	"fmt"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
)

func newCheck(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "check NAME", Short: "Write, read, list and delete in a repository, from the control plane and from each host", Args: cli.OneName,
		ValidArgsFunction: complete(o, anyOf), Example: "  howdah repository check default",
		Long: "Does in a repository what backups need. Each host reads what the control plane wrote, and writes an answer: so they are sure " +
			"to see the same place. The exit code is 3 if something does not work.",
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := cli.AskAdmin[admin.RepositoryCheckAnswer](cmd, o, admin.VerbRepositoryCheck, admin.RepositoryRequest{Name: args[0]})
			if err != nil {
				return err
			}
			troubled := 0
			for _, look := range out.Looks {
				if look.Trouble != "" {
					troubled++
				}
			}
			err = o.Print(out, func() error {
				for _, look := range out.Looks {
					sayLook(o, look)
				}
				return nil
			})
			if err == nil && troubled > 0 {
				return fmt.Errorf("%s does not work from %d of %d: %w", out.Name, troubled, len(out.Looks), cli.ErrWrong)
			}
			return err
		},
	}
}

func sayLook(o *cli.Options, look admin.RepositoryCheck) {
	switch {
	case look.Skipped:
		o.Say("%s: not asked, as it is lost", look.From)
	case look.Trouble == "":
		o.Say("%s: works", look.From)
	default:
		o.Say("%s: %s", look.From, look.Trouble)
		if look.Hint != "" {
			o.Say("  %s", look.Hint)
		}
	}
}
