package hosts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/db"
	"howdah/internal/cli/screen"
)

// statusText writes the one screen that tells everything.
func statusText(o *cli.Options, s admin.Status) error {
	o.Say("%s  %s  %s  version %s", o.Screen.Paint(screen.Bold, "Howdah "+s.Home), s.Region,
		s.Time.UTC().Format(time.DateTime)+"Z", s.Version)
	if err := controlText(o, s); err != nil {
		return err
	}
	if len(s.Hosts) > 0 {
		o.Say("")
		if err := hostsTable(o, s.Hosts); err != nil {
			return err
		}
	}
	if err := databasesText(o, s); err != nil {
		return err
	}
	for _, f := range s.Fences {
		o.Say("\n%s %s", o.Screen.Paint(screen.Red, "fence case"), fenceLine(f))
	}
	if s.LastFailover != nil {
		o.Say("\nlast failover  %s", db.FailoverLine(*s.LastFailover))
	}
	if len(s.Problems) > 0 {
		o.Say("")
	}
	db.ProblemsText(o, s.Problems, "")
	if len(s.Problems) == 0 {
		o.Say("\n%s", o.Screen.Paint(screen.Green, "all is well"))
	}
	return nil
}

func controlText(o *cli.Options, s admin.Status) error {
	o.Say("")
	var t screen.Table
	t.Head("CONTROL PLANE", "URL", "STATE", "ETCD")
	etcd := map[string]admin.EtcdMember{}
	for _, m := range s.Etcd {
		etcd[m.Name] = m
	}
	for _, c := range s.Control {
		t.Row(c.Name, c.URL, controlCell(c), etcdCell(etcd[c.Name]))
		delete(etcd, c.Name)
	}
	for _, m := range s.Etcd {
		if _, left := etcd[m.Name]; left {
			t.Row(m.Name, m.URL, "", etcdCell(m))
		}
	}
	if err := t.Write(o.Screen.Stdout, o.Screen.Color()); err != nil {
		return err
	}
	if len(s.Edges) == 0 {
		return nil
	}
	var edges screen.Table
	edges.Head("EDGE", "STATE", "DRIVER", "CLIENT ADDRESS", "COST")
	for _, e := range s.Edges {
		seen := "the edge's"
		if e.ClientAddressVisible {
			seen = "visible"
		}
		edges.Row(e.Name, edgeCell(e), e.Driver, seen, e.Cost)
	}
	o.Say("")
	if err := edges.Write(o.Screen.Stdout, o.Screen.Color()); err != nil {
		return err
	}
	namesText(o, s)
	return nil
}

// namesText says where resolvers are to ask for the names of databases.
func namesText(o *cli.Options, s admin.Status) {
	if s.Zone == "" {
		return
	}
	var at []string
	for _, e := range s.Edges {
		if e.Running && e.Names != "" {
			at = append(at, e.Names)
		}
	}
	if len(at) == 0 {
		o.Say("\nnames in %s are answered nowhere: the log of the edge says why", s.Zone)
		return
	}
	o.Say("\nnames in %s are answered at %s", s.Zone, strings.Join(at, ", "))
}

func edgeCell(e admin.Edge) screen.Cell {
	if e.Running {
		return screen.Cell{Text: "running", Style: screen.Green}
	}
	return screen.Cell{Text: "away", Style: screen.Red}
}

func controlCell(c admin.Control) screen.Cell {
	switch {
	case c.Leading:
		return screen.Cell{Text: "leading", Style: screen.Green}
	case c.Running:
		return screen.Cell{Text: "running", Style: screen.Green}
	}
	return screen.Cell{Text: "down", Style: screen.Red}
}

func etcdCell(m admin.EtcdMember) screen.Cell {
	if !m.Healthy {
		return screen.Cell{Text: cli.JoinTexts(": ", "down", m.Error), Style: screen.Red}
	}
	if m.Full {
		return screen.Cell{Text: "full: takes no writes", Style: screen.Red}
	}
	text := cli.JoinTexts(", ", "healthy", cli.Yes(m.Leader, "leader"), cli.Yes(m.Learner, "learner"), screen.Bytes(m.Bytes))
	return screen.Cell{Text: text, Style: screen.Green}
}

