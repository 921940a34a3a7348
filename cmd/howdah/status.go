package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/identity/home"
)

// watchEvery is the pause between two looks of --watch.
const watchEvery = time.Second

// statusFlags are those of `howdah status`.
type statusFlags struct {
	watch, check, join, showToken, control bool
	writeToken                             string
}

func newStatus(o *options) *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use: "status", Short: "Show everything: hosts, databases, what is going on and what is wrong", Args: args(cobra.NoArgs),
		Long: "Shows control planes, hosts and databases with all their members, what is going on, and what is wrong, each with the " +
			"command that mends it. If something is wrong, the exit code is 0, or 3 with --check.",
		Example: "  howdah status\n  howdah status --watch\n  howdah status --check -o json\n" +
			"  howdah status --join --write-token /root/token\n  howdah status --join --control-plane --write-token /root/server-token",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.join || f.control || f.showToken || f.writeToken != "" {
				return runJoin(cmd, o, f)
			}
			return runStatus(cmd, o, f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.watch, "watch", "w", false, "show it again every second, until Ctrl-C")
	flags.BoolVar(&f.check, "check", false, "exit with code 3 if something is wrong")
	flags.BoolVar(&f.join, "join", false, "show how another machine joins as a host")
	flags.BoolVar(&f.control, "control-plane", false, "with --join: as a control plane; its token gives the key of the home's authority")
	flags.StringVar(&f.writeToken, "write-token", "", "with --join: write the join token to this file, mode 0600")
	flags.BoolVar(&f.showToken, "show-token", false, "with --join: print the join token")
	completeFiles(cmd, "write-token")
	return cmd
}

func runStatus(cmd *cobra.Command, o *options, f statusFlags) error {
	if err := exclusive(cmd, "watch", "check"); err != nil {
		return err
	}
	for {
		status, err := o.askStatus(cmd)
		if err != nil && (!f.watch || cmd.Context().Err() != nil) {
			return stopped(cmd.Context(), err)
		}
		if f.watch {
			fmt.Fprint(o.screen.Stdout, o.screen.Clear())
		}
		if err != nil {
			o.say("%s", oneLine(err))
		} else if err := o.print(status, func() error { return o.statusText(status) }); err != nil {
			return err
		}
		if !f.watch {
			return checked(f, status)
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

// stopped returns no error if Ctrl-C ended ctx: that is the way to end --watch.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was asked for
	}
	return err
}

func checked(f statusFlags, s admin.Status) error {
	switch {
	case !f.check || len(s.Problems) == 0:
		return nil
	case len(s.Problems) == 1:
		return fmt.Errorf("1 problem: %w", errWrong)
	}
	return fmt.Errorf("%d problems: %w", len(s.Problems), errWrong)
}

// joinView is what `howdah status --join` answers as JSON.
type joinView struct {
	URLs      []string `json:"urls"`
	TokenFile string   `json:"token_file,omitempty"`
	Token     string   `json:"token,omitempty"` // only if asked for
	Command   string   `json:"command"`
	// Reachable says whether other machines can reach one of the URLs.
	Reachable bool `json:"reachable"`

	control bool // it joins as a control plane
}

// runJoin shows how another machine joins. It shows the token only if asked to: whoever has the
// token may run a host.
func runJoin(cmd *cobra.Command, o *options, f statusFlags) error {
	status, err := o.askStatus(cmd)
	if err != nil {
		return err
	}
	view := joinView{TokenFile: f.writeToken, control: f.control}
	for _, c := range status.Control {
		view.URLs = append(view.URLs, c.URL)
		view.Reachable = view.Reachable || !onLoopback(c.URL)
	}
	if f.writeToken != "" || f.showToken {
		token, err := joinToken(o.home, f.control)
		if err != nil {
			return err
		}
		if f.showToken {
			view.Token = token
		}
		if f.writeToken != "" {
			if err := writeSecret(f.writeToken, token); err != nil {
				return err
			}
		}
	}
	url := "URL"
	if len(view.URLs) > 0 {
		url = view.URLs[0]
	}
	view.Command = "howdah agent --join " + url + " --token-file FILE --az d --name HOST --address IP"
	if f.control {
		view.Command = "howdah serve --join " + url + " --token-file FILE --name " + nextControl(status.Control) + " --address IP"
	}
	return o.print(view, func() error { return o.joinText(view) })
}

// nextControl returns a name that no control plane has.
func nextControl(all []admin.Control) string {
	for n := len(all) + 1; ; n++ {
		name := fmt.Sprintf("s%d", n)
		if !slices.ContainsFunc(all, func(c admin.Control) bool { return c.Name == name }) {
			return name
		}
	}
}

func (o *options) joinText(v joinView) error {
	if !v.Reachable {
		o.say("This home listens on loopback only, which other machines cannot reach. A home that they reach begins with:")
		o.say("  howdah serve --home DIR --address IP --listen IP:7443 --endpoint-pool CIDR")
		o.say("")
	}
	if v.TokenFile != "" {
		o.say("The join token is in %s: copy it to the other machine, readable for its user only.", v.TokenFile)
	} else if v.Token == "" {
		o.say("Write the join token to a file, and copy that to the other machine:")
		o.say("  %s", o.pasteable("howdah status --join"+yes(v.control, " --control-plane")+" --write-token FILE"))
	}
	if v.Token != "" {
		o.say("token  %s", v.Token)
	}
	o.say("On the other machine, after scripts/install:")
	o.say("  %s", v.Command)
	return nil
}

func joinToken(dir string, control bool) (string, error) {
	h, err := home.Open(dir)
	if err != nil {
		return "", fmt.Errorf("the join token is in the home of a control plane: run this there: %w", err)
	}
	tokens, err := h.Join()
	if control {
		return tokens.ServerToken, err
	}
	return tokens.AgentToken, err
}
