package jobs

import (
	"context"
	"sync"
	"time"

	"howdah/internal/host/pace"
)

const (
	// hastenEvery is how often a standby is asked for a restartpoint, and hastenFor how long.
	hastenEvery = 2 * time.Second
	hastenFor   = 2 * time.Minute
)

// hasten has a standby make restartpoints until the engine copies its files. pgBackRest waits for one
// that is not before the begin of the backup, and asks for it once: as soon as the standby has replayed
// up to there. The record of the checkpoint, which a restartpoint needs, comes a bit later. Where much
// is written the standby often has not got it yet. Then the next restartpoint is one by the clock, so
// the backup would wait for minutes. end has to be called.
func (r *run) hasten(ctx context.Context, id string) (end func()) {
	ctx, cancel := context.WithTimeout(ctx, hastenFor)
	var going sync.WaitGroup
	going.Go(func() {
		for pace.Sleep(ctx, hastenEvery) && !r.copies.Load() {
			if err := r.Checkpoint(ctx, id); err != nil && ctx.Err() == nil {
				r.Log.Info("have a standby make a restartpoint for its backup", "member", id, "error", err)
			}
		}
	})
	return func() { cancel(); going.Wait() }
}
