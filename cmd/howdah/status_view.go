package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"howdah/cmd/howdah/screen"
	"howdah/internal/admin"
)

// statusText writes the one screen that tells everything.
func (o *options) statusText(s admin.Status) error {
	o.say("%s  %s  %s  version %s", o.screen.Paint(screen.Bold, "Howdah "+s.Home), s.Region,
		s.Time.UTC().Format(time.DateTime)+"Z", s.Version)
	if err := o.controlText(s); err != nil {
		return err
	}
	if len(s.Hosts) > 0 {
		o.say("")
		if err := o.hostsTable(s.Hosts); err != nil {
			return err
		}
	}
	if err := o.databasesText(s); err != nil {
		return err
	}
	for _, f := range s.Fences {
		o.say("\n%s %s", o.screen.Paint(screen.Red, "fence case"), fenceLine(f))
	}
	if s.LastFailover != nil {
		o.say("\nlast failover  %s", failoverLine(*s.LastFailover))
	}
	if len(s.Problems) > 0 {
		o.say("")
	}
	o.problemsText(s.Problems, "")
	if len(s.Problems) == 0 {
		o.say("\n%s", o.screen.Paint(screen.Green, "all is well"))
	}
	return nil
}

func (o *options) controlText(s admin.Status) error {
	o.say("")
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
	if err := t.Write(o.screen.Stdout, o.screen.Color()); err != nil {
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
	o.say("")
	return edges.Write(o.screen.Stdout, o.screen.Color())
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
		return screen.Cell{Text: joinTexts(": ", "down", m.Error), Style: screen.Red}
	}
	if m.Full {
		return screen.Cell{Text: "full: takes no writes", Style: screen.Red}
	}
	text := joinTexts(", ", "healthy", yes(m.Leader, "leader"), yes(m.Learner, "learner"), screen.Bytes(m.Bytes))
	return screen.Cell{Text: text, Style: screen.Green}
}

