package view

import (
	"strings"

	"howdah/internal/control/plan"
	"howdah/internal/identity/seal"
	"howdah/internal/model/regain"
	"howdah/internal/state"
)

// Held judges what hosts say they have since the home was restored.
type Held struct {
	Cache *state.Cache
	Seals *seal.Assignments
}

// Founded is a copy that a host has told of under the id of a member, as far as it can be
// believed: what it was told is what we sealed, if we did; and the ground says why it counts. Not
// ok: it is dropped. The host speaks in another one's name, or an operator forgot it, and nothing
// but its own word says that it should have the copy.
func (h Held) Founded(host, id string, c regain.Copy) (_ regain.Copy, ok bool) {
	if c.Host != host || c.Assignment.ID != id {
		return c, false
	}
	sealed := false
	if len(c.Told) > 0 {
		if told, right := h.Seals.Open(host, c.Told); right && told.ID == id {
			c.Assignment, sealed = told, true
		}
	}
	// Nobody is in another database than its id says.
	c.Assignment.Scope, c.Assignment.Name, _ = strings.Cut(id, ".")
	hold, err := state.Load[regain.Hold](h.Cache, state.Hold(c.Assignment.Scope))
	if err != nil {
		hold.Value = regain.Hold{}
	}
	c.Ground = regain.GroundOf(hold.Value, c, sealed, Placed(h.Cache, c.Assignment.Scope))
	_, _, gone := h.Cache.Raw(state.Gone(host))
	return c, c.Ground != regain.Unfounded || !gone
}

// Placed maps the members of a database to their hosts. While the database is held its layout is
// the restored one.
func Placed(cache *state.Cache, database string) map[string]string {
	layout, err := state.View[plan.Layout](cache, state.Layout(database))
	if err != nil {
		return nil
	}
	hosts := make(map[string]string, len(layout.Value.Members))
	for _, m := range layout.Value.Members {
		hosts[m.Name] = m.Host
	}
	return hosts
}
