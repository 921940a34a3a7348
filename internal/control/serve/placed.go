package serve

import (
	"context"
	"errors"

	"howdah/internal/control/plan"
	"howdah/internal/state"
)

// placed returns the host that a database's layout has for a member, or "" if it knows no such
// member.
func placed(ctx context.Context, store *state.Store, database, name string) (host string, err error) {
	layout, err := state.Get[plan.Layout](ctx, store, state.Layout(database))
	if errors.Is(err, state.ErrNotFound) {
		return "", nil
	}
	for _, m := range layout.Value.Members {
		if m.Name == name {
			host = m.Host
		}
	}
	return host, err
}
