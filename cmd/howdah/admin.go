package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/cmd/howdah/screen"
	"howdah/internal/admin"
)

func newAdmin(o *options) *cobra.Command {
	return group("admin", "What test rigs need", "", newAdminWipe(o))
}

func newAdminWipe(o *options) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "wipe", Short: "Delete every resource at once, in a home that is disposable", Args: args(cobra.NoArgs),
		Long: "Deletes all databases of all accounts with their data, events and post-mortems, whatever protects them. It is " +
			"refused unless the home was made by `howdah up --disposable`, and without --yes.",
		Example: "  howdah admin wipe --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return fmt.Errorf("this deletes every database: give --yes: %w", errUsage)
			}
			return runWipe(cmd, o)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "yes, delete everything")
	return cmd
}

func runWipe(cmd *cobra.Command, o *options) error {
	api, h, err := o.connect(cmd)
	if err != nil {
		return err
	}
	var out admin.WipeAnswer
	if err := api.Admin(cmd.Context(), admin.VerbWipe, admin.Nothing{}, &out); err != nil {
		return err
	}
	if h != nil {
		if err := passwords(h).Keep(func(string) bool { return false }); err != nil {
			return err
		}
	}
	return o.print(out, func() error {
		o.say("deleted %d instances and %d clusters with %d members in %s", out.Instances, out.Clusters, out.Members,
			screen.Span(time.Duration(out.Seconds*float64(time.Second))))
		if len(out.Pending) > 0 {
			o.say("on lost hosts, deleted when they return: %s", strings.Join(out.Pending, ", "))
		}
		return nil
	})
}
