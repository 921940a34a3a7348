// Package hosts has the commands about hosts, and those that show what is going on and what is wrong.
package hosts

import (
	"github.com/spf13/cobra"

	"howdah/internal/cli"
)

// Commands returns the commands about hosts and what goes on on them.
func Commands(o *cli.Options) []*cobra.Command {
	return []*cobra.Command{newStatus(o), newHost(o), newOperations(o)}
}
