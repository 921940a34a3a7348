// Package reconcile carries the planner's decisions out. It runs in the control plane that leads.
// For every database it gathers what is wanted and what is, and asks package plan for the next
// step. It writes layout, assignments, tasks, routes and events in one transaction, which fails if
// anything moved meanwhile. A restart loses nothing that matters: in memory it keeps only what it
// has seen before, so that it need not look at everything again for each change.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/failover/postmortem"
	"howdah/internal/identity/seal"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/route"
	"howdah/internal/state"
)

const (
	// tick is the pause between two looks at busy databases, even if nothing changed: the planner
	// waits for times to pass.
	tick = time.Second
	// A database at rest is looked at after restful ticks, in case a change was missed. If there
	// are many it takes longer, because a tick looks at atOnce of them at most. Leftovers are also
	// swept every restful ticks.
	restful = 30
	atOnce  = 50
)

// Reconciler carries decisions out. All its exported fields are required.
type Reconciler struct {
	Store  *state.Store
	Cache  *state.Cache // of state.Root and patroni.Namespace
	Policy plan.Policy
	Seals  *seal.Assignments // of all control planes of the home
	Log    *slog.Logger

	mu    sync.Mutex
	dirty dirt // guarded by mu
	wake  chan struct{}

	// These belong to Run's goroutine.
	last  *world
	awake map[string]bool // ids of databases that are not at rest
	ticks int
}

// dirt is what changed since the last look, by id and name. It does not have what users ask for: a
// look finds that out.
type dirt struct{ databases, hosts map[string]bool }

func newDirt() dirt { return dirt{map[string]bool{}, map[string]bool{}} }

// occasion says why databases are looked at.
type occasion int

const (
	atStart occasion = iota // all of them
	onChange
	onTick
)

// Watch registers for changes. Call it once, before the cache runs.
func (r *Reconciler) Watch() {
	r.dirty, r.awake = newDirt(), map[string]bool{}
	r.wake = make(chan struct{}, 1)
	r.Cache.OnChange(r.changed)
}

