package subscription

import (
	"context"
	"slices"
	"time"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/event"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// defaultPeriod is how far back events are listed when no time is given.
const defaultPeriod = 60 * time.Minute

// describeEvents lists events of the last 14 days, oldest first.
func (s *service) describeEvents(ctx context.Context, c front.Call, in *rds.DescribeEventsMessage) (*rds.EventsMessage, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	if in.SourceIdentifier != nil && in.SourceType == nil {
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "Cannot specify a source identifier without source type")
	}
	from, to, err := period(c.Now, in)
	if err != nil {
		return nil, err
	}
	var matching []state.Record[event.Event]
	for _, r := range state.LoadAll[event.Event](s.Cache, state.Event(c.Account, c.Region, "")) {
		if e := r.Value; !e.At.Before(from) && !e.At.After(to) && about(e, c.Scope, in) {
			matching = append(matching, r)
		}
	}
	// Keys begin with the time.
	chosen, marker, err := page.Of(matching, func(r state.Record[event.Event]) string { return r.Key }, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.EventsMessage{Marker: marker, Events: []rds.Event{}}
	for _, r := range chosen {
		out.Events = append(out.Events, eventOut(r.Value))
	}
	return out, nil
}

// about reports whether an event has the source, and one of the categories, that were asked for.
func about(e event.Event, scope spec.Scope, in *rds.DescribeEventsMessage) bool {
	if in.SourceType != nil && string(e.SourceType) != *in.SourceType {
		return false
	}
	if in.SourceIdentifier != nil {
		if in, name := look.Locate(scope, *in.SourceIdentifier, event.ARNKind(e.SourceType)); in != scope || name != e.Source {
			return false
		}
	}
	return len(in.EventCategories) == 0 || slices.ContainsFunc(e.Categories, func(c string) bool { return slices.Contains(in.EventCategories, c) })
}

// period is the time that is asked for: from StartTime on, or up to EndTime, for Duration minutes;
// or the last ones.
func period(now time.Time, in *rds.DescribeEventsMessage) (from, to time.Time, err error) {
	minutes := wire.Or(in.Duration, int32(defaultPeriod/time.Minute))
	if longest := int32(event.Keep / time.Minute); minutes < 1 || minutes > longest {
		return from, to, wire.NewError(api.ErrInvalidParameterValue, "Invalid Duration %d: it must be between 1 and %d minutes.", minutes, longest)
	}
	length := time.Duration(minutes) * time.Minute
	switch {
	case in.StartTime != nil && in.EndTime != nil:
		if in.Duration != nil {
			return from, to, wire.NewError(api.ErrInvalidParameterCombination, "StartTime, EndTime and Duration cannot all be given.")
		}
		from, to = *in.StartTime, *in.EndTime
	case in.StartTime != nil && in.Duration != nil:
		from, to = *in.StartTime, in.StartTime.Add(length)
	case in.StartTime != nil:
		from, to = *in.StartTime, now
	case in.EndTime != nil:
		from, to = in.EndTime.Add(-length), *in.EndTime
	default:
		from, to = now.Add(-length), now
	}
	if to.Before(from) {
		return from, to, wire.NewError(api.ErrInvalidParameterCombination, "The start time must be before the end time.")
	}
	// Older ones may be there until they are swept.
	if oldest := now.Add(-event.Keep); from.Before(oldest) {
		from = oldest
	}
	return from, to, nil
}

func eventOut(e event.Event) rds.Event {
	return rds.Event{
		SourceIdentifier: wire.Some(e.Source), SourceType: wire.Some(string(e.SourceType)), Message: wire.Some(e.Message),
		EventCategories: wire.List(e.Categories), Date: wire.Some(e.At.UTC()), SourceArn: wire.Some(e.ARN),
	}
}
