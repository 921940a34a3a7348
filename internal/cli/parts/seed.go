package parts

import (
	"log/slog"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/host/database/seed"
)

// newSeed returns the command that Patroni runs in place of pg_basebackup.
func newSeed(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: seed.Command + " ORDER PG_BASEBACKUP ARGUMENT…", Short: "Make the data of a standby from a backup", Args: cli.Args(cobra.MinimumNArgs(2)),
		Hidden: true, DisableFlagParsing: true,
		Long: "Patroni runs this in place of pg_basebackup. It makes the data of a standby from a backup of its database, as the order says, " +
			"or becomes pg_basebackup if that cannot be done.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return seed.Run(cmd.Context(), args[0], args[1], args[2:], slog.New(slog.NewTextHandler(o.Screen.Stderr, nil)))
		},
	}
}
