package hosts

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
)

func newHost(o *cli.Options) *cobra.Command {
	host := cli.Group("host", "List, drain and forget hosts",
		"Hosts are the machines that databases run on, each in an Availability Zone. `howdah status --join` shows how one joins.",
		newHostList(o), newHostDrain(o), newHostUndrain(o), newHostForget(o), newHostOff(o),
	)
	host.Aliases = []string{"hosts"}
	return host
}

func newHostList(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List hosts", Args: cli.Args(cobra.NoArgs), Aliases: []string{"ls"}, Example: "  howdah host list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := o.AskStatus(cmd)
			if err != nil {
				return err
			}
			return o.Print(status.Hosts, func() error {
				if len(status.Hosts) == 0 {
					o.Say("No host has joined: howdah status --join shows how one does.")
					return nil
				}
				return hostsTable(o, status.Hosts)
			})
		},
	}
}

func newHostUndrain(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "undrain NAME", Short: "Let a host have members again", Args: cli.OneName, ValidArgsFunction: o.CompleteHosts,
		Long:    "Lets a host that was drained have members again. What has moved away stays where it is.",
		Example: "  howdah host undrain zone-b",
		RunE: func(cmd *cobra.Command, args []string) error {
			return hostVerb(cmd, o, admin.VerbUndrain, args[0], "%s takes members again")
		},
	}
}

func newHostForget(o *cli.Options) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "forget NAME", Short: "Give a lost host up for good", Args: cli.OneName, ValidArgsFunction: o.CompleteHosts,
		Long: "Gives a host up that will not come back: its members are rebuilt on other hosts at once. It is refused while the " +
			"host is alive, or has the only complete copy of a database. Should the host return, its old copies are deleted.",
		Example: "  howdah host forget zone-b",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				question := fmt.Sprintf("This gives the host %s up for good, with all copies on it. Type its name to go on: ", args[0])
				if err := o.Confirm(question, args[0]); err != nil {
					return err
				}
			}
			return hostVerb(cmd, o, admin.VerbForgetHost, args[0], "%s is forgotten")
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func newHostOff(o *cli.Options) *cobra.Command {
	var yes, dryRun bool
	cmd := &cobra.Command{
		Use: "off NAME", Short: "Swear that a lost host is off", Args: cli.OneName, ValidArgsFunction: o.CompleteHosts,
		Long: "Says that nothing runs on a host any more, because you switched it off or pulled its plug. That counts as proof that a " +
			"primary which was on this host acknowledges nothing: a standby is then promoted without any other proof. If the host runs " +
			"on, acknowledged writes are lost. It is refused while the host is alive. The word counts until the host is heard again.",
		Example: "  howdah host off zone-b --dry-run\n  howdah host off zone-b",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes && !dryRun {
				question := fmt.Sprintf("If %s is not off, acknowledged writes will be lost. Type its name to swear that it is: ", args[0])
				if err := o.Confirm(question, args[0]); err != nil {
					return err
				}
			}
			return hostOff(cmd, o, args[0], dryRun)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show which databases have their primary there")
	return cmd
}

func hostOff(cmd *cobra.Command, o *cli.Options, host string, dryRun bool) error {
	api, err := o.API(cmd)
	if err != nil {
		return err
	}
	var out admin.HostOffAnswer
	if err := api.Admin(cmd.Context(), admin.VerbHostOff, admin.HostOffRequest{Host: host, DryRun: dryRun}, &out); err != nil {
		return err
	}
	return o.Print(out, func() error {
		led := strings.Join(out.Databases, ", ")
		if led == "" {
			led = "no database"
		}
		if dryRun {
			o.Say("%s has the primary of %s; nothing was changed", host, led)
			return nil
		}
		o.Say("%s counts as off; it had the primary of %s", host, led)
		return nil
	})
}

// hostView is the answer of commands that change a host.
type hostView struct {
	Host string `json:"host"`
	Done bool   `json:"done"`
}

func hostVerb(cmd *cobra.Command, o *cli.Options, verb, host, text string) error {
	api, err := o.API(cmd)
	if err != nil {
		return err
	}
	if err := api.Admin(cmd.Context(), verb, admin.HostRequest{Host: host}, &admin.Nothing{}); err != nil {
		return err
	}
	return o.Print(hostView{Host: host, Done: true}, func() error { o.Say(text, host); return nil })
}
