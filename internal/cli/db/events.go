package db

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/internal/admin/client"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

// followEvery is how often --follow asks for new events.
const followEvery = time.Second

// maxSince is how far back events are kept (event.Keep).
const maxSince = 14 * 24 * time.Hour

// eventView is an event as JSON.
type eventView struct {
	At         time.Time `json:"at"`
	Kind       string    `json:"kind"` // db-instance, db-cluster
	Source     string    `json:"source"`
	Categories []string  `json:"categories"`
	Message    string    `json:"message"`
	ARN        string    `json:"arn"`
}

func newEvents(o *cli.Options) *cobra.Command {
	var since time.Duration
	var follow bool
	cmd := &cobra.Command{
		Use: "events [NAME]", Short: "Show what happened to databases", Args: cli.Args(cobra.MaximumNArgs(1)),
		Aliases: []string{"event"}, ValidArgsFunction: o.CompleteNames,
		Example: "  howdah events --since 24h\n  howdah events orders --follow",
		RunE: func(cmd *cobra.Command, names []string) error {
			if since <= 0 || since > maxSince {
				return fmt.Errorf("--since is more than 0 and up to %dh: events are kept for 14 days: %w", int(maxSince.Hours()), cli.ErrUsage)
			}
			api, err := o.API(cmd)
			if err != nil {
				return err
			}
			e := eventReader{api: api, name: strings.ToLower(strings.Join(names, "")), from: o.Now().Add(-since)}
			if follow {
				return followEvents(cmd.Context(), o, &e)
			}
			views, err := e.read(cmd.Context())
			if err != nil {
				return err
			}
			return o.Print(views, func() error { return eventsText(o, views) })
		},
	}
	cmd.Flags().DurationVar(&since, "since", time.Hour, "how far back")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new ones, until Ctrl-C")
	return cmd
}

// eventReader reads events from a moment on. Each later read returns the events that came since.
type eventReader struct {
	api  *client.Client
	name string
	from time.Time
	seen map[string]bool // of the newest moment, which is asked for again
}

func (e *eventReader) read(ctx context.Context) ([]eventView, error) {
	views := []eventView{}
	// Without a duration the API answers events since StartTime.
	in := &rds.DescribeEventsMessage{StartTime: &e.from}
	for {
		var out rds.EventsMessage
		if err := e.api.RDS(ctx, "DescribeEvents", in, &out); err != nil {
			return nil, err
		}
		for _, event := range out.Events {
			v := eventOf(event)
			if (e.name == "" || v.Source == e.name) && !e.seen[v.key()] {
				views = append(views, v)
			}
		}
		if cli.Value(out.Marker) == "" {
			break
		}
		in.Marker = out.Marker
	}
	slices.SortStableFunc(views, func(a, b eventView) int { return a.At.Compare(b.At) })
	e.advance(views)
	return views, nil
}

// advance moves on to the newest event. Times in answers are cut to milliseconds, so events of that
// moment are asked for again, and left out.
func (e *eventReader) advance(views []eventView) {
	if len(views) == 0 {
		return
	}
	newest := views[len(views)-1].At
	if newest.After(e.from) {
		e.from, e.seen = newest, map[string]bool{}
	}
	for _, v := range views {
		if !v.At.Before(newest) {
			e.seen[v.key()] = true
		}
	}
}

func (v eventView) key() string { return v.At.String() + v.ARN + v.Message }

func eventOf(e rds.Event) eventView {
	return eventView{
		At: cli.Value(e.Date), Kind: cli.Value(e.SourceType), Source: cli.Value(e.SourceIdentifier),
		Categories: e.EventCategories, Message: cli.Value(e.Message), ARN: cli.Value(e.SourceArn),
	}
}

func eventsText(o *cli.Options, views []eventView) error {
	if len(views) == 0 {
		o.Say("No events.")
		return nil
	}
	var t screen.Table
	t.Head("TIME", "SOURCE", "MESSAGE")
	for _, v := range views {
		t.Row(v.At.UTC().Format(time.DateTime)+"Z", v.Source, eventCell(v))
	}
	return t.Write(o.Screen.Stdout, o.Screen.Color())
}

func eventCell(v eventView) screen.Cell {
	style := screen.None
	switch {
	case slices.Contains(v.Categories, "failure"):
		style = screen.Red
	case slices.Contains(v.Categories, "failover"), slices.Contains(v.Categories, "low storage"):
		style = screen.Yellow
	}
	return screen.Cell{Text: v.Message, Style: style}
}

// followEvents writes a line for each event as it comes, until Ctrl-C. With JSON
// each line is a document.
func followEvents(ctx context.Context, o *cli.Options, e *eventReader) error {
	for {
		views, err := e.read(ctx)
		if err != nil {
			return cli.Stopped(ctx, err)
		}
		for _, v := range views {
			if err := eventLine(o, v); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followEvery):
		}
	}
}

func eventLine(o *cli.Options, v eventView) error {
	if o.JSON() {
		return json.NewEncoder(o.Screen.Stdout).Encode(v)
	}
	cell := eventCell(v)
	o.Say("%sZ  %s  %s", v.At.UTC().Format(time.DateTime), v.Source, o.Screen.Paint(cell.Style, cell.Text))
	return nil
}
