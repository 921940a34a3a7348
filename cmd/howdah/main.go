// Howdah gives you your own Amazon RDS and Aurora for PostgreSQL on your own
// machines. This is its one program: the control plane, the agents, the edge, and
// the command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"howdah/internal/home"
)

// version is set when the program is built.
var version = "dev"

// main runs one command. SIGINT and SIGTERM end its context; commands return in
// good order then.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "howdah: "+oneLine(err))
		os.Exit(exitCode(err))
	}
}

// options are those of every command.
type options struct {
	home string
}

func newRoot() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:   "howdah",
		Short: "Your own Amazon RDS and Aurora for PostgreSQL, on your own machines",
		// Errors are printed once, in one line, by main.
		SilenceErrors: true, SilenceUsage: true,
		Version: version,
	}
	root.PersistentFlags().StringVar(&o.home, "home", home.DefaultDir(), "directory of the Howdah home")
	root.AddCommand(
		newUp(o), newDown(o), newEnv(o), newServe(o), newAgent(o), newEdge(o),
	)
	return root
}

// errUsage marks a mistake in the command line.
var errUsage = errors.New("see --help")

func exitCode(err error) int {
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}
