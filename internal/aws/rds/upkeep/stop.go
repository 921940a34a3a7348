package upkeep

import (
	"context"
	"errors"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/instance"
	"howdah/internal/model/backup"
	"howdah/internal/state"
)

// stops are the instances that are to be stopped once they have a snapshot. One that could not be
// made leaves the instance running: stopping it could not be what was asked for.
func (h *House) stops() []chore {
	var all []chore
	for _, r := range h.instances {
		i := r.Value
		if i.StopAfter == "" {
			continue
		}
		made, err := state.Load[backup.Snapshot](h.State.Cache, state.Snapshot(i.Account, i.Region, i.StopAfter))
		if err == nil && made.Value.State == backup.Creating || err != nil && !errors.Is(err, state.ErrNotFound) {
			continue
		}
		all = append(all, chore{"stop after a snapshot", r.Key, i.Account, func(ctx context.Context, _ *database.Sight, _ front.Call) error {
			next := i
			next.StopAfter = ""
			if made.Value.State == backup.Available {
				instance.Stop(&next)
			}
			next.Generation++
			return h.State.Commit(ctx, state.Swap(r.Key, r.Revision, next))
		}})
	}
	return all
}
