package upkeep

import (
	"context"
	"errors"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/model/operation"
	"howdah/internal/state"
)

// left are the instances of operations that have ended, and left them as they were: operations that
// were abandoned, and those under way when the home was restored. What was closed is opened. What was
// hidden is shown from now on, and is nobody's to delete but users': it may have what they look for.
func (h *House) left() []chore {
	var all []chore
	for _, r := range h.held {
		i := *r.Value
		if h.works(i.MadeBy) || h.works(i.ClosedBy) {
			continue
		}
		all = append(all, chore{"give back what an operation left", r.Key, i.Account, func(ctx context.Context, _ *database.Sight, _ front.Call) error {
			h.Log.Warn("an operation left an instance: it is a user's from now on", "name", i.Name, "made_by", i.MadeBy, "closed_by", i.ClosedBy)
			i.MadeBy, i.ClosedBy, i.Expects = "", "", ""
			i.Generation++
			return h.State.Commit(ctx, state.Swap(r.Key, r.Revision, i))
		}})
	}
	return all
}

// works reports whether an operation is under way, or nobody can tell.
func (h *House) works(id string) bool {
	if id == "" {
		return false
	}
	o, err := state.View[operation.Record](h.State.Cache, state.Operation(id))
	if err != nil {
		return !errors.Is(err, state.ErrNotFound)
	}
	return !o.Value.State.Ended()
}
