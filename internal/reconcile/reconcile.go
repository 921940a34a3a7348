// Package reconcile carries the planner's decisions out. It runs in the control
// plane that leads: for every database it gathers what is wanted and what is,
// asks package plan for the next step, and writes layout, assignments, tasks,
// routes and events in one transaction that fails if anything moved meanwhile.
// It keeps nothing in memory that a restart would miss.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"howdah/internal/engine/patroni"
	"howdah/internal/plan"
	"howdah/internal/state"
)

// tick is how often every database is looked at even when nothing changed: the
// planner waits for times to pass.
const tick = time.Second

// Reconciler needs all its fields.
type Reconciler struct {
	Store  *state.Store
	Cache  *state.Cache // of state.Root and patroni.Namespace
	Policy plan.Policy
	Log    *slog.Logger

	mu    sync.Mutex
	dirty map[string]bool // database ids to look at, guarded by mu
	wake  chan struct{}
}

// Watch registers for changes: call it once, before the cache runs.
func (r *Reconciler) Watch() {
	r.dirty = map[string]bool{}
	r.wake = make(chan struct{}, 1)
	r.Cache.OnChange(r.changed)
}

// changed notes the databases that keys belong to; "" stands for all of them.
func (r *Reconciler) changed(keys []string) {
	r.mu.Lock()
	for _, key := range keys {
		if id, ok := databaseOf(key); ok {
			r.dirty[id] = true
		}
	}
	some := len(r.dirty) > 0
	r.mu.Unlock()
	if !some {
		return
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// databaseOf finds the database that a key is about. What users ask for, and the
// life of hosts, may concern any.
func databaseOf(key string) (id string, ok bool) {
	if scope, rest, ok := patroni.SplitKey(key); ok {
		// The position that the primary publishes all the time decides nothing.
		return scope, rest != "status"
	}
	switch {
	case strings.HasPrefix(key, state.SpecRoot), strings.HasPrefix(key, state.LiveRoot), strings.HasPrefix(key, state.DrainRoot):
		return "", true
	case strings.HasPrefix(key, state.ReportRoot):
		_, id, _ := strings.Cut(state.Tail(key, state.ReportRoot), "/")
		database, _, _ := strings.Cut(id, ".")
		return database, true
	case strings.HasPrefix(key, state.ResultRoot):
		database, _, _ := strings.Cut(state.Tail(key, state.ResultRoot), "/")
		return database, true
	case strings.HasPrefix(key, state.WayRoot):
		routeID, _, _ := strings.Cut(state.Tail(key, state.WayRoot), "/")
		// Only the writer's way decides anything.
		return strings.TrimSuffix(routeID, writerSuffix), true
	case strings.HasPrefix(key, state.LayoutRoot):
		return state.Tail(key, state.LayoutRoot), true
	}
	return "", false
}

// Run reconciles until ctx ends, that is, as long as this control plane leads.
func (r *Reconciler) Run(ctx context.Context) error {
	if err := r.Cache.Loaded(ctx); err != nil {
		return err
	}
	timer := time.NewTicker(tick)
	defer timer.Stop()
	for all := true; ; {
		r.pass(ctx, all)
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			all = true
		case <-r.wake:
			all = false
		}
	}
}

func (r *Reconciler) takeDirty() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	dirty := r.dirty
	r.dirty = map[string]bool{}
	return dirty
}

// pass looks at the databases that changed, or at all of them.
func (r *Reconciler) pass(ctx context.Context, all bool) {
	dirty := r.takeDirty()
	world := r.look()
	for _, d := range world.databases {
		if ctx.Err() != nil {
			return
		}
		if !all && !dirty[""] && !dirty[d.want.ID] {
			continue
		}
		err := errors.Join(r.followLeader(ctx, world, d), r.advance(ctx, world, d))
		switch {
		case errors.Is(err, state.ErrConflict):
			// Someone was quicker: the change that beat us wakes us again.
			r.Log.Debug("plan overtaken", "database", d.want.ID)
		case err != nil && ctx.Err() == nil:
			r.Log.Warn("reconcile", "database", d.want.ID, "error", err)
		}
	}
	if all {
		if err := errors.Join(r.hangs(ctx, world), r.sweep(ctx, world)); err != nil && ctx.Err() == nil {
			r.Log.Warn("sweep", "error", err)
		}
	}
}

// advance takes one step for one database.
func (r *Reconciler) advance(ctx context.Context, w *world, d *database) error {
	out := plan.Next(w.input(d, r.Policy))
	change, err := r.changes(w, d, out)
	if err != nil {
		return fmt.Errorf("plan %s: %w", d.want.ID, err)
	}
	if len(change) == 0 {
		return nil
	}
	revision, err := r.Store.Commit(ctx, change...)
	if err != nil {
		return err
	}
	// The next database's decision must see the ports and the memory of this one.
	w.remember(d, out.Layout)
	return r.Cache.WaitRevision(ctx, revision)
}
