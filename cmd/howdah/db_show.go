package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/cmd/howdah/screen"
	"howdah/internal/admin"
	"howdah/internal/failover/postmortem"
)

func newDBShow(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show everything about a database", Args: oneName,
		Aliases: []string{"describe", "get", "status"}, ValidArgsFunction: o.completeNames,
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

func runDBShow(cmd *cobra.Command, o *options, name string) error {
	ctx := cmd.Context()
	api, err := o.api(cmd)
	if err != nil {
		return err
	}
	t, err := find(ctx, api, name)
	if err != nil {
		return err
	}
	v := showView{Resource: viewOf(&t), Problems: []admin.Problem{}}
	var problems []admin.Problem
	if v.Database, problems, err = t.truth(ctx); err != nil {
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
	return o.print(v, func() error { return o.showText(v) })
}

func (o *options) showText(v showView) error {
	r := v.Resource
	cell := statusCell(r.Status)
	o.say("%s %s  %s", r.Kind, o.screen.Paint(screen.Bold, r.Name), o.screen.Paint(cell.Style, cell.Text))
	facts := screen.Table{Indent: "  "}
	for _, f := range factsOf(v) {
		facts.Row(screen.Cell{Text: f[0], Style: screen.Dim}, f[1])
	}
	if err := facts.Write(o.screen.Stdout, o.screen.Color()); err != nil {
		return err
	}
	if d := v.Database; d != nil {
		if err := o.membersText(*d, "  "); err != nil {
			return err
		}
		o.stepsText(*d, "  ")
	}
	o.problemsText(v.Problems, "  ")
	if v.LastFailover != nil {
		o.say("  last failover  %s", failoverLine(*v.LastFailover))
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
			add(endpointTitle(e), e.Address+leadsText(*v.Database, e))
		}
	} else {
		add("endpoint", r.Endpoint)
	}
	kind := []string{r.Engine + " " + r.EngineVersion, r.Class}
	if r.StorageGiB > 0 {
		kind = append(kind, fmt.Sprintf("%d GiB", r.StorageGiB))
	}
	kind = append(kind, r.az())
	add("engine", joinTexts(", ", kind...))
	add("cluster", r.Cluster)
	add("replica of", r.Follows)
	add("master user", r.MasterUser)
	add("password", r.MasterSecret)
	add("database", r.DBName)
	add("created", r.Created.UTC().Format(time.DateTime)+"Z")
	add("resource id", r.ResourceID)
	if d := v.Database; d != nil {
		add("protection", yes(d.Protected, "it cannot be deleted"))
		add("pending", yes(d.Waiting, joinTexts(" ", cmp.Or(strings.Join(r.Pending, ", "), "modifications"), "at the maintenance window")))
	}
	return facts
}

func yes(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// joinTexts joins the texts that are not empty.
func joinTexts(separator string, texts ...string) string {
	var some []string
	for _, t := range texts {
		if t != "" {
			some = append(some, t)
		}
	}
	return strings.Join(some, separator)
}

func endpointTitle(e admin.Endpoint) string {
	switch e.Kind {
	case admin.EndpointWriter:
		return "endpoint"
	case admin.EndpointReader:
		return "reader endpoint"
	}
	return cmp.Or(e.Name, e.Kind) + " endpoint"
}

// leadsText says where an endpoint leads. While a host is silent, the endpoint still leads there,
// until the host's members are fenced.
func leadsText(d admin.Database, e admin.Endpoint) string {
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
