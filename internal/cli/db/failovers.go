package db

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
	"howdah/internal/failover/postmortem"
)

func newFailovers(o *cli.Options) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "failovers [NAME]", Short: "Show the post-mortem of each failover, newest first", Args: cli.Args(cobra.MaximumNArgs(1)),
		Aliases: []string{"failover", "postmortem"}, ValidArgsFunction: o.CompleteNames,
		Long: "Shows of each failover what caused it, how the old primary was fenced, when each phase ended, counted from the " +
			"detection, and whether anything was discarded.",
		Example: "  howdah failovers\n  howdah failovers orders --limit 1",
		RunE: func(cmd *cobra.Command, names []string) error {
			if limit < 0 {
				return fmt.Errorf("--limit cannot be negative: %w", cli.ErrUsage)
			}
			api, err := o.API(cmd)
			if err != nil {
				return err
			}
			records, err := failovers(cmd.Context(), api, strings.Join(names, ""), limit)
			if err != nil {
				return err
			}
			return o.Print(records, func() error { return failoversText(o, records) })
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 10, "how many to show; 0: all")
	return cmd
}

func failovers(ctx context.Context, api *client.Client, name string, limit int) ([]postmortem.Record, error) {
	var out admin.FailoversAnswer
	err := api.Admin(ctx, admin.VerbFailovers, admin.FailoversRequest{Name: name, Limit: limit}, &out)
	return out.Failovers, err
}

func failoversText(o *cli.Options, records []postmortem.Record) error {
	if len(records) == 0 {
		o.Say("No failovers.")
		return nil
	}
	for i, r := range records {
		if i > 0 {
			o.Say("")
		}
		o.Say("%s  %s", o.Screen.Paint(screen.Bold, r.Name), happened(r).UTC().Format(time.DateTime)+"Z")
		t := screen.Table{Indent: "  "}
		for _, line := range autopsy(r) {
			t.Row(screen.Cell{Text: line[0], Style: screen.Dim}, line[1])
		}
		if err := t.Write(o.Screen.Stdout, o.Screen.Color()); err != nil {
			return err
		}
	}
	return nil
}

// happened returns when anyone first noticed the failover.
func happened(r postmortem.Record) time.Time {
	first := r.Recorded
	for _, at := range []time.Time{r.Detected, r.Fenced, r.Revoked, r.Elected, r.Promoted} {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// autopsy returns the lines of a post-mortem: name and text.
func autopsy(r postmortem.Record) [][2]string {
	lines := [][2]string{
		{"cause", r.Cause},
		{"primary", fmt.Sprintf("%s on %s -> %s on %s", r.From, r.FromHost, r.To, r.ToHost)},
	}
	if r.Proof != "" {
		lines = append(lines, [2]string{"fenced by", cli.JoinTexts(": ", r.Method, r.Proof)})
	}
	lines = append(lines, phases(r)...)
	lines = append(lines, [2]string{"sessions", fmt.Sprintf("%d were cut", r.Sessions)})
	if r.Timeline > 0 {
		lines = append(lines, [2]string{"timeline", timelineText(r)})
	}
	lines = append(lines, [2]string{"discarded", discardedText(r)})
	for i, e := range r.Evidence {
		name := ""
		if i == 0 {
			name = "evidence"
		}
		lines = append(lines, [2]string{name, e})
	}
	return lines
}

// phases returns the stages that were seen, with the time since the first of them.
func phases(r postmortem.Record) [][2]string {
	began := happened(r)
	var lines [][2]string
	for _, p := range []struct {
		name string
		at   time.Time
	}{
		{"detected", r.Detected}, {"fenced", r.Fenced}, {"key revoked", r.Revoked}, {"elected", r.Elected},
		{"promoted", r.Promoted}, {"switched", r.Switched}, {"first write", r.FirstWrite},
	} {
		switch {
		case p.at.IsZero():
		case p.at.Equal(began):
			lines = append(lines, [2]string{p.name, p.at.UTC().Format("15:04:05.000Z")})
		default:
			lines = append(lines, [2]string{p.name, fmt.Sprintf("%+.3f s", p.at.Sub(began).Seconds())})
		}
	}
	return lines
}

func timelineText(r postmortem.Record) string {
	text := fmt.Sprint(r.Timeline)
	if r.Fork > 0 {
		text += " from " + r.Fork.String()
	}
	if r.OldEnd > 0 {
		text += ", the old primary ended at " + r.OldEnd.String()
	}
	return text
}

// discardedText says what was discarded. Nothing that was acknowledged ever is.
func discardedText(r postmortem.Record) string {
	switch {
	case r.Planned:
		return "nothing: the old primary had sent everything before it ended"
	case r.Discarded < 0:
		return "not known: the end of the old primary's WAL was not read"
	case r.Discarded == 0:
		return "nothing"
	}
	return screen.Bytes(r.Discarded) + " of WAL that no client was told about"
}

// FailoverLine returns a failover in one line.
func FailoverLine(r postmortem.Record) string {
	outage := ""
	if d := r.Outage(); d > 0 {
		outage = "writes again after " + screen.Span(d)
	}
	return cli.JoinTexts(", ", r.Name+" "+happened(r).UTC().Format(time.DateTime)+"Z", r.FromHost+" -> "+r.ToHost, r.Cause, outage)
}
