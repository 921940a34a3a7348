package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/control/plan"
	"howdah/internal/identity/secret"
	"howdah/internal/model/event"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// windowEvery is how soon a window is noticed, and an instance of a cluster that
// serves for the first time.
const windowEvery = time.Second

// RunHouse keeps house: it applies modifications that wait for the maintenance window, tells
// of instances of clusters that serve for the first time, and does all other chores. It runs in
// the control plane that leads, until ctx ends. What goes wrong with one is logged, and tried
// again.
func (u *Upkeep) RunHouse(ctx context.Context) error {
	if err := u.State.Cache.Loaded(ctx); err != nil {
		return err
	}
	timer := time.NewTicker(windowEvery)
	defer timer.Stop()
	h := u.House()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			h.Keep(ctx)
		}
	}
}

// House is what is known between rounds of chores.
type House struct {
	*Upkeep
	// Failed is what was told of chores that went wrong, by key.
	Failed map[string]string
	// Records with which something may have to be done, as of changes.
	changes   int64
	installed string // PostgreSQL versions of the hosts, and authorities
	instances []state.Record[spec.Instance]
	clusters  []state.Record[spec.Cluster]
	wards     []ward                        // both
	rotates   bool                          // some of them may have a certificate rotated
	endpoints []state.Record[spec.Endpoint] // custom ones that are being moved
	// stores is what is known of storage that may grow by itself, by resource id.
	stores map[string]*store
	// held are instances that an operation has made for its own ends, or has closed.
	held []state.Record[*spec.Instance]
	// secrets are managed passwords, as of secretChanges.
	secrets       []state.Record[*secret.Secret]
	secretChanges int64
}

// House is one that had no round yet.
func (u *Upkeep) House() *House {
	return &House{Upkeep: u, Failed: map[string]string{}, stores: map[string]*store{}}
}

// look finds the records anew when users changed any.
func (h *House) look() {
	cache := h.State.Cache
	has, authorities := h.Looks.Installed(), h.Authorities.Names()
	changes, installed := cache.Changes(state.SpecRoot), fmt.Sprint(has, authorities)
	if changes == h.changes && installed == h.installed {
		return
	}
	h.changes, h.installed = changes, installed
	h.rotates = false
	// due: a newer version or a newer authority may be offered, or brought in.
	due := func(s subject) bool {
		rotates := false
		if s.ownCertificate {
			_, rotates = spec.NewerAuthority(s.CACertificate, authorities)
			h.rotates = h.rotates || rotates
		}
		return rotates || s.ownVersion && look.Newer(has[s.Major], s.Version)
	}
	h.instances = state.Copies(slices.DeleteFunc(state.ViewAll[spec.Instance](cache, state.InstanceRoot), func(r state.Record[*spec.Instance]) bool {
		i := r.Value
		due := due(subjectOfInstance(i))
		return i.Deleting || i.Hidden() || !i.Moving() && i.Pending == nil && i.StopAfter == "" && !autoscales(*i) && (i.Cluster == "" || i.Announced) && !due
	}))
	h.held = slices.DeleteFunc(state.ViewAll[spec.Instance](cache, state.InstanceRoot), func(r state.Record[*spec.Instance]) bool {
		return r.Value.Deleting || r.Value.MadeBy == "" && r.Value.ClosedBy == ""
	})
	h.clusters = slices.DeleteFunc(state.LoadAll[spec.Cluster](cache, state.ClusterRoot), func(r state.Record[spec.Cluster]) bool {
		due := due(subjectOfCluster(&r.Value))
		return r.Value.Deleting || !r.Value.Moving() && r.Value.Pending == nil && !due
	})
	h.endpoints = slices.DeleteFunc(state.LoadAll[spec.Endpoint](cache, state.EndpointRoot), func(r state.Record[spec.Endpoint]) bool {
		return r.Value.Deleting || len(r.Value.Former) == 0
	})
	h.wards = nil
	for _, r := range h.instances {
		h.wards = append(h.wards, h.instance(r))
	}
	for _, r := range h.clusters {
		h.wards = append(h.wards, h.cluster(r))
	}
}

// chore is something that the platform does to one record by itself.
type chore struct {
	name, key string
	account   string
	do        func(ctx context.Context, l *database.Sight, c front.Call) error
}

// chore is one on a ward, with what its key ends in: each kind of chore fails on its own.
func (w ward) chore(name, mark string, do func(ctx context.Context, l *database.Sight, c front.Call) error) chore {
	return chore{name, w.key + mark, w.Account, do}
}

// Keep does one round of chores.
func (h *House) Keep(ctx context.Context) {
	h.look()
	now := h.Looks.Now().UTC()
	for _, chore := range slices.Concat(h.windows(now), h.newcomers(), h.upgrades(now), h.rotations(now), h.movers(), h.stops(), h.growths(now), h.passwords(now), h.left()) {
		if ctx.Err() != nil {
			return
		}
		call, cancel := context.WithTimeout(ctx, front.Timeout)
		err := chore.do(call, h.Of(chore.account), h.ownCall())
		cancel()
		switch {
		case err == nil:
			delete(h.Failed, chore.key)
		case errors.Is(err, state.ErrConflict) || ctx.Err() != nil:
			// Someone changed the record: the next round sees it as it is then.
		case h.Failed[chore.key] != err.Error():
			h.Failed[chore.key] = err.Error()
			h.Log.Warn("keep house", "chore", chore.name, "key", chore.key, "error", err)
		}
	}
}

// ownCall stands for the request when nobody calls.
func (u *Upkeep) ownCall() front.Call { return front.Call{Now: u.Looks.Now().UTC()} }

// windows are the modifications whose window is now. They are carried out once the database is
// available.
func (h *House) windows(now time.Time) []chore {
	var all []chore
	for _, w := range h.wards {
		if w.Pending == nil || !spec.InMaintenanceWindow(w.MaintenanceWindow, now) {
			continue
		}
		all = append(all, w.chore("apply a waiting modification", "", w.waiting))
	}
	return all
}

// newcomers are the instances of clusters that serve for the first time.
func (h *House) newcomers() []chore {
	var all []chore
	for _, r := range h.instances {
		if i := r.Value; i.Cluster != "" && !i.Announced {
			all = append(all, chore{"announce a new instance", r.Key, i.Account, func(ctx context.Context, l *database.Sight, c front.Call) error {
				return h.announce(ctx, l.Look, c, r)
			}})
		}
	}
	return all
}

func (u *Upkeep) announce(ctx context.Context, l *look.Look, c front.Call, r state.Record[spec.Instance]) error {
	i := r.Value
	if !l.FactsOf(i).Layout.Created || l.Status(i) != plan.Available {
		return nil
	}
	i.Announced = true
	i.Generation++
	ops, err := look.Tell(c, event.Instance, i.Common, look.Event("0005"), look.Event("0385"))
	if err != nil {
		return err
	}
	return u.State.Commit(ctx, append(ops, state.Swap(r.Key, r.Revision, i))...)
}
