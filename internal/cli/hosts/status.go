package hosts

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/identity/home"
)

// watchEvery is the pause between two looks of --watch.
const watchEvery = time.Second

// statusFlags are those of `howdah status`.
type statusFlags struct {
	watch, check, join, showToken, control bool
	writeToken                             string
}

func newStatus(o *cli.Options) *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use: "status", Short: "Show everything: hosts, databases, what is going on and what is wrong", Args: cli.Args(cobra.NoArgs),
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
	cli.CompleteFiles(cmd, "write-token")
	return cmd
}

func runStatus(cmd *cobra.Command, o *cli.Options, f statusFlags) error {
	if err := cli.Exclusive(cmd, "watch", "check"); err != nil {
		return err
	}
	for {
		status, err := o.AskStatus(cmd)
		if err != nil && (!f.watch || cmd.Context().Err() != nil) {
			return cli.Stopped(cmd.Context(), err)
		}
		if f.watch {
			fmt.Fprint(o.Screen.Stdout, o.Screen.Clear())
		}
		if err != nil {
			o.Say("%s", cli.OneLine(err))
		} else if err := o.Print(status, func() error { return statusText(o, status) }); err != nil {
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

func checked(f statusFlags, s admin.Status) error {
	switch {
	case !f.check || len(s.Problems) == 0:
		return nil
	case len(s.Problems) == 1:
		return fmt.Errorf("1 problem: %w", cli.ErrWrong)
	}
	return fmt.Errorf("%d problems: %w", len(s.Problems), cli.ErrWrong)
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
func runJoin(cmd *cobra.Command, o *cli.Options, f statusFlags) error {
	status, err := o.AskStatus(cmd)
	if err != nil {
		return err
	}
	view := joinView{TokenFile: f.writeToken, control: f.control}
	for _, c := range status.Control {
		view.URLs = append(view.URLs, c.URL)
		view.Reachable = view.Reachable || !onLoopback(c.URL)
	}
	if f.writeToken != "" || f.showToken {
		token, err := joinToken(o.Home, f.control)
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
	return o.Print(view, func() error { return joinText(o, view) })
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

func joinText(o *cli.Options, v joinView) error {
	if !v.Reachable {
		o.Say("This home listens on loopback only, which other machines cannot reach. A home that they reach begins with:")
		o.Say("  howdah serve --home DIR --address IP --listen IP:7443 --endpoint-pool CIDR")
		o.Say("")
	}
	if v.TokenFile != "" {
		o.Say("The join token is in %s: copy it to the other machine, readable for its user only.", v.TokenFile)
	} else if v.Token == "" {
		o.Say("Write the join token to a file, and copy that to the other machine:")
		o.Say("  %s", o.Pasteable("howdah status --join"+cli.Yes(v.control, " --control-plane")+" --write-token FILE"))
	}
	if v.Token != "" {
		o.Say("token  %s", v.Token)
	}
	o.Say("On the other machine, after scripts/install:")
	o.Say("  %s", v.Command)
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
