package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/api/rds"
	"howdah/cmd/howdah/screen"
	"howdah/internal/admin/client"
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

func newEvents(o *options) *cobra.Command {
	var since time.Duration
	var follow bool
	cmd := &cobra.Command{
		Use: "events [NAME]", Short: "Show what happened to databases", Args: args(cobra.MaximumNArgs(1)),
		Aliases: []string{"event"}, ValidArgsFunction: o.completeNames,
		Example: "  howdah events --since 24h\n  howdah events orders --follow",
		RunE: func(cmd *cobra.Command, names []string) error {
			if since <= 0 || since > maxSince {
				return fmt.Errorf("--since is more than 0 and up to %dh: events are kept for 14 days: %w", int(maxSince.Hours()), errUsage)
			}
			api, err := o.api(cmd)
			if err != nil {
				return err
			}
			e := eventReader{api: api, name: strings.ToLower(strings.Join(names, "")), from: o.now().Add(-since)}
			if follow {
				return o.followEvents(cmd.Context(), &e)
			}
			views, err := e.read(cmd.Context())
			if err != nil {
				return err
			}
			return o.print(views, func() error { return o.eventsText(views) })
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
		if value(out.Marker) == "" {
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
		At: value(e.Date), Kind: value(e.SourceType), Source: value(e.SourceIdentifier),
		Categories: e.EventCategories, Message: value(e.Message), ARN: value(e.SourceArn),
	}
}

func (o *options) eventsText(views []eventView) error {
	if len(views) == 0 {
		o.say("No events.")
		return nil
	}
	var t screen.Table
	t.Head("TIME", "SOURCE", "MESSAGE")
	for _, v := range views {
		t.Row(v.At.UTC().Format(time.DateTime)+"Z", v.Source, eventCell(v))
	}
	return t.Write(o.screen.Stdout, o.screen.Color())
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
func (o *options) followEvents(ctx context.Context, e *eventReader) error {
	for {
		views, err := e.read(ctx)
		if err != nil {
			return stopped(ctx, err)
		}
		for _, v := range views {
			if err := o.eventLine(v); err != nil {
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

func (o *options) eventLine(v eventView) error {
	if o.json() {
		return json.NewEncoder(o.screen.Stdout).Encode(v)
	}
	cell := eventCell(v)
	o.say("%sZ  %s  %s", v.At.UTC().Format(time.DateTime), v.Source, o.screen.Paint(cell.Style, cell.Text))
	return nil
}
