package db

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/identity/home"
)

var errNoPsql = errors.New("psql is not installed: apt-get install postgresql-client")

func newDBConnect(o *cli.Options) *cobra.Command {
	var reader bool
	cmd := &cobra.Command{
		Use: "connect NAME [psql arguments]", Short: "Open psql at a database, with TLS verified in full",
		Aliases: []string{"psql"}, ValidArgsFunction: o.CompleteNames,
		Args: cli.Args(cobra.MinimumNArgs(1)),
		Long: "Runs psql at the endpoint of a database as its master user, with sslmode=verify-full and the password that the " +
			"home keeps. What follows the name goes to psql.",
		Example: "  howdah db connect orders\n  howdah db connect orders -c 'SELECT version()'\n  howdah db connect --reader shop",
		RunE:    func(cmd *cobra.Command, args []string) error { return runDBConnect(cmd, o, args, reader) },
	}
	// Arguments after the name are for psql.
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().BoolVar(&reader, "reader", false, "of a cluster: the endpoint of its readers")
	return cmd
}

func runDBConnect(cmd *cobra.Command, o *cli.Options, args []string, reader bool) error {
	ctx := cmd.Context()
	api, h, err := o.Connect(cmd)
	if err != nil {
		return err
	}
	t, err := cli.Find(ctx, api, args[0])
	if err != nil {
		return err
	}
	if t.Status() == "stopped" {
		return fmt.Errorf("%s is stopped: start it: %s", t.Name, o.Pasteable("howdah db start "+t.Name))
	}
	c, err := connection(ctx, &t, h, reader)
	if err != nil {
		return err
	}
	if h != nil {
		if err := prunePasswords(ctx, api, h); err != nil {
			return err
		}
	} else {
		c.rootCert = o.Getenv("AWS_CA_BUNDLE")
	}
	psql, err := exec.LookPath("psql")
	if err != nil {
		return errNoPsql
	}
	return o.Exec(psql, append([]string{"psql"}, args[1:]...), append(o.Environ(), c.env(o.Getenv)...))
}

// conn is how psql reaches a database.
type conn struct {
	host, port, user, database string
	name                       string // DNS name of host, or ""
	rootCert, passFile         string // "": psql's own
}

// connection returns how the master user connects through an endpoint. Where endpoints have names, it
// goes to the address: that works also where no resolver knows the home's zone, and the password file
// has the address.
func connection(ctx context.Context, t *cli.Target, h *home.Home, reader bool) (conn, error) {
	v := viewOf(t)
	endpoint := v.Endpoint
	if reader {
		if endpoint = v.ReaderEndpoint; endpoint == "" {
			return conn{}, fmt.Errorf("%s has no endpoint for readers: %w", t.Name, cli.ErrUsage)
		}
	}
	if endpoint == "" {
		return conn{}, fmt.Errorf("%s has no endpoint yet: it is %s", t.Name, v.Status)
	}
	c := conn{user: v.MasterUser, database: v.DBName}
	if c.database == "" {
		c.database = "postgres"
	}
	shown, _, err := net.SplitHostPort(endpoint)
	if err == nil {
		c.host, c.port, err = net.SplitHostPort(t.API.Reach(ctx, endpoint))
	}
	if err != nil {
		return conn{}, fmt.Errorf("endpoint of %s: %w", t.Name, err)
	}
	if shown != c.host {
		c.name = shown
	}
	if h != nil {
		c.rootCert, c.passFile = h.CAFile(), h.DemoPassFile()
	}
	return c, nil
}

// env returns the variables of libpq. The user's arguments of psql count for more.
func (c conn) env(getenv func(string) string) []string {
	vars := []string{
		"PGHOST=" + c.host, "PGPORT=" + c.port, "PGUSER=" + c.user, "PGDATABASE=" + c.database, "PGSSLMODE=verify-full",
	}
	if c.rootCert != "" {
		vars = append(vars, "PGSSLROOTCERT="+c.rootCert)
	}
	if c.passFile != "" && getenv("PGPASSFILE") == "" && getenv("PGPASSWORD") == "" {
		vars = append(vars, "PGPASSFILE="+c.passFile)
	}
	return vars
}

// line returns a command that works when pasted.
func (c conn) line() string {
	info := fmt.Sprintf("host=%s port=%s user=%s dbname=%s sslmode=verify-full", c.host, c.port, c.user, c.database)
	prefix := ""
	if c.rootCert != "" {
		info += " sslrootcert=" + cli.InfoValue(c.rootCert)
	}
	if c.passFile != "" {
		prefix = "PGPASSFILE=" + cli.ShellWord(c.passFile) + " "
	}
	return prefix + `psql ` + cli.ShellQuoteDouble(info)
}

// nameLine returns a command that connects by the name of the endpoint, also where no resolver knows
// it: libpq is told the address. The password file has no line for the name.
func (c conn) nameLine() string {
	info := fmt.Sprintf("host=%s hostaddr=%s port=%s user=%s dbname=%s sslmode=verify-full", c.name, c.host, c.port, c.user, c.database)
	if c.rootCert != "" {
		info += " sslrootcert=" + cli.InfoValue(c.rootCert)
	}
	return "psql " + cli.ShellQuoteDouble(info)
}

// sayConnect says where a new database is and how to get in.
func sayConnect(ctx context.Context, o *cli.Options, t *cli.Target, h *home.Home) {
	v := viewOf(t)
	o.Say("%s is %s at %s", v.Name, v.Status, v.Endpoint)
	o.Say("  %s", o.Pasteable("howdah db connect "+v.Name))
	c, err := connection(ctx, t, h, false)
	if err == nil && h != nil && Passwords(h).Has(t.ResourceID()) {
		o.Say("  %s", c.line())
	}
	if err == nil && c.name != "" {
		o.Say("  by its name, which needs no resolver (asks for the password):\n  %s", c.nameLine())
	}
}
