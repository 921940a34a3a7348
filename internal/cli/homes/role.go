package homes

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

// roleSecret is the variable that has the secret of an S3 server's access key.
const roleSecret = "HOWDAH_ROLE_SECRET"

func newRole(o *cli.Options) *cobra.Command {
	role := cli.Group("role", "Make, list and remove roles that let databases into buckets",
		"A role leads to a bucket of an S3 server. A database that is associated with it, for s3Export or s3Import, exports there by "+
			"aws_s3.query_export_to_s3, and imports from there by aws_s3.table_import_from_s3. No database sees the access key.",
		newRoleAdd(o), newRoleList(o), newRoleRemove(o),
	)
	role.Aliases = []string{"roles"}
	return role
}

func newRoleAdd(o *cli.Options) *cobra.Command {
	var in admin.RoleAddRequest
	var ca string
	secret := cli.Secret{Variable: roleSecret}
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Make a role that leads to a bucket", Args: cli.OneName,
		Long: "Makes a role that leads to a bucket of an S3 server. Databases of the role's account get it by AddRoleToDBInstance or " +
			"AddRoleToDBCluster, with the ARN that is printed. With --prefix they reach only the files whose names begin so.",
		Example: "  howdah role add exports --s3 https://s3.example.com --bucket reports --access-key KEY --secret-file secret\n" +
			"  aws rds add-role-to-db-instance --db-instance-identifier orders --feature-name s3Export --role-arn ARN",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			in.Name = args[0]
			if err := secret.Check(cmd); err != nil {
				return err
			}
			if ca != "" {
				if in.CA, err = cli.ReadFile(ca, "certificate"); err != nil {
					return err
				}
			}
			if in.Secret, err = secret.Read(o); err != nil {
				return err
			}
			out, err := cli.AskAdmin[admin.Role](cmd, o, admin.VerbRoleAdd, in)
			if err != nil {
				return err
			}
			return o.Print(out, func() error {
				o.Say("%s leads to %s\narn  %s", out.Name, leadsTo(out), out.ARN)
				return nil
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&in.Account, "account", "", "account that the role is for, twelve digits (default: the home's)")
	flags.StringVar(&in.Endpoint, "s3", "", "URL of the S3 server, as https://HOST:PORT")
	flags.StringVar(&in.Bucket, "bucket", "", "bucket of the S3 server")
	flags.StringVar(&in.Prefix, "prefix", "", "what the names of all files begin with, up to a slash")
	flags.StringVar(&in.Region, "region", "", "region of the S3 server (default us-east-1)")
	flags.StringVar(&ca, "ca", "", "file with the certificate that signs that of the S3 server (default: the system's authorities)")
	flags.StringVar(&in.AccessKey, "access-key", "", "access key of the S3 server; its secret comes from a file, "+roleSecret+" or standard input")
	secret.Flags(cmd)
	flags.BoolVar(&in.Replace, "replace", false, "give a role that there is another bucket or key")
	cli.CompleteFiles(cmd, "ca")
	return cmd
}

func newRoleList(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List roles, and which databases have them", Args: cli.Args(cobra.NoArgs), Aliases: []string{"ls"}, Example: "  howdah role list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := cli.AskAdmin[admin.RoleListAnswer](cmd, o, admin.VerbRoleList, admin.Nothing{})
			if err != nil {
				return err
			}
			return o.Print(out.Roles, func() error {
				if len(out.Roles) == 0 {
					o.Say("There are no roles. Make one: %s", o.Pasteable("howdah role add NAME --s3 URL --bucket BUCKET"))
					return nil
				}
				var t screen.Table
				t.Head("ROLE", "ACCOUNT", "LEADS TO", "DATABASES")
				for _, r := range out.Roles {
					t.Row(r.Name, r.Account, leadsTo(r), usedBy(r))
				}
				return t.Write(o.Screen.Stdout, o.Screen.Color())
			})
		},
	}
}

func newRoleRemove(o *cli.Options) *cobra.Command {
	var in admin.RoleRequest
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Remove a role that no database has", Args: cli.OneName, Aliases: []string{"rm"}, ValidArgsFunction: completeRoles(o),
		Long:    "Removes a role. It is refused as long as a database has it. What is in the bucket stays.",
		Example: "  howdah role remove exports",
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Name = args[0]
			out, err := cli.AskAdmin[admin.Role](cmd, o, admin.VerbRoleRemove, in)
			if err != nil {
				return err
			}
			return o.Print(out, func() error { o.Say("%s is removed", out.Name); return nil })
		},
	}
	cmd.Flags().StringVar(&in.Account, "account", "", "account of the role, twelve digits (default: the home's)")
	return cmd
}

func leadsTo(r admin.Role) string { return r.Endpoint + "/" + r.Bucket + "/" + r.Prefix }

func usedBy(r admin.Role) string {
	if len(r.Databases) == 0 {
		return "none"
	}
	uses := make([]string, len(r.Databases))
	for i, u := range r.Databases {
		uses[i] = fmt.Sprintf("%s (%s)", u.Database, u.Feature)
	}
	return strings.Join(uses, ", ")
}

func completeRoles(o *cli.Options) cobra.CompletionFunc {
	return cli.CompleteFirst(func(cmd *cobra.Command) (names []string, err error) {
		out, err := cli.AskAdmin[admin.RoleListAnswer](cmd, o, admin.VerbRoleList, admin.Nothing{})
		for _, r := range out.Roles {
			names = append(names, r.Name)
		}
		return names, err
	})
}
