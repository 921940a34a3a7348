// Package cli is what all commands of the command line share: how a command line runs, what it
// works on, how it waits and what it says. The commands are in the packages below.
package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"howdah/internal/identity/home"
)

// Root returns the command that holds all others.
func Root(o *Options, commands ...*cobra.Command) *cobra.Command {
	root := Group("howdah", "Your own Amazon RDS and Aurora for PostgreSQL, on your own machines",
		"Howdah runs real, highly available PostgreSQL behind the RDS API. `howdah up` starts everything on this machine; "+
			"boto3, the AWS CLI and the AWS SDKs work with it after eval \"$(howdah env)\".",
		commands...,
	)
	// Errors are printed once, in one line, by Run.
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = o.Version
	root.SetVersionTemplate("howdah {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", flagError(err), ErrUsage) })
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return o.checkOutput() }
	root.SetIn(o.Screen.Stdin)
	root.SetOut(o.Screen.Stdout)
	root.SetErr(o.Screen.Stderr)
	flags := root.PersistentFlags()
	flags.StringVar(&o.Home, "home", home.DefaultDir(), "directory of the Howdah home")
	flags.Lookup("home").DefValue = "$HOWDAH_HOME, or /var/lib/howdah for root and ~/.howdah for others"
	flags.StringVarP(&o.output, "output", "o", "text", "format of the output: text or json")
	Complete(root, "output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	Complete(root, "home", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.InitDefaultCompletionCmd()
	return root
}

// kinds has the kinds of values that flags take, in words.
var kinds = map[string]string{
	"int": "a whole number", "int32": "a whole number", "bool": "true or false", "duration": "a time such as 90s, 10m or 24h",
}

// flagError says what a flag takes, in place of the parser's message.
func flagError(err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok || kinds[bad.GetFlag().Value.Type()] == "" {
		return err
	}
	return fmt.Errorf("--%s takes %s, not %q", bad.GetFlag().Name, kinds[bad.GetFlag().Value.Type()], bad.GetValue())
}

// Group returns a command that only holds others.
func Group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.ArbitraryArgs, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return UnknownCommand(cmd, args[0])
		},
	}
	g.AddCommand(commands...)
	return g
}

// UnknownCommand says that a group has no such command, and which ones are meant perhaps.
func UnknownCommand(cmd *cobra.Command, name string) error {
	hint := ""
	cmd.SuggestionsMinimumDistance = 2 // letters
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = ": did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q of %s%s: %w", name, cmd.CommandPath(), hint, ErrUsage)
}
