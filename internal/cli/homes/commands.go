// Package homes has the commands about a home: its parts on this machine, its keys and its state.
package homes

import (
	"github.com/spf13/cobra"

	"howdah/internal/cli"
)

// Commands returns the commands about a home: its parts on this machine, its keys and its state.
func Commands(o *cli.Options) []*cobra.Command {
	return []*cobra.Command{newUp(o), newDown(o), newEnv(o), newHome(o), newKey(o), newRole(o), newCA(o), newEtcd(o), newAudit(o), newAdmin(o)}
}
