package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"howdah/cmd/howdah/screen"
	"howdah/internal/admin/client"
	"howdah/internal/identity/home"
)

// options are the options of every command, and its ties to the outside world.
type options struct {
	home   string
	output string // "text" or "json"

	screen  *screen.Screen
	getenv  func(string) string
	environ func() []string
	now     func() time.Time
	// every is the pause between two looks at something that a command waits for.
	every time.Duration
	// exec replaces this process by another program.
	exec func(path string, args, env []string) error
	// at is the home that the command works with, once it is known.
	at *home.Home
	// program is what users type to run us.
	program string
	// arguments are those of this command.
	arguments []string
}

func newOptions(s *screen.Screen) *options {
	return &options{screen: s, getenv: os.Getenv, environ: os.Environ, now: time.Now, every: waitLook, exec: syscall.Exec, program: invocation()}
}

func newRoot(o *options) *cobra.Command {
	root := group("howdah", "Your own Amazon RDS and Aurora for PostgreSQL, on your own machines",
		"Howdah runs real, highly available PostgreSQL behind the RDS API. `howdah up` starts everything on this machine; "+
			"boto3, the AWS CLI and the AWS SDKs work with it after eval \"$(howdah env)\".",
		newUp(o), newDown(o), newEnv(o), newStatus(o), newDB(o), newHost(o), newOperations(o), newFailovers(o), newEvents(o), newLogs(o),
		newKey(o), newCA(o), newEtcd(o), newHome(o), newAudit(o),
		newServe(o), newAgent(o), newEdge(o), newAdmin(o), newVersion(o), newDemo(o), newGate(o), newDocs(), newAPIDocs(),
	)
	// Errors are printed once, in one line, by main.
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = version
	root.SetVersionTemplate("howdah {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", flagError(err), errUsage) })
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return o.checkOutput() }
	root.SetIn(o.screen.Stdin)
	root.SetOut(o.screen.Stdout)
	root.SetErr(o.screen.Stderr)
	flags := root.PersistentFlags()
	flags.StringVar(&o.home, "home", home.DefaultDir(), "directory of the Howdah home")
	flags.Lookup("home").DefValue = "$HOWDAH_HOME, or /var/lib/howdah for root and ~/.howdah for others"
	flags.StringVarP(&o.output, "output", "o", "text", "format of the output: text or json")
	complete(root, "output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	complete(root, "home", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
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

// group returns a command that only holds others.
func group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.ArbitraryArgs, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	g.AddCommand(commands...)
	return g
}

func unknownCommand(cmd *cobra.Command, name string) error {
	hint := ""
	cmd.SuggestionsMinimumDistance = 2 // letters
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = ": did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q of %s%s: %w", name, cmd.CommandPath(), hint, errUsage)
}

// args makes an error of an argument check a mistake in the command line.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("%w: %w", err, errUsage)
		}
		return nil
	}
}

// oneName checks that there is one argument: a name.
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		_, words, _ := strings.Cut(cmd.CommandPath(), " ")
		return fmt.Errorf("%s takes one name: %w", words, errUsage)
	}
	return nil
}

func (o *options) checkOutput() error {
	if o.output != "text" && o.output != "json" {
		return fmt.Errorf("--output is text or json, not %q: %w", o.output, errUsage)
	}
	return nil
}

func (o *options) json() bool { return o.output == "json" }

// print writes a result as JSON, or has text write it.
func (o *options) print(result any, text func() error) error {
	if !o.json() {
		return text()
	}
	encoder := json.NewEncoder(o.screen.Stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(result); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// say writes a line of text for people.
func (o *options) say(format string, args ...any) {
	fmt.Fprintf(o.screen.Stdout, format+"\n", args...)
}

// connect returns a client of the API. The home is nil if the environment names another one.
func (o *options) connect(cmd *cobra.Command) (*client.Client, *home.Home, error) {
	named := cmd.Flags().Changed("home") || o.getenv("HOWDAH_HOME") != ""
	c, h, err := client.Find(o.home, named, o.getenv)
	o.at = h
	return c, h, err
}

// api returns a client of the API, for commands that need nothing of the home.
func (o *options) api(cmd *cobra.Command) (*client.Client, error) {
	c, _, err := o.connect(cmd)
	return c, err
}

// given returns a pointer to the value of a flag, or nil if the flag was not given.
func given[T any](cmd *cobra.Command, flag string, value T) *T {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	return &value
}

// exclusive refuses flags that contradict each other.
func exclusive(cmd *cobra.Command, flags ...string) error {
	var used []string
	for _, f := range flags {
		if cmd.Flags().Changed(f) {
			used = append(used, "--"+f)
		}
	}
	if len(used) > 1 {
		return fmt.Errorf("%s exclude each other: %w", strings.Join(used, " and "), errUsage)
	}
	return nil
}
