package backups

import (
	"fmt"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/identity/repository"
)

func newKeyExport(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "export NAME", Short: "Print the key of a repository, to be kept elsewhere", Args: cli.OneName,
		ValidArgsFunction: complete(o, func(r admin.Repository) bool { return r.Encrypted }),
		Long: "Prints the key of a repository as a few lines of text, for a vault or for paper. Whoever has it and the repository can read " +
			"all backups in it. `howdah repository add --adopt --key-file` opens the repository with it in another home.",
		Example: "  howdah repository key export default > key.txt",
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := cli.AskAdmin[admin.RepositoryKeyAnswer](cmd, o, admin.VerbRepositoryKeyExport, admin.RepositoryRequest{Name: args[0]})
			if err != nil {
				return err
			}
			fmt.Fprintln(o.Screen.Stderr, "This key opens all backups in the repository "+out.Name+". Keep it away from the home and from the repository.")
			return o.Print(out, func() error { fmt.Fprint(o.Screen.Stdout, out.Text); return nil })
		},
	}
}

func newKeyImport(o *cli.Options) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "import NAME", Short: "Give a repository its key again, as it was exported", Args: cli.OneName, ValidArgsFunction: complete(o, anyOf),
		Long: "Gives a repository of this home its key again, from a file or from standard input. It is needed if the home cannot open the key " +
			"that it has. The key must be that of this very repository.",
		Example: "  howdah repository key import default --key-file key.txt",
		RunE: func(cmd *cobra.Command, args []string) error {
			in := admin.RepositoryKeyRequest{Name: args[0]}
			var err error
			if file != "" {
				in.KeySecret, err = cli.ReadFile(file, "key")
			} else {
				in.KeySecret, err = cli.ReadAll(o.Screen.Stdin, "key")
			}
			if err != nil {
				return err
			}
			out, err := cli.AskAdmin[admin.Repository](cmd, o, admin.VerbRepositoryKeyImport, in)
			if err != nil {
				return err
			}
			return o.Print(out, func() error { o.Say("%s has its key", out.Name); return nil })
		},
	}
	cmd.Flags().StringVar(&file, "key-file", "", "file with the key (default: standard input)")
	cli.CompleteFiles(cmd, "key-file")
	return cmd
}

func newKeyPassphrase(o *cli.Options) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "passphrase DATABASE", Short: "Print what opens the backups of one database, for pgBackRest alone", Args: cli.OneName,
		Long: "Prints the passphrase (repo1-cipher-pass of pgBackRest) of a database's backups, by the exported key of the repository and the " +
			"database's resource id, which is also the name of its directory in the repository and of its stanza. It needs no home, so that " +
			"nobody depends on Howdah to read backups.",
		Example: "  howdah repository key passphrase db-ABCDEFGHIJKL --key-file key.txt",
		RunE: func(_ *cobra.Command, args []string) error {
			if file == "" {
				return fmt.Errorf("give the exported key with --key-file: %w", cli.ErrUsage)
			}
			text, err := cli.ReadFile(file, "key")
			if err != nil {
				return err
			}
			key, err := repository.Parse(text)
			if err != nil {
				return fmt.Errorf("read the key in %s: %w", file, err)
			}
			fmt.Fprintln(o.Screen.Stdout, repository.Passphrase(key.Key, args[0]))
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "key-file", "", "file with the key, as `howdah repository key export` prints it")
	cli.CompleteFiles(cmd, "key-file")
	return cmd
}
