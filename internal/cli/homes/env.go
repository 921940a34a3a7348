package homes

import (
	"fmt"

	"github.com/spf13/cobra"

	"howdah/internal/admin/client"
	"howdah/internal/cli"
	"howdah/internal/identity/home"
)

func newEnv(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "env", Short: "Print what the AWS CLI and SDKs need: eval \"$(howdah env)\"", Args: cli.Args(cobra.NoArgs),
		Long: "Prints shell commands that point the AWS CLI, the AWS SDKs and psql at this home. They hold the secret of its " +
			"access key.",
		Example: "  eval \"$(howdah env)\"\n  aws rds describe-db-instances",
		RunE: func(*cobra.Command, []string) error {
			h, err := home.Open(o.Home)
			if err != nil {
				return err
			}
			vars, err := variables(h)
			if err != nil {
				return err
			}
			return o.Print(asMap(vars), func() error {
				for _, v := range vars {
					o.Say("export %s=%s", v.name, cli.ShellQuote(v.value))
				}
				o.Say("unset AWS_PROFILE AWS_SESSION_TOKEN")
				return nil
			})
		},
	}
}

type variable struct{ name, value string }

// variables returns the variables that AWS's programs and libpq read.
func variables(h *home.Home) ([]variable, error) {
	credentials, err := h.Credentials()
	if err != nil {
		return nil, err
	}
	if len(credentials) == 0 {
		return nil, fmt.Errorf("home %s has no access key", h.Dir)
	}
	c := credentials[0]
	return []variable{
		{"AWS_ENDPOINT_URL", "https://" + client.Address(h.Listen)},
		{"AWS_ACCESS_KEY_ID", c.AccessKey},
		{"AWS_SECRET_ACCESS_KEY", c.Secret},
		{"AWS_DEFAULT_REGION", h.Region},
		{"AWS_REGION", h.Region},
		{"AWS_CA_BUNDLE", h.CAFile()},
		{"AWS_PAGER", ""},
		{"PGSSLROOTCERT", h.CAFile()},
		{"HOWDAH_HOME", h.Dir},
	}, nil
}

func asMap(vars []variable) map[string]string {
	all := map[string]string{}
	for _, v := range vars {
		all[v.name] = v.value
	}
	return all
}
