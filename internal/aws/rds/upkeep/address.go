package upkeep

import (
	"context"
	"slices"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/model/route"
	"howdah/internal/state"
	"howdah/internal/view"
)

// movers are the endpoints that have moved: their former addresses are given back.
func (h *House) movers() []chore {
	var all []chore
	for _, r := range h.instances {
		if i := r.Value; i.Moving() && view.Moved(h.State.Cache, i.ResourceID, i.Address) {
			all = append(all, chore{"give addresses back", r.Key, i.Account, func(ctx context.Context, _ *database.Sight, _ front.Call) error {
				former := i.Former
				i.Former = nil
				i.Generation++
				return h.giveBack(ctx, former, state.Swap(r.Key, r.Revision, i))
			}})
		}
	}
	for _, r := range h.clusters {
		c := r.Value
		writer := view.Moved(h.State.Cache, route.Writer(c.ResourceID), c.Address)
		reader := view.Moved(h.State.Cache, route.Reader(c.ResourceID), c.ReaderAddress)
		if c.Moving() && writer && reader {
			all = append(all, chore{"give addresses back", r.Key, c.Account, func(ctx context.Context, _ *database.Sight, _ front.Call) error {
				former := slices.Concat(c.Former, c.ReaderFormer)
				c.Former, c.ReaderFormer = nil, nil
				c.Generation++
				return h.giveBack(ctx, former, state.Swap(r.Key, r.Revision, c))
			}})
		}
	}
	for _, r := range h.endpoints {
		if e := r.Value; view.Moved(h.State.Cache, e.ResourceID, e.Address) {
			all = append(all, chore{"give addresses back", r.Key, e.Account, func(ctx context.Context, _ *database.Sight, _ front.Call) error {
				former := e.Former
				e.Former = nil
				e.Generation++
				return h.giveBack(ctx, former, state.Swap(r.Key, r.Revision, e))
			}})
		}
	}
	return all
}

func (u *Upkeep) giveBack(ctx context.Context, addresses []string, with state.Op) error {
	ops := []state.Op{with}
	for _, a := range addresses {
		ops = append(ops, state.Delete(state.Address(a)))
	}
	return u.State.Commit(ctx, ops...)
}
