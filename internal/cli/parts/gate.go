package parts

import (
	"log/slog"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/failover/gate"
)

// newGate returns the command that Patroni runs before it promotes a member.
func newGate(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: gate.Command + " CONFIG", Short: "Let a member be promoted, if that loses nothing", Args: cli.Args(cobra.ExactArgs(1)), Hidden: true,
		Long: "Patroni runs this as its pre_promote, with the path of its own configuration. It exits with 0 if no primary before can " +
			"acknowledge anything any more, and this member has all that was acknowledged.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return gate.PassMember(cmd.Context(), args[0], slog.New(slog.NewTextHandler(o.Screen.Stderr, nil)))
		},
	}
}
