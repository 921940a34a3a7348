package homes

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/db"
	"howdah/internal/cli/screen"
)

func newAdmin(o *cli.Options) *cobra.Command {
	return cli.Group("admin", "What test rigs need", "", newAdminWipe(o))
}

func newAdminWipe(o *cli.Options) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "wipe", Short: "Delete every resource at once, in a home that is disposable", Args: cli.Args(cobra.NoArgs),
		Long: "Deletes all databases of all accounts with their data, events and post-mortems, whatever protects them. It is " +
			"refused unless the home was made by `howdah up --disposable`, and without --yes.",
		Example: "  howdah admin wipe --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return fmt.Errorf("this deletes every database: give --yes: %w", cli.ErrUsage)
			}
			return runWipe(cmd, o)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "yes, delete everything")
	return cmd
}

func runWipe(cmd *cobra.Command, o *cli.Options) error {
	api, h, err := o.Connect(cmd)
	if err != nil {
		return err
	}
	var out admin.WipeAnswer
	if err := api.Admin(cmd.Context(), admin.VerbWipe, admin.Nothing{}, &out); err != nil {
		return err
	}
	if h != nil {
		if err := db.Passwords(h).Keep(func(string) bool { return false }); err != nil {
			return err
		}
	}
	return o.Print(out, func() error {
		o.Say("deleted %d instances and %d clusters with %d members in %s", out.Instances, out.Clusters, out.Members,
			screen.Span(time.Duration(out.Seconds*float64(time.Second))))
		if len(out.Pending) > 0 {
			o.Say("on lost hosts, deleted when they return: %s", strings.Join(out.Pending, ", "))
		}
		return nil
	})
}
