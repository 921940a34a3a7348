package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"howdah/internal/event"
	"howdah/internal/plan"
	"howdah/internal/spec"
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
	failed := map[string]string{} // by key: told once
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			s.keepHouse(ctx, failed)
		}
	}
}

// chore is something that the platform does to one record by itself.
type chore struct {
	name, key string
	account   string
	do        func(ctx context.Context, l *look, c call) error
}

func (s *Server) keepHouse(ctx context.Context, failed map[string]string) {
	for _, chore := range append(s.windowChores(s.now().UTC()), s.newcomers()...) {
		if ctx.Err() != nil {
			return
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		err := chore.do(call, s.look(chore.account), s.ownCall())
		cancel()
		switch {
		case err == nil:
			delete(failed, chore.key)
		case errors.Is(err, state.ErrConflict) || ctx.Err() != nil:
			// Someone changed the record: the next round sees it as it is then.
		case failed[chore.key] != err.Error():
			failed[chore.key] = err.Error()
			s.Log.Warn("keep house", "chore", chore.name, "key", chore.key, "error", err)
		}
	}
}

// ownCall stands for the request when nobody calls.
func (s *Server) ownCall() call { return call{now: s.now().UTC()} }

// windowChores are the modifications whose window is now.
func (s *Server) windowChores(now time.Time) []chore {
	var all []chore
	for _, r := range state.LoadAll[spec.Instance](s.Cache, state.InstanceRoot) {
		if i := r.Value; i.Pending != nil && !i.Deleting && spec.InMaintenanceWindow(i.MaintenanceWindow, now) {
			all = append(all, chore{"apply a waiting modification", r.Key, i.Account, func(ctx context.Context, l *look, c call) error {
				return s.applyToInstance(ctx, l, c, r)
			}})
		}
	}
	for _, r := range state.LoadAll[spec.Cluster](s.Cache, state.ClusterRoot) {
		if c := r.Value; c.Pending != nil && !c.Deleting && spec.InMaintenanceWindow(c.MaintenanceWindow, now) {
			all = append(all, chore{"apply a waiting modification", r.Key, c.Account, func(ctx context.Context, l *look, c call) error {
				return s.applyToCluster(ctx, l, c, r)
			}})
		}
	}
	return all
}

// applyToInstance carries out what waits, once the instance is available.
func (s *Server) applyToInstance(ctx context.Context, l *look, c call, r state.Record[spec.Instance]) error {
	i := r.Value
	if !slices.Contains(usable, l.status(i)) {
		return nil
	}
	m := &modification{look: l, call: c, kind: event.Instance}
	values := differing(*i.Pending, valuesOf(i))
	if err := m.possible(i, values); err != nil {
		return err
	}
	i.Pending = nil
	m.carryOut(&i, values)
	m.finishInstance(&i)
	ops, err := m.putInstance(r, i)
	if err != nil {
		return err
	}
	return s.commit(ctx, ops...)
}

func (s *Server) applyToCluster(ctx context.Context, l *look, c call, r state.Record[spec.Cluster]) error {
	cluster := r.Value
	if !slices.Contains(usable, l.clusterStatus(cluster)) {
		return nil
	}
	m := &modification{look: l, call: c, kind: event.Cluster}
	values := differing(*cluster.Pending, clusterValues(cluster))
	if err := m.possibleForCluster(cluster, values); err != nil {
		return err
	}
	cluster.Pending = nil
	if err := m.carryOutCluster(&cluster, values); err != nil {
		return err
	}
	m.finish(&cluster.Common)
	ops, err := m.putCluster(r, cluster)
	if err != nil {
		return err
	}
	return s.commit(ctx, ops...)
}

// newcomers are the instances of clusters that serve for the first time.
func (s *Server) newcomers() []chore {
	var all []chore
	for _, r := range state.LoadAll[spec.Instance](s.Cache, state.InstanceRoot) {
		if i := r.Value; i.Cluster != "" && !i.Announced && !i.Deleting {
			all = append(all, chore{"announce a new instance", r.Key, i.Account, func(ctx context.Context, l *look, c call) error {
				return s.announce(ctx, l, c, r)
			}})
		}
	}
	return all
}

func (s *Server) announce(ctx context.Context, l *look, c call, r state.Record[spec.Instance]) error {
	i := r.Value
	if !l.factsOf(i).Layout.Created || l.status(i) != plan.Available {
		return nil
	}
	i.Announced = true
	i.Generation++
	ops, err := tell(c, event.Instance, i.Common, told{"0005", nil})
	if err != nil {
		return err
	}
	return s.commit(ctx, append(ops, state.Swap(r.Key, r.Revision, i))...)
}
