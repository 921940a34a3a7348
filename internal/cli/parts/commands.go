// Package parts has the commands that are the processes of Howdah.
package parts

import (
	"github.com/spf13/cobra"

	"howdah/internal/cli"
)

// Commands returns the commands that are the parts of Howdah.
func Commands(o *cli.Options) []*cobra.Command {
	return []*cobra.Command{newServe(o), newAgent(o), newEdge(o), newGate(o), newSeed(o)}
}
