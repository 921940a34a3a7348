package view

import (
	"errors"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// Source is what is known of the database that a clone is made of; nil: the database is no clone, or
// has its data.
func Source(cache *state.Cache, want plan.Database, clone plan.Layout) *plan.Source {
	if !clone.Cloning(want) {
		return nil
	}
	id := want.Restore.Database
	layout, err := state.View[plan.Layout](cache, state.Layout(id))
	if err != nil {
		// Whatever was available has a layout until it is deleted.
		return &plan.Source{Gone: errors.Is(err, state.ErrNotFound)}
	}
	s := &plan.Source{}
	leader, reports := Leader(cache, id), Reports(cache, id, *layout.Value)
	for _, m := range layout.Value.Members {
		if m.Leaving {
			continue
		}
		live, err := state.View[member.Liveness](cache, state.Live(m.Host))
		s.Copies = append(s.Copies, plan.Copy{
			Host: m.Host, Primary: m.Name == leader,
			Ready: err == nil && live.Value.Alive && reports[member.ID(id, m.Name)].Ready,
		})
	}
	return s
}
