package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
)

func newHost(o *options) *cobra.Command {
	host := group("host", "List, drain and forget hosts",
		"Hosts are the machines that databases run on, each in an Availability Zone. `howdah status --join` shows how one joins.",
		newHostList(o), newHostDrain(o), newHostUndrain(o), newHostForget(o),
	)
	host.Aliases = []string{"hosts"}
	return host
}

func newHostList(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List hosts", Args: args(cobra.NoArgs), Aliases: []string{"ls"}, Example: "  howdah host list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := o.askStatus(cmd)
			if err != nil {
				return err
			}
			return o.print(status.Hosts, func() error {
				if len(status.Hosts) == 0 {
					o.say("No host has joined: howdah status --join shows how one does.")
					return nil
				}
				return o.hostsTable(status.Hosts)
			})
		},
	}
}

func newHostUndrain(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "undrain NAME", Short: "Let a host have members again", Args: oneName, ValidArgsFunction: o.completeHosts,
		Long:    "Lets a host that was drained have members again. What has moved away stays where it is.",
		Example: "  howdah host undrain zone-b",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.hostVerb(cmd, admin.VerbUndrain, args[0], "%s takes members again")
		},
	}
}

func newHostForget(o *options) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "forget NAME", Short: "Give a lost host up for good", Args: oneName, ValidArgsFunction: o.completeHosts,
		Long: "Gives a host up that will not come back: its members are rebuilt on other hosts at once. It is refused while the " +
			"host is alive, or has the only complete copy of a database. Should the host return, its old copies are deleted.",
		Example: "  howdah host forget zone-b",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				question := fmt.Sprintf("This gives the host %s up for good, with all copies on it. Type its name to go on: ", args[0])
				if err := o.confirm(question, args[0]); err != nil {
					return err
				}
			}
			return o.hostVerb(cmd, admin.VerbForgetHost, args[0], "%s is forgotten")
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// hostView is the answer of commands that change a host.
type hostView struct {
	Host string `json:"host"`
	Done bool   `json:"done"`
}

func (o *options) hostVerb(cmd *cobra.Command, verb, host, text string) error {
	api, err := o.api(cmd)
	if err != nil {
		return err
	}
	if err := api.Admin(cmd.Context(), verb, admin.HostRequest{Host: host}, &admin.Nothing{}); err != nil {
		return err
	}
	return o.print(hostView{Host: host, Done: true}, func() error { o.say(text, host); return nil })
}
