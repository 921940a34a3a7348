package look

import (
	"fmt"

	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/model/event"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// WarnBackups is an event where backups are asked for in a home that has no repository for them:
// nobody may believe to have them.
func (s *Source) WarnBackups(c front.Call, kind event.SourceType, common spec.Common, asked *int32) ([]state.Op, error) {
	if _, ok := s.Repository(); ok || wire.Or(asked, 0) == 0 {
		return nil, nil
	}
	return Tell(c, kind, common, Event("H004"))
}

// Told is an event, by its number in the catalog.
type Told struct {
	Number string
	Args   []any
}

// Event is one of the catalog, with what its message names.
func Event(number string, args ...any) Told { return Told{number, args} }

// Tell raises events of an instance or a cluster.
func Tell(c front.Call, kind event.SourceType, common spec.Common, all ...Told) ([]state.Op, error) {
	return TellOf(c, event.Source{Scope: common.Scope, Type: kind, Name: common.Name}, common.ResourceID, all...)
}

// TellOf raises events of a source. id tells it from others of that name.
func TellOf(c front.Call, of event.Source, id string, all ...Told) ([]state.Op, error) {
	var ops []state.Op
	for _, t := range all {
		e, err := event.Make(of, t.Number, c.Now, t.Args...)
		if err != nil {
			return nil, fmt.Errorf("raise event: %w", err)
		}
		ops = append(ops, state.Put(state.Event(of.Account, of.Region, e.Key(id)), e))
	}
	return ops, nil
}

// Begin counts a change that the planner carries out, with the status to show and
// the events to raise when it is done.
func Begin(c *spec.Common, status string, before *spec.Values, done ...string) {
	c.Begin(status, before, done...)
}