// changed records the databases and hosts that the keys belong to.
func (r *Reconciler) changed(keys []string) {
	some := false
	r.mu.Lock()
	for _, key := range keys {
		id, ok := databaseOf(key)
		if !ok {
			continue
		}
		some = true
		if id != "" {
			r.dirty.databases[id] = true
		}
		for _, root := range []string{state.LiveRoot, state.DrainRoot} {
			if host, ok := strings.CutPrefix(key, root); ok {
				r.dirty.hosts[host] = true
			}
		}
	}
	r.mu.Unlock()
	if !some {
		return
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// databaseOf returns the database that a key is about. It returns "" if any database may be
// concerned, as by what users ask for, by the life of hosts, by what edges hide, and by the DNS zone.
func databaseOf(key string) (id string, ok bool) {
	if scope, rest, ok := patroni.SplitKey(key); ok {
		// The primary publishes its position all the time. That decides nothing.
		return scope, rest != "status"
	}
	switch {
	case strings.HasPrefix(key, state.SpecRoot), strings.HasPrefix(key, state.LiveRoot), strings.HasPrefix(key, state.DrainRoot),
		strings.HasPrefix(key, state.SubnetGroupRoot), strings.HasPrefix(key, state.SecurityGroupRoot), strings.HasPrefix(key, state.BetweenRoot),
		strings.HasPrefix(key, state.DNSRoot):
		return "", true
	case strings.HasPrefix(key, state.ReportRoot):
		return databaseOfMember(state.Tail(key, state.ReportRoot)), true
	case strings.HasPrefix(key, state.AssignRoot):
		return databaseOfMember(state.Tail(key, state.AssignRoot)), true
	case strings.HasPrefix(key, state.ResultRoot):
		database, _, _ := strings.Cut(state.Tail(key, state.ResultRoot), "/")
		return database, true
	case strings.HasPrefix(key, state.WayRoot):
		routeID, _, _ := strings.Cut(state.Tail(key, state.WayRoot), "/")
		// Only the writer's way decides anything.
		return route.Written(routeID), true
	case strings.HasPrefix(key, state.LayoutRoot):
		return state.Tail(key, state.LayoutRoot), true
	}
	return "", false
}

// databaseOfMember returns the database from the end of a key that names a host and a member.
func databaseOfMember(tail string) string {
	_, id, _ := strings.Cut(tail, "/")
	database, _, _ := strings.Cut(id, ".")
	return database
}

// Run reconciles until ctx ends. ctx must end when this control plane no longer leads.
func (r *Reconciler) Run(ctx context.Context) error {
	if err := r.Cache.Loaded(ctx); err != nil {
		return err
	}
	r.last, r.awake = nil, map[string]bool{} // another one may have led meanwhile
	timer := time.NewTicker(tick)
	defer timer.Stop()
	for why := atStart; ; {
		r.pass(ctx, why)
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			why = onTick
			r.ticks++
		case <-r.wake:
			why = onChange
		}
	}
}

func (r *Reconciler) takeDirty() dirt {
	r.mu.Lock()
	defer r.mu.Unlock()
	dirty := r.dirty
	r.dirty = newDirt()
	return dirty
}

// pass looks at the databases that are due.
func (r *Reconciler) pass(ctx context.Context, why occasion) {
	began, looked := time.Now(), 0
	dirty := r.takeDirty()
	world := r.look()
	world.wakeSources(dirty.databases)
	for _, d := range r.due(world, why, dirty) {
		if ctx.Err() != nil {
			return
		}
		looked++
		err := r.work(ctx, world, d)
		if err != nil {
			r.awake[d.Want.ID] = true
		}
		switch {
		case errors.Is(err, state.ErrConflict):
			// Someone was quicker. Their change wakes us again.
			r.Log.Debug("plan overtaken", "database", d.Want.ID)
		case err != nil && ctx.Err() == nil:
			r.Log.Warn("reconcile", "database", d.Want.ID, "error", err)
		}
	}
	if err := r.tidy(ctx, world, why); err != nil && ctx.Err() == nil {
		r.Log.Warn("sweep", "error", err)
	}
	r.Log.Debug("round", "databases", len(world.databases), "looked_at", looked, "took", time.Since(began))
}

// work does what is now to be done about one database.
func (r *Reconciler) work(ctx context.Context, w *world, d *database) error {
	if hold, held := w.held(d.Want.ID); held {
		r.awake[d.Want.ID] = true
		return r.regain(ctx, w, d, hold)
	}
	return errors.Join(r.followLeader(ctx, w, d), r.advance(ctx, w, d))
}

// due returns the databases that are to be looked at.
func (r *Reconciler) due(w *world, why occasion, dirty dirt) []*database {
	if why == atStart {
		return w.databases
	}
	all := slices.Clone(w.changed)
	add := func(d *database) {
		if !d.changed {
			all = append(all, d)
		}
	}
	if why == onChange && len(dirty.hosts) == 0 {
		for _, id := range slices.Sorted(maps.Keys(dirty.databases)) {
			if d := w.byID[id]; d != nil {
				add(d)
			}
		}
		return all
	}
	every := max(restful, len(w.databases)/atOnce)
	for n, d := range w.databases {
		its := why == onTick && (r.awake[d.Want.ID] || n%every == r.ticks%every)
		if its || dirty.databases[d.Want.ID] || r.concerned(d, dirty.hosts) {
			add(d)
		}
	}
	return all
}

// concerned reports whether a database has a member on one of the hosts, or waits, maybe for one of
// them.
func (r *Reconciler) concerned(d *database, hosts map[string]bool) bool {
	return len(hosts) > 0 && (r.awake[d.Want.ID] || slices.ContainsFunc(d.layout.Value.Members, func(m plan.Placed) bool { return hosts[m.Host] }))
}

// tidy removes leftovers. What comes in large numbers is removed each time. What is only left after
// something else failed is removed from time to time.
func (r *Reconciler) tidy(ctx context.Context, w *world, why occasion) error {
	switch {
	case why == onChange:
		return nil
	case why == atStart || r.ticks%restful == 0:
		return errors.Join(r.hangs(ctx, w), r.sweep(ctx, w))
	}
	return errors.Join(r.hangs(ctx, w), r.sweepFinished(ctx, w))
}

// advance takes one step for one database.
func (r *Reconciler) advance(ctx context.Context, w *world, d *database) error {
	if d.unread != nil {
		return d.unread
	}
	defer func() { d.assigned = nil }() // of thousands of databases they are megabytes
	in := w.input(d, r.Policy)
	out := plan.Next(in)
	change, err := r.changes(w, d, out)
	if err != nil {
		return fmt.Errorf("plan %s: %w", d.Want.ID, err)
	}
	if len(change) == 0 {
		delete(r.awake, d.Want.ID)
		if !w.rests(d, in, out) {
			r.awake[d.Want.ID] = true
		}
		return nil
	}
	r.awake[d.Want.ID] = true
	revision, err := r.Store.Commit(ctx, change...)
	if err != nil {
		return err
	}
	// The decision for the next database must see the ports and the memory that this one takes.
	w.remember(d, out.Layout)
	return r.Cache.WaitRevision(ctx, revision)
}

// rests reports whether all is as wanted, and nothing will happen only because time passes.
func (w *world) rests(d *database, in plan.Input, out plan.Output) bool {
	if !out.Layout.Created || len(out.Layout.Steps) > 0 || len(out.Problems) > 0 || out.Exposed {
		return false
	}
	for _, m := range out.Layout.Members {
		serves := d.Want.State != member.Running || in.Reports[member.ID(d.Want.ID, m.Name)].Ready
		if !w.alive(m.Host) || m.Going != plan.Staying || m.Leaving || !serves {
			return false
		}
	}
	if n, err := state.Load[Notice](w.cache, state.Notice(d.Want.ID)); err == nil && n.Value.waits() {
		return false
	}
	return !slices.ContainsFunc(state.LoadAll[postmortem.Record](w.cache, state.FailoverRoot+d.Want.ID+"/"), func(r state.Record[postmortem.Record]) bool {
		return r.Value.Open(w.now)
	})
}
