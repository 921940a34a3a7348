// Package db has the commands about databases: what is done with them, their logs, their events and
// their failovers.
package db

import (
	"github.com/spf13/cobra"

	"howdah/internal/cli"
)

// Commands returns the commands about databases.
func Commands(o *cli.Options) []*cobra.Command {
	return []*cobra.Command{newDB(o), newFailovers(o), newEvents(o), newLogs(o), newDemo(o)}
}
