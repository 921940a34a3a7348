package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin/client"
	"howdah/internal/cli/screen"
	"howdah/internal/identity/home"
)

// Options are the options of every command, and its ties to the outside world.
type Options struct {
	// Home is the directory that --home names.
	Home   string
	output string // "text" or "json"

	Screen  *screen.Screen
	Getenv  func(string) string
	Environ func() []string
	Now     func() time.Time
	// Every is the pause between two looks at something that a command waits for.
	Every time.Duration
	// Exec replaces this process by another program.
	Exec func(path string, args, env []string) error
	// At is the home that the command works with, once it is known.
	At *home.Home
	// Version is that of this program.
	Version string
	// Program is what users type to run us.
	Program string
	// Arguments are those of this command.
	Arguments []string
}

// NewOptions returns options with the ties that a program has to the world.
func NewOptions(s *screen.Screen, version string) *Options {
	return &Options{Version: version, Screen: s, Getenv: os.Getenv, Environ: os.Environ, Now: time.Now, Every: waitLook, Exec: syscall.Exec, Program: invocation()}
}

// Args makes an error of an argument check a mistake in the command line.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("%w: %w", err, ErrUsage)
		}
		return nil
	}
}

// OneName checks that there is one argument: a name.
func OneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		_, words, _ := strings.Cut(cmd.CommandPath(), " ")
		return fmt.Errorf("%s takes one name: %w", words, ErrUsage)
	}
	return nil
}

func (o *Options) checkOutput() error {
	if o.output != "text" && o.output != "json" {
		return fmt.Errorf("--output is text or json, not %q: %w", o.output, ErrUsage)
	}
	return nil
}

// JSON reports whether the output is JSON.
func (o *Options) JSON() bool { return o.output == "json" }

// Print writes a result as JSON, or has text write it.
func (o *Options) Print(result any, text func() error) error {
	if !o.JSON() {
		return text()
	}
	encoder := json.NewEncoder(o.Screen.Stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(result); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// Say writes a line of text for people.
func (o *Options) Say(format string, args ...any) {
	fmt.Fprintf(o.Screen.Stdout, format+"\n", args...)
}

// Connect returns a client of the API. The home is nil if the environment names another one.
func (o *Options) Connect(cmd *cobra.Command) (*client.Client, *home.Home, error) {
	named := cmd.Flags().Changed("home") || o.Getenv("HOWDAH_HOME") != ""
	c, h, err := client.Find(o.Home, named, o.Getenv)
	o.At = h
	return c, h, err
}

// API returns a client of the API, for commands that need nothing of the home.
func (o *Options) API(cmd *cobra.Command) (*client.Client, error) {
	c, _, err := o.Connect(cmd)
	return c, err
}

// Given returns a pointer to the value of a flag, or nil if the flag was not given.
func Given[T any](cmd *cobra.Command, flag string, value T) *T {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	return &value
}

// Exclusive refuses flags that contradict each other.
func Exclusive(cmd *cobra.Command, flags ...string) error {
	var used []string
	for _, f := range flags {
		if cmd.Flags().Changed(f) {
			used = append(used, "--"+f)
		}
	}
	if len(used) > 1 {
		return fmt.Errorf("%s exclude each other: %w", strings.Join(used, " and "), ErrUsage)
	}
	return nil
}
