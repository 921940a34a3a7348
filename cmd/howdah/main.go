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

	"howdah/cmd/howdah/screen"
)

// version is set when the program is built.
var version = "dev"

// main runs one command. SIGINT and SIGTERM end its context; commands return in
// good order then.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, newOptions(screen.Std()), os.Args[1:])
	stop()
	os.Exit(code)
}

// run runs one command line and answers the exit code.
func run(ctx context.Context, o *options, words []string) int {
	root := newRoot(o)
	root.SetArgs(words)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(o.screen.Stderr, "howdah: "+oneLine(err))
	return exitCode(err)
}

var (
	// errUsage marks a mistake in the command line.
	errUsage = errors.New("see --help")
	// errWrong ends `howdah status --check` when something is wrong.
	errWrong = errors.New("something is wrong")
)

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
