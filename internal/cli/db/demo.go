package db

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/internal/admin/client"
	"howdah/internal/cli"
	"howdah/internal/cli/pgpass"
	"howdah/internal/cli/screen"
	"howdah/internal/identity/home"
	"howdah/internal/model/spec"
)

const demoName = "demo"

// newDemo returns the last step of `make up`. It makes an instance to play with, and says what to
// do with it. When it runs again, it changes nothing and says the same.
func newDemo(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "demo", Short: "Create the Multi-AZ instance demo, if there is none, and say how to use it",
		Hidden: true, Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := home.Open(o.Home)
			if err != nil {
				return err
			}
			o.At = h
			api, err := client.FromHome(h)
			if err != nil {
				return err
			}
			t, err := ensureDemo(cmd.Context(), o, api, h)
			if err != nil {
				return err
			}
			if err := o.WaitFor(cmd.Context(), t, "available"); err != nil {
				return err
			}
			return o.Print(viewOf(t), func() error { return demoText(cmd.Context(), o, t, h) })
		},
	}
}

func ensureDemo(ctx context.Context, o *cli.Options, api *client.Client, h *home.Home) (*cli.Target, error) {
	instance, err := cli.DescribeInstance(ctx, api, demoName)
	if err != nil {
		return nil, err
	}
	if instance != nil {
		t := &cli.Target{API: api, Name: demoName, Instance: instance}
		if t.Status() == "stopped" {
			return t, fmt.Errorf("the instance %s is stopped: start it: %s", demoName, o.Pasteable("howdah db start "+demoName))
		}
		return t, nil
	}
	password := pgpass.Generate()
	t, err := create(ctx, api, demoInput(password))
	if err != nil {
		return nil, err
	}
	return &t, keepPassword(ctx, &t, h, *demoInput("").MasterUsername, password, true)
}

func demoInput(password string) *rds.CreateDBInstanceMessage {
	name, engine, class, user, multiAZ, storage := demoName, spec.Postgres, "db.t3.micro", "postgres", true, int32(20)
	return &rds.CreateDBInstanceMessage{
		DBInstanceIdentifier: &name, Engine: &engine, DBInstanceClass: &class, AllocatedStorage: &storage,
		MasterUsername: &user, MasterUserPassword: &password, MultiAZ: &multiAZ,
	}
}

func demoText(ctx context.Context, o *cli.Options, demo *cli.Target, h *home.Home) error {
	c, err := connection(ctx, demo, h, false)
	if err != nil {
		return err
	}
	o.Say("The Multi-AZ PostgreSQL %s is available at %s:%s. Connect:", demo.Name, c.host, c.port)
	o.Say("\n  %s\n", c.line())
	if c.name != "" {
		o.Say("By its name, also where no resolver knows it (asks for the password):")
		o.Say("\n  %s\n", c.nameLine())
	}
	if !Passwords(h).Has(demo.ResourceID()) {
		o.Say("Its password is not kept here. Set another one: %s\n", o.Pasteable("howdah db modify "+demo.Name+" --password-stdin"))
	}
	o.Say("For boto3, the AWS CLI and the AWS SDKs:")
	o.Say("\n  eval \"$(%s)\"", o.Pasteable("howdah env"))
	o.Say("  aws rds describe-db-instances\n")
	o.Say("Next:")
	t := screen.Table{Indent: "  "}
	for _, line := range [][2]string{
		{"howdah status", "everything on one screen"},
		{"howdah db failover " + demo.Name, "a failover, in good order"},
		{"howdah failovers", "how it went"},
		{"howdah db create NAME", "a database of your own"},
		{"howdah down", "stop everything; data stay"},
	} {
		t.Row(o.Pasteable(line[0]), line[1])
	}
	return t.Write(o.Screen.Stdout, o.Screen.Color())
}
