package db

import (
	"fmt"
	"time"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

// MembersText writes the table of a database's members.
func MembersText(o *cli.Options, d admin.Database, indent string) error {
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
	if err := t.Write(o.Screen.Stdout, o.Screen.Color()); err != nil {
		return err
	}
	for _, m := range d.Members {
		if m.Cache != nil {
			o.Say("%s%s", indent, cacheText(m.Name, *m.Cache))
		}
	}
	if d.Cold != "" {
		o.Say("%scluster cache management is off: %s", indent, d.Cold)
	}
	return nil
}

// cacheText says how much of its primary's cache a standby has.
func cacheText(name string, c admin.Cache) string {
	text := "nothing is known yet of the cache of " + name
	if c.Known {
		text = fmt.Sprintf("the cache of %s has %.0f %% of what is hot in the primary's", name, c.Percent)
	}
	if c.Outside {
		text += "; its agent sees to it until PostgreSQL is rebooted with the library ccm"
	}
	if c.Why != "" {
		text += "; held up: " + c.Why
	}
	return text
}

func roleCell(m admin.Member) screen.Cell {
	if m.Role == admin.RolePrimary {
		return screen.Cell{Text: m.Role, Style: screen.Bold}
	}
	return screen.Cell{Text: m.Role}
}

func stateCell(m admin.Member) screen.Cell {
	text := cli.JoinTexts(", ", m.State, m.Problem, m.Going)
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
	return cli.JoinTexts(", ", bytes, seconds)
}

// StepsText says what is going on, and since when.
func StepsText(o *cli.Options, d admin.Database, indent string) {
	if len(d.Steps) == 0 {
		return
	}
	last := d.Steps[len(d.Steps)-1]
	o.Say("%s%s %s, for %s", indent, o.Screen.Paint(screen.Yellow, "going on:"), last.Name, screen.Span(o.Now().Sub(last.Began)))
	for _, m := range d.Members {
		if m.Restoring != nil {
			o.Say("%s          %s", indent, restoringText(*m.Restoring, o.Now()))
		}
	}
}

// restoringText says how far a restore is, and how long the copy may still take if that can be told.
func restoringText(r admin.Restoring, now time.Time) string {
	text, done := "copied ", screen.Bytes(r.Done)
	if r.Phase != "files" {
		text = "all files are there; replayed WAL: "
	}
	if r.Of == 0 {
		return text + done
	}
	text += fmt.Sprintf("%s of %s (%d %%)", done, screen.Bytes(r.Of), 100*r.Done/r.Of)
	if past := now.Sub(r.Began); r.Phase == "files" && r.Done > 0 && r.Done < r.Of && past > 0 {
		text += ", about " + screen.Span(time.Duration(float64(past)*float64(r.Of-r.Done)/float64(r.Done))) + " left"
	}
	return text
}

// ProblemsText says what is wrong, each with the command that mends it.
func ProblemsText(o *cli.Options, problems []admin.Problem, indent string) {
	for _, p := range problems {
		o.Say("%s%s %s: %s", indent, o.Screen.Paint(screen.Red, "wrong:"), p.Subject, p.Text)
		if p.Command != "" {
			o.Say("%s       %s", indent, o.Screen.Paint(screen.Bold, o.Pasteable(p.Command)))
		}
		o.Say("%s       more in docs/runbook/%s.md", indent, p.Code)
	}
}
