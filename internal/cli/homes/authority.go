package homes

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

func newCA(o *cli.Options) *cobra.Command {
	return cli.Group("ca", "List the authorities that sign the certificates of databases, and make newer ones",
		"Clients verify the certificates of databases by authorities. Authorities come in lines: howdah-ca, the home's own, and those that "+
			"have RDS's names. A newer authority of a line is in the bundle of clients at once. The rotation of databases to it is a "+
			"pending maintenance action.",
		newCAList(o), newCACreate(o),
	)
}

func newCAList(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List authorities", Args: cli.Args(cobra.NoArgs), Aliases: []string{"ls"}, Example: "  howdah ca list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := o.API(cmd)
			if err != nil {
				return err
			}
			var out admin.AuthorityListAnswer
			if err := api.Admin(cmd.Context(), admin.VerbAuthorityList, admin.Nothing{}, &out); err != nil {
				return err
			}
			return o.Print(out.Authorities, func() error {
				var t screen.Table
				t.Head("NAME", "VALID TILL", "DATABASES", "NEWER")
				for _, a := range out.Authorities {
					t.Row(a.Name, a.ValidTill.Format(time.DateOnly), strconv.Itoa(a.Databases), a.Newer)
				}
				return t.Write(o.Screen.Stdout, o.Screen.Color())
			})
		},
	}
}

func newCACreate(o *cli.Options) *cobra.Command {
	var in admin.AuthorityRequest
	cmd := &cobra.Command{
		Use: "create", Short: "Make a newer authority, to which databases can be rotated", Args: cli.Args(cobra.NoArgs),
		Long: "Makes the next authority of a line. Nothing changes for databases and clients until a rotation is applied: at once or in the " +
			"maintenance window, by ApplyPendingMaintenanceAction or ModifyDBInstance. Clients with an older bundle go on working.",
		Example: "  howdah ca create\n  howdah ca create --line rds-ca-rsa2048",
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := o.API(cmd)
			if err != nil {
				return err
			}
			var out admin.Authority
			if err := api.Admin(cmd.Context(), admin.VerbAuthorityCreate, in, &out); err != nil {
				return err
			}
			return o.Print(out, func() error {
				o.Say("authority   %s\nvalid till  %s", out.Name, out.ValidTill.Format(time.DateOnly))
				o.Say("\nDatabases of the line have ca-certificate-rotation pending now.")
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&in.Line, "line", "", "line of authorities, such as rds-ca-rsa2048 (default: howdah-ca, the home's own)")
	return cmd
}
