// Howdah gives you your own Amazon RDS and Aurora for PostgreSQL on your own
// machines. This is its one program: the control plane, the agents, the edge, and
// the command line.
package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/cli/backups"
	"howdah/internal/cli/db"
	"howdah/internal/cli/homes"
	"howdah/internal/cli/hosts"
	"howdah/internal/cli/lab"
	"howdah/internal/cli/parts"
	"howdah/internal/cli/screen"
	"howdah/internal/host/supervise"
)

// version is set when the program is built.
var version = "dev"

// main runs one command. SIGINT and SIGTERM end its context, and commands then return in good
// order.
func main() {
	// Every private file has a mode of its own. The user that PostgreSQL runs as has to get through
	// all other directories, also if the umask hides what is new.
	syscall.Umask(0o022)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	if path := supervise.OwnLog(); path != "" {
		go supervise.KeepLog(ctx, path, cli.NewLog("log"))
	}
	code := run(ctx, newOptions(screen.Std()), os.Args[1:])
	stop()
	os.Exit(code)
}

// newOptions returns the options of a command line that is run for a person.
func newOptions(s *screen.Screen) *cli.Options { return cli.NewOptions(s, version) }

// newRoot returns the command that holds all others.
func newRoot(o *cli.Options) *cobra.Command {
	return cli.Root(o, commands(o)...)
}

// commands returns the commands of every kind.
func commands(o *cli.Options) []*cobra.Command {
	return slices.Concat(
		db.Commands(o), backups.Commands(o), lab.Commands(o), hosts.Commands(o), homes.Commands(o), parts.Commands(o), []*cobra.Command{newVersion(o), newDocs(), newAPIDocs(), newExtensionDocs(), newExtensionList()},
	)
}

// run runs one command line and returns the exit code.
func run(ctx context.Context, o *cli.Options, words []string) int {
	return cli.Run(ctx, o, newRoot(o), words)
}
