package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/cmd/howdah/pgpass"
	"howdah/cmd/howdah/screen"
	"howdah/internal/admin/client"
	"howdah/internal/identity/home"
	"howdah/internal/model/spec"
)

const demoName = "demo"

// newDemo returns the last step of `make up`. It makes an instance to play with, and says what to
// do with it. When it runs again, it changes nothing and says the same.
func newDemo(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "demo", Short: "Create the Multi-AZ instance demo, if there is none, and say how to use it",
		Hidden: true, Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := home.Open(o.home)
			if err != nil {
				return err
			}
			o.at = h
			api, err := client.FromHome(h)
			if err != nil {
				return err
			}
			t, err := o.ensureDemo(cmd.Context(), api, h)
			if err != nil {
				return err
			}
			if err := o.waitFor(cmd.Context(), t, "available"); err != nil {
				return err
			}
			return o.print(viewOf(t), func() error { return o.demoText(t, h) })
		},
	}
}

func (o *options) ensureDemo(ctx context.Context, api *client.Client, h *home.Home) (*target, error) {
	instance, err := describeInstance(ctx, api, demoName)
	if err != nil {
		return nil, err
	}
	if instance != nil {
		t := &target{api: api, name: demoName, instance: instance}
		if t.status() == "stopped" {
			return t, fmt.Errorf("the instance %s is stopped: start it: %s", demoName, o.pasteable("howdah db start "+demoName))
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

func (o *options) demoText(demo *target, h *home.Home) error {
	c, err := connection(demo, h, false)
	if err != nil {
		return err
	}
	o.say("The Multi-AZ PostgreSQL %s is available at %s:%s. Connect:", demo.name, c.host, c.port)
	o.say("\n  %s\n", c.line())
	if !passwords(h).Has(demo.resourceID()) {
		o.say("Its password is not kept here. Set another one: %s\n", o.pasteable("howdah db modify "+demo.name+" --password-stdin"))
	}
	o.say("For boto3, the AWS CLI and the AWS SDKs:")
	o.say("\n  eval \"$(%s)\"", o.pasteable("howdah env"))
	o.say("  aws rds describe-db-instances\n")
	o.say("Next:")
	t := screen.Table{Indent: "  "}
	for _, line := range [][2]string{
		{"howdah status", "everything on one screen"},
		{"howdah db failover " + demo.name, "a failover, in good order"},
		{"howdah failovers", "how it went"},
		{"howdah db create NAME", "a database of your own"},
		{"howdah down", "stop everything; data stay"},
	} {
		t.Row(o.pasteable(line[0]), line[1])
	}
	return t.Write(o.screen.Stdout, o.screen.Color())
}