// hostsTable writes one line for each host.
func hostsTable(o *cli.Options, hosts []admin.Host) error {
	var t screen.Table
	t.Head("HOST", "ZONE", "ADDRESS", "STATE", "MEMBERS", "CPUS", "MEMORY", "DISK FREE", "POSTGRESQL", "CONTAINMENT", "LIMITS")
	unlimited := map[string][]string{} // hosts by what is not limited there
	shared := map[string][]string{}    // hosts by why databases are not kept apart there
	for _, h := range hosts {
		held, missing := limitsOf(h)
		if missing != "" {
			unlimited[missing] = append(unlimited[missing], h.Name)
		}
		if h.Shared != "" {
			shared[h.Shared] = append(shared[h.Shared], h.Name)
		}
		t.Row(h.Name, h.Zone, h.Address, hostCell(h), fmt.Sprint(len(h.Members)), fmt.Sprint(h.CPUs),
			share(h.Committed, h.Memory), share(h.DiskFree, h.Disk), strings.Join(h.Postgres, " "), h.Containment, limitsCell(held, missing))
	}
	if err := t.Write(o.Screen.Stdout, o.Screen.Color()); err != nil {
		return err
	}
	for _, missing := range slices.Sorted(maps.Keys(unlimited)) {
		o.Say("%s instance classes do not limit %s on %s: control groups are missing there (docs/runbook/no-limits.md)",
			o.Screen.Paint(screen.Yellow, "note:"), missing, strings.Join(unlimited[missing], ", "))
	}
	for _, why := range slices.Sorted(maps.Keys(shared)) {
		o.Say("%s databases on %s share an operating-system user: %s (docs/runbook/shared-user.md)",
			o.Screen.Paint(screen.Yellow, "note:"), strings.Join(shared[why], ", "), why)
	}
	return nil
}

// limitsOf returns what instance classes limit on a host, and what they do not. It reads the lines
// "cpu limits: v2", "io limits: none (why)" that the agent wrote.
func limitsOf(h admin.Host) (held, missing string) {
	var yes, no []string
	for line := range strings.Lines(h.Limits) {
		name, version, ok := strings.Cut(strings.TrimSpace(line), " limits: ")
		switch {
		case !ok || strings.Contains(name, " "):
		case strings.HasPrefix(version, "none"):
			no = append(no, name)
		default:
			yes = append(yes, name)
		}
	}
	if h.StorageLimit == admin.StorageHeld {
		yes = append(yes, "storage")
	}
	return strings.Join(yes, " "), strings.Join(no, ", ")
}

func limitsCell(held, missing string) screen.Cell {
	switch {
	case held == "" && missing != "":
		return screen.Cell{Text: "none", Style: screen.Yellow}
	case missing != "":
		return screen.Cell{Text: held, Style: screen.Yellow}
	}
	return screen.Cell{Text: held}
}

// share returns "PART of WHOLE".
func share(part, whole int64) string { return screen.Bytes(part) + " of " + screen.Bytes(whole) }

func hostCell(h admin.Host) screen.Cell {
	text, style := h.State, screen.Green
	switch {
	case h.State == admin.HostLost:
		style = screen.Red
	case h.State != admin.HostAlive:
		style = screen.Yellow
	}
	if h.Draining {
		text += ", draining"
		if style == screen.Green {
			style = screen.Yellow
		}
	}
	return screen.Cell{Text: text, Style: style}
}

func databasesText(o *cli.Options, s admin.Status) error {
	if len(s.Databases) == 0 {
		o.Say("\nno databases: create one with %s", o.Pasteable("howdah db create NAME"))
		return nil
	}
	for _, d := range s.Databases {
		cell := db.StatusCell(d.Status)
		o.Say("\n%s  %s  %s", o.Screen.Paint(screen.Bold, d.Name), o.Screen.Paint(cell.Style, cell.Text), databaseLine(s, d))
		for _, e := range d.Endpoints {
			o.Say("  %s %s%s", db.EndpointTitle(e), db.EndpointText(e), db.LeadsText(d, e))
		}
		if line := db.BackupsLine(d.Backups); line != "" {
			o.Say("  backups: %s", line)
		}
		if err := db.MembersText(o, d, "  "); err != nil {
			return err
		}
		db.StepsText(o, d, "  ")
	}
	hostKeysText(o, s.Databases)
	return nil
}

// hostKeysText names the databases that hosts' keys open.
func hostKeysText(o *cli.Options, all []admin.Database) {
	var names []string
	for _, d := range all {
		if d.HostKeys {
			names = append(names, d.Name)
		}
	}
	if len(names) > 0 {
		o.Say("\n%s the key of any host copies %s: their members are moved to keys of their own when every part of the home is of this release (docs/runbook/host-keys.md)",
			o.Screen.Paint(screen.Yellow, "note:"), strings.Join(names, ", "))
	}
}

func databaseLine(s admin.Status, d admin.Database) string {
	az := cli.Yes(d.MultiAZ, "Multi-AZ")
	scope := ""
	if d.Account != s.Account || d.Region != s.Region {
		scope = "account " + d.Account + " in " + d.Region
	}
	follows := ""
	if d.Follows != "" {
		follows = "replica of " + d.Follows
	}
	kind := cli.Yes(d.Kind == admin.KindCluster, "cluster")
	return cli.JoinTexts(", ", kind, d.Engine+" "+d.Version, d.Class, az, follows, scope)
}

func fenceLine(f admin.Fence) string {
	return cli.JoinTexts(", ", f.Database+"/"+f.Member+" on "+f.Host+" is "+f.Phase,
		"since "+f.Opened.UTC().Format(time.TimeOnly)+"Z", f.Proof, strings.Join(f.Evidence, "; "))
}