// hostsTable writes one line for each host.
func (o *options) hostsTable(hosts []admin.Host) error {
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
	if err := t.Write(o.screen.Stdout, o.screen.Color()); err != nil {
		return err
	}
	for _, missing := range slices.Sorted(maps.Keys(unlimited)) {
		o.say("%s instance classes do not limit %s on %s: control groups are missing there (docs/runbook/no-limits.md)",
			o.screen.Paint(screen.Yellow, "note:"), missing, strings.Join(unlimited[missing], ", "))
	}
	for _, why := range slices.Sorted(maps.Keys(shared)) {
		o.say("%s databases on %s share an operating-system user: %s (docs/runbook/shared-user.md)",
			o.screen.Paint(screen.Yellow, "note:"), strings.Join(shared[why], ", "), why)
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

func (o *options) databasesText(s admin.Status) error {
	if len(s.Databases) == 0 {
		o.say("\nno databases: create one with %s", o.pasteable("howdah db create NAME"))
		return nil
	}
	for _, d := range s.Databases {
		cell := statusCell(d.Status)
		o.say("\n%s  %s  %s", o.screen.Paint(screen.Bold, d.Name), o.screen.Paint(cell.Style, cell.Text), databaseLine(s, d))
		for _, e := range d.Endpoints {
			o.say("  %s %s%s", endpointTitle(e), e.Address, leadsText(d, e))
		}
		if err := o.membersText(d, "  "); err != nil {
			return err
		}
		o.stepsText(d, "  ")
	}
	o.hostKeysText(s.Databases)
	return nil
}

// hostKeysText names the databases that hosts' keys open.
func (o *options) hostKeysText(all []admin.Database) {
	var names []string
	for _, d := range all {
		if d.HostKeys {
			names = append(names, d.Name)
		}
	}
	if len(names) > 0 {
		o.say("\n%s the key of any host copies %s: their members are moved to keys of their own when every part of the home is of this release (docs/runbook/host-keys.md)",
			o.screen.Paint(screen.Yellow, "note:"), strings.Join(names, ", "))
	}
}

func databaseLine(s admin.Status, d admin.Database) string {
	az := yes(d.MultiAZ, "Multi-AZ")
	scope := ""
	if d.Account != s.Account || d.Region != s.Region {
		scope = "account " + d.Account + " in " + d.Region
	}
	follows := ""
	if d.Follows != "" {
		follows = "replica of " + d.Follows
	}
	kind := yes(d.Kind == admin.KindCluster, "cluster")
	return joinTexts(", ", kind, d.Engine+" "+d.Version, d.Class, az, follows, scope)
}

// membersText writes the table of a database's members.
func (o *options) membersText(d admin.Database, indent string) error {
	t := screen.Table{Indent: indent}
	t.Head("MEMBER", "INSTANCE", "ROLE", "HOST", "ZONE", "STATE", "SYNC", "LAG", "TIMELINE", "LSN", "ADDRESS")
	for _, m := range d.Members {
		timeline, position := "", ""
		if m.Timeline > 0 {
			timeline, position = fmt.Sprint(m.Timeline), m.LSN.String()
		}
		t.Row(m.Name, m.Instance, roleCell(m), m.Host, m.Zone, stateCell(m), syncCell(m), lagText(m), timeline, position, m.Address)
	}
	if t.Rows() == 1 {
		return nil
	}
	return t.Write(o.screen.Stdout, o.screen.Color())
}

func roleCell(m admin.Member) screen.Cell {
	if m.Role == admin.RolePrimary {
		return screen.Cell{Text: m.Role, Style: screen.Bold}
	}
	return screen.Cell{Text: m.Role}
}

func stateCell(m admin.Member) screen.Cell {
	text := joinTexts(", ", m.State, m.Problem, m.Going)
	style := screen.Yellow
	switch {
	case m.Problem != "" || m.State == "host lost" || m.State == "down":
		style = screen.Red
	case m.Ready && m.Going == "":
		style = screen.Green
	}
	return screen.Cell{Text: text, Style: style}
}

func syncCell(m admin.Member) screen.Cell {
	if m.Sync == admin.SyncAsync {
		return screen.Cell{Text: m.Sync, Style: screen.Yellow}
	}
	return screen.Cell{Text: m.Sync}
}

// lagText says how far a standby is behind: in bytes, and in time if that tells more.
func lagText(m admin.Member) string {
	bytes, seconds := "", ""
	if m.LagBytes != nil {
		bytes = screen.Bytes(*m.LagBytes)
	}
	// A standby that has everything is not behind, however old the last commit is.
	caughtUp := m.LagBytes != nil && *m.LagBytes == 0
	if m.LagSeconds != nil && *m.LagSeconds >= 0.1 && !caughtUp {
		seconds = screen.Span(time.Duration(*m.LagSeconds * float64(time.Second)))
	}
	return joinTexts(", ", bytes, seconds)
}

// stepsText says what is going on, and since when.
func (o *options) stepsText(d admin.Database, indent string) {
	if len(d.Steps) == 0 {
		return
	}
	last := d.Steps[len(d.Steps)-1]
	o.say("%s%s %s, for %s", indent, o.screen.Paint(screen.Yellow, "going on:"), last.Name, screen.Span(o.now().Sub(last.Began)))
}

// problemsText says what is wrong, each with the command that mends it.
func (o *options) problemsText(problems []admin.Problem, indent string) {
	for _, p := range problems {
		o.say("%s%s %s: %s", indent, o.screen.Paint(screen.Red, "wrong:"), p.Subject, p.Text)
		if p.Command != "" {
			o.say("%s       %s", indent, o.screen.Paint(screen.Bold, o.pasteable(p.Command)))
		}
		o.say("%s       more in docs/runbook/%s.md", indent, p.Code)
	}
}

func fenceLine(f admin.Fence) string {
	return joinTexts(", ", f.Database+"/"+f.Member+" on "+f.Host+" is "+f.Phase,
		"since "+f.Opened.UTC().Format(time.TimeOnly)+"Z", f.Proof, strings.Join(f.Evidence, "; "))
}
