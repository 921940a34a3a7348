package db

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
	"howdah/internal/failover/postmortem"
)

func newDBShow(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show everything about a database", Args: cli.OneName,
		Aliases: []string{"describe", "get", "status"}, ValidArgsFunction: o.CompleteNames,
		Example: "  howdah db show orders",
		RunE:    func(cmd *cobra.Command, args []string) error { return runDBShow(cmd, o, args[0]) },
	}
}

// showView is what `howdah db show` answers as JSON.
type showView struct {
	Resource     dbView             `json:"resource"`
	Database     *admin.Database    `json:"database"`
	Problems     []admin.Problem    `json:"problems"`
	LastFailover *postmortem.Record `json:"last_failover,omitempty"`
}

func runDBShow(cmd *cobra.Command, o *cli.Options, name string) error {
	ctx := cmd.Context()
	api, err := o.API(cmd)
	if err != nil {
		return err
	}
	t, err := cli.Find(ctx, api, name)
	if err != nil {
		return err
	}
	v := showView{Resource: viewOf(&t), Problems: []admin.Problem{}}
	var problems []admin.Problem
	if v.Database, problems, err = t.Truth(ctx); err != nil {
		return err
	}
	v.Problems = append(v.Problems, problems...)
	if v.Database != nil {
		records, err := failovers(ctx, api, v.Database.ResourceID, 1)
		if err != nil {
			return err
		}
		if len(records) > 0 {
			v.LastFailover = &records[0]
		}
	}
	return o.Print(v, func() error { return showText(o, v) })
}

func showText(o *cli.Options, v showView) error {
	r := v.Resource
	cell := StatusCell(r.Status)
	o.Say("%s %s  %s", r.Kind, o.Screen.Paint(screen.Bold, r.Name), o.Screen.Paint(cell.Style, cell.Text))
	facts := screen.Table{Indent: "  "}
	for _, f := range factsOf(v) {
		facts.Row(screen.Cell{Text: f[0], Style: screen.Dim}, f[1])
	}
	if err := facts.Write(o.Screen.Stdout, o.Screen.Color()); err != nil {
		return err
	}
	if d := v.Database; d != nil {
		if err := MembersText(o, *d, "  "); err != nil {
			return err
		}
		StepsText(o, *d, "  ")
	}
	ProblemsText(o, v.Problems, "  ")
	if v.LastFailover != nil {
		o.Say("  last failover  %s", FailoverLine(*v.LastFailover))
	}
	return nil
}

// factsOf returns lines of name and value.
func factsOf(v showView) [][2]string {
	r := v.Resource
	facts := [][2]string{}
	add := func(name, text string) {
		if text != "" {
			facts = append(facts, [2]string{name, text})
		}
	}
	if v.Database != nil && r.Cluster == "" {
		for _, e := range v.Database.Endpoints {
			add(EndpointTitle(e), EndpointText(e)+LeadsText(*v.Database, e))
		}
	} else {
		add("endpoint", r.Endpoint)
	}
	kind := []string{r.Engine + " " + r.EngineVersion, r.Class}
	if r.StorageGiB > 0 {
		kind = append(kind, fmt.Sprintf("%d GiB", r.StorageGiB))
	}
	kind = append(kind, r.az())
	add("engine", cli.JoinTexts(", ", kind...))
	add("cluster", r.Cluster)
	add("replica of", r.Follows)
	add("master user", r.MasterUser)
	add("password", r.MasterSecret)
	add("database", r.DBName)
	add("created", r.Created.UTC().Format(time.DateTime)+"Z")
	add("resource id", r.ResourceID)
	if d := v.Database; d != nil {
		add("backups", BackupsLine(d.Backups))
		add("protection", cli.Yes(d.Protected, "it cannot be deleted"))
		add("pending", cli.Yes(d.Waiting, cli.JoinTexts(" ", cmp.Or(strings.Join(r.Pending, ", "), "modifications"), "at the maintenance window")))
	}
	return facts
}

// EndpointTitle returns what an endpoint is called.
func EndpointTitle(e admin.Endpoint) string {
	switch e.Kind {
	case admin.EndpointWriter:
		return "endpoint"
	case admin.EndpointReader:
		return "reader endpoint"
	}
	return cmp.Or(e.Name, e.Kind) + " endpoint"
}

// EndpointText returns where an endpoint is: its address, and its name if it has one.
func EndpointText(e admin.Endpoint) string {
	if e.Host == "" {
		return e.Address
	}
	return e.Host + ", " + e.Address
}

// LeadsText says where an endpoint leads. While a host is silent, the endpoint still leads there,
// until the host's members are fenced.
func LeadsText(d admin.Database, e admin.Endpoint) string {
	if len(e.LeadsTo) > 0 {
		return " -> " + strings.Join(e.LeadsTo, ", ")
	}
	for _, m := range d.Members {
		if m.Role == admin.RolePrimary && m.State == "host lost" && e.Kind == admin.EndpointWriter {
			return " -> " + m.Name + ", if its host is not dead but silent"
		}
	}
	return " (leads nowhere now)"
}
