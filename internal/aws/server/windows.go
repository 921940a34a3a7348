package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/cluster"
	"howdah/internal/aws/rds/instance"
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

// RunWindows applies modifications that wait for the maintenance window, and tells
// of instances of clusters that serve for the first time. It runs in the control
// plane that leads, until ctx ends. What goes wrong with one is logged, and tried
// again.
func (s *Server) RunWindows(ctx context.Context) error {
	if err := s.Cache.Loaded(ctx); err != nil {
		return err
	}
	timer := time.NewTicker(windowEvery)
	defer timer.Stop()
	h := &household{failed: map[string]string{}}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			s.keepHouse(ctx, h)
		}
	}
}

// household is what RunWindows knows between its rounds.
type household struct {
	failed map[string]string // what was told, by key of the record
	// Records with which something may have to be done, as of changes.
	changes   int64
	installed string // PostgreSQL versions of the hosts, and authorities
	instances []state.Record[spec.Instance]
	clusters  []state.Record[spec.Cluster]
	rotates   bool                          // some of them may have a certificate rotated
	endpoints []state.Record[spec.Endpoint] // custom ones that are being moved
	// secrets are managed passwords, as of secretChanges.
	secrets       []state.Record[*secret.Secret]
	secretChanges int64
}

// look finds the records anew when users changed any.
func (h *household) look(s *Server) {
	has, authorities := s.looks.Installed(), s.authorities.Names()
	changes, installed := s.Cache.Changes(state.SpecRoot), fmt.Sprint(has, authorities)
	if changes == h.changes && installed == h.installed {
		return
	}
	h.changes, h.installed = changes, installed
	old := func(c spec.Common) bool { return look.Newer(has[c.Major], c.Version) }
	h.rotates = false
	rotates := func(c spec.Common) bool {
		_, ok := spec.NewerAuthority(c.CACertificate, authorities)
		h.rotates = h.rotates || ok
		return ok
	}
	h.instances = state.Copies(slices.DeleteFunc(state.ViewAll[spec.Instance](s.Cache, state.InstanceRoot), func(r state.Record[*spec.Instance]) bool {
		i := r.Value
		rotates := !i.Auto && rotates(i.Common)
		return i.Deleting || !i.Moving() && i.Pending == nil && (i.Cluster == "" || i.Announced) && (i.Cluster != "" || !old(i.Common)) && !rotates
	}))
	h.clusters = slices.DeleteFunc(state.LoadAll[spec.Cluster](s.Cache, state.ClusterRoot), func(r state.Record[spec.Cluster]) bool {
		rotates := r.Value.MultiAZ() && rotates(r.Value.Common)
		return r.Value.Deleting || !r.Value.Moving() && r.Value.Pending == nil && !old(r.Value.Common) && !rotates
	})
	h.endpoints = slices.DeleteFunc(state.LoadAll[spec.Endpoint](s.Cache, state.EndpointRoot), func(r state.Record[spec.Endpoint]) bool {
		return r.Value.Deleting || len(r.Value.Former) == 0
	})
}

// chore is something that the platform does to one record by itself.
type chore struct {
	name, key string
	account   string
	do        func(ctx context.Context, l *sight, c front.Call) error
}

func (s *Server) keepHouse(ctx context.Context, h *household) {
	h.look(s)
	now := s.now().UTC()
	for _, chore := range slices.Concat(s.windowChores(h, now), s.newcomers(h), s.upgradeChores(h, now), s.rotationChores(h, now), s.movers(h), s.secretChores(h, now)) {
		if ctx.Err() != nil {
			return
		}
		call, cancel := context.WithTimeout(ctx, front.Timeout)
		err := chore.do(call, s.look(chore.account), s.ownCall())
		cancel()
		switch {
		case err == nil:
			delete(h.failed, chore.key)
		case errors.Is(err, state.ErrConflict) || ctx.Err() != nil:
			// Someone changed the record: the next round sees it as it is then.
		case h.failed[chore.key] != err.Error():
			h.failed[chore.key] = err.Error()
			s.Log.Warn("keep house", "chore", chore.name, "key", chore.key, "error", err)
		}
	}
}

// ownCall stands for the request when nobody calls.
func (s *Server) ownCall() front.Call { return front.Call{Now: s.now().UTC()} }

// windowChores are the modifications whose window is now.
func (s *Server) windowChores(h *household, now time.Time) []chore {
	var all []chore
	for _, r := range h.instances {
		if i := r.Value; i.Pending != nil && spec.InMaintenanceWindow(i.MaintenanceWindow, now) {
			all = append(all, chore{"apply a waiting modification", r.Key, i.Account, func(ctx context.Context, l *sight, c front.Call) error {
				return instance.Kind.ApplyWaiting(ctx, l.Sight, c, r)
			}})
		}
	}
	for _, r := range h.clusters {
		if c := r.Value; c.Pending != nil && spec.InMaintenanceWindow(c.MaintenanceWindow, now) {
			all = append(all, chore{"apply a waiting modification", r.Key, c.Account, func(ctx context.Context, l *sight, c front.Call) error {
				return cluster.Kind.ApplyWaiting(ctx, l.Sight, c, r)
			}})
		}
	}
	return all
}

// newcomers are the instances of clusters that serve for the first time.
func (s *Server) newcomers(h *household) []chore {
	var all []chore
	for _, r := range h.instances {
		if i := r.Value; i.Cluster != "" && !i.Announced {
			all = append(all, chore{"announce a new instance", r.Key, i.Account, func(ctx context.Context, l *sight, c front.Call) error {
				return s.announce(ctx, l, c, r)
			}})
		}
	}
	return all
}

func (s *Server) announce(ctx context.Context, l *sight, c front.Call, r state.Record[spec.Instance]) error {
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
	return s.client.Commit(ctx, append(ops, state.Swap(r.Key, r.Revision, i))...)
}
