package backup

import (
	"context"

	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/state"
)

// orphaned says why a snapshot is not made.
const orphaned = "nobody makes it any more: the home was restored from a backup meanwhile; delete it, and make another one"

// settle ends what waits for an operation that is no more. Operations end what they began, but for
// those of a home that was restored: they are forgotten as they were.
func (k *keeper) settle(ctx context.Context) {
	for id, t := range k.targets {
		if next := *t.common(); next.Final != "" && !next.Deleting && !k.works(id, backup.Final) {
			next.Final = ""
			k.note(ctx, "final snapshot of "+id, k.commit(ctx, t.put(next)))
		}
	}
	for _, all := range k.snapshots {
		for _, r := range all {
			s := *r.Value
			if s.State != backup.Creating && s.State != backup.Copying || k.unlisted(s.Holder(), s.Repository) {
				continue
			}
			o, err := state.View[operation.Record](k.Cache, state.Operation(s.Operation))
			if err == nil && !o.Value.State.Ended() {
				continue
			}
			s.State, s.Reason = backup.Failed, orphaned
			op := state.Swap(r.Key, r.Revision, s)
			if s.Automated {
				op = state.Remove(r.Key, r.Revision)
			}
			k.note(ctx, "snapshot "+s.Name, k.commit(ctx, op))
		}
	}
}
