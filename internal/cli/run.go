package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/internal/admin/client"
)

// Run runs one command line and returns the exit code.
func Run(ctx context.Context, o *Options, root *cobra.Command, words []string) int {
	o.Arguments = words
	root.SetArgs(words)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return CodeInterrupted
	}
	fmt.Fprintln(o.Screen.Stderr, "howdah: "+o.advise(cmd, err))
	return exitCode(err)
}

// advise returns an error in one line that ends with what to do next.
func (o *Options) advise(cmd *cobra.Command, err error) string {
	text := OneLine(err)
	if rest, ok := strings.CutSuffix(text, ": "+ErrUsage.Error()); ok {
		return rest + ": see " + cmd.CommandPath() + " --help"
	}
	if client.IsCode(err, rds.ErrInvalidDBInstanceState) || client.IsCode(err, rds.ErrInvalidDBClusterState) {
		return text + " See " + o.Pasteable("howdah db show "+cmd.Flags().Arg(0))
	}
	if !errors.Is(err, client.ErrUnreachable) || o.At == nil {
		return text
	}
	if _, err := os.Stat(o.At.LogFile("up")); err == nil {
		return text + ": databases go on without it; start it: " + o.Pasteable("howdah up --detach")
	}
	return text + ": databases go on without it; start its howdah serve again"
}
