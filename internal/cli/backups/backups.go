// Package backups has the commands about backups of databases: which there are, and whether they are
// good, snapshots, the repositories that keep them, and the keys that open those.
package backups

import (
	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
)

// Commands returns the commands about backups of databases.
func Commands(o *cli.Options) []*cobra.Command {
	return []*cobra.Command{newBackup(o), newSnapshot(o), newRepository(o)}
}

func newRepository(o *cli.Options) *cobra.Command {
	group := cli.Group("repository", "Say where backups of databases go: directories and buckets of S3 servers",
		"Backups and WAL of databases go to repositories. Each database has a part of its own there, encrypted with a key of its own. "+
			"New databases are backed up to the default repository. `howdah up` makes one in its home; a home of several machines "+
			"has none until one is added that all of them reach.",
		newAdd(o), newList(o), newShow(o), newCheck(o), newDefault(o), newRemove(o),
		cli.Group("key", "Take the key of a repository out, or give it back",
			"What lies in a repository is encrypted with a key that the home keeps. Whoever loses the home loses the backups, unless "+
				"the key was exported, and kept elsewhere.",
			newKeyExport(o), newKeyImport(o), newKeyPassphrase(o)),
	)
	group.Aliases = []string{"repositories", "repo"}
	return group
}

func repositories(cmd *cobra.Command, o *cli.Options) ([]admin.Repository, error) {
	out, err := cli.AskAdmin[admin.RepositoryListAnswer](cmd, o, admin.VerbRepositoryList, admin.Nothing{})
	return out.Repositories, err
}

// complete completes the names of the repositories that may be meant.
func complete(o *cli.Options, may func(admin.Repository) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := repositories(cmd, o)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, r := range all {
			if may(r) {
				names = append(names, r.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func anyOf(admin.Repository) bool { return true }
