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
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/cmd/howdah/screen"
	"howdah/internal/admin/client"
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
		go supervise.KeepLog(ctx, path, newLog("log"))
	}
	code := run(ctx, newOptions(screen.Std()), os.Args[1:])
	stop()
	os.Exit(code)
}

// run runs one command line and returns the exit code.
func run(ctx context.Context, o *options, words []string) int {
	o.arguments = words
	root := newRoot(o)
	root.SetArgs(words)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return codeInterrupted
	}
	fmt.Fprintln(o.screen.Stderr, "howdah: "+o.advise(cmd, err))
	return exitCode(err)
}

// advise returns an error in one line that ends with what to do next.
func (o *options) advise(cmd *cobra.Command, err error) string {
	text := oneLine(err)
	if rest, ok := strings.CutSuffix(text, ": "+errUsage.Error()); ok {
		return rest + ": see " + cmd.CommandPath() + " --help"
	}
	if client.IsCode(err, rds.ErrInvalidDBInstanceState) || client.IsCode(err, rds.ErrInvalidDBClusterState) {
		return text + " See " + o.pasteable("howdah db show "+cmd.Flags().Arg(0))
	}
	if !errors.Is(err, client.ErrUnreachable) || o.at == nil {
		return text
	}
	if _, err := os.Stat(o.at.LogFile("up")); err == nil {
		return text + ": databases go on without it; start it: " + o.pasteable("howdah up --detach")
	}
	return text + ": databases go on without it; start its howdah serve again"
}

var (
	// errUsage marks a mistake in the command line.
	errUsage = errors.New("see --help")
	// errWrong ends `howdah status --check` when something is wrong.
	errWrong = errors.New("something is wrong")
)

// codeInterrupted is what shells answer for a program that SIGINT ended.
const codeInterrupted = 130

// exitCode is 2 for a mistake in the command line, 3 for a check that failed, and
// 1 for anything else that went wrong.
func exitCode(err error) int {
	switch {
	case errors.Is(err, errUsage):
		return 2
	case errors.Is(err, errWrong):
		return 3
	}
	return 1
}
