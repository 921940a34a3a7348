package server

import (
	"context"
	"slices"
	"time"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// upgrading is the status while a newer minor version of PostgreSQL is brought in.
const upgrading = "upgrading"

// upgradeOf is the minor version that a database can go to now: the newest that all
// hosts of its members have installed, if that is newer than its own.
func (l *sight) upgradeOf(c spec.Common) (to string, ok bool) {
	layout, err := state.Load[plan.Layout](l.Cache, state.Layout(c.ResourceID))
	if err != nil || !layout.Value.Created {
		return "", false
	}
	for _, m := range layout.Value.Members {
		if m.Leaving || m.Going != plan.Staying {
			continue
		}
		host, err := state.Load[member.Host](l.Cache, state.Host(m.Host))
		if err != nil {
			return "", false
		}
		if has := host.Value.Majors[c.Major]; to == "" || look.Newer(to, has) {
			to = has
		}
	}
	return to, to != "" && look.Newer(to, c.Version)
}

// upgradeInstance has an instance restarted with the newest minor version that its
// hosts have, its standby first.
func (s *Server) upgradeInstance(ctx context.Context, l *sight, c front.Call, r state.Record[spec.Instance]) error {
	i := r.Value
	to, ok := l.upgradeOf(i.Common)
	if !ok {
		return nil
	}
	notAvailable := wire.NewError(rds.ErrInvalidDBInstanceState, "Instance %s is not in available state.", i.Name)
	if err := l.May(operation.Change, i, notAvailable); err != nil {
		return err
	}
	i.Version = to
	i.OptIn(spec.DBUpgrade, false, c.Now)
	i.Restart++
	i.Generation++
	began, done := []look.Told{look.Event("0267")}, []string{"0268", "0047"}
	if !i.MultiAZ { // nobody serves while it is restarted
		began, done = append(began, look.Event("0026"), look.Event("0266")), append(done, "0027")
	}
	look.Begin(&i.Common, upgrading, nil, done...)
	events, err := look.Tell(c, event.Instance, i.Common, began...)
	if err != nil {
		return err
	}
	return s.client.Commit(ctx, append(events, state.Swap(r.Key, r.Revision, i))...)
}

// upgradeCluster is upgradeInstance for all instances of a cluster, one by one, the
// writer last.
func (s *Server) upgradeCluster(ctx context.Context, l *sight, c front.Call, r state.Record[spec.Cluster]) error {
	cluster := r.Value
	to, ok := l.upgradeOf(cluster.Common)
	if !ok {
		return nil
	}
	if err := l.MayCluster(operation.Change, cluster); err != nil {
		return err
	}
	cluster.Version = to
	cluster.OptIn(spec.DBUpgrade, false, c.Now)
	cluster.Restart++
	cluster.Generation++
	look.Begin(&cluster.Common, upgrading, nil, "0173")
	ops, err := look.Tell(c, event.Cluster, cluster.Common, look.Event("0286"))
	if err != nil {
		return err
	}
	for _, member := range l.MembersOf(cluster.ResourceID) {
		i := member.Value
		i.Change = i.Restart + cluster.Restart
		i.ChangeStatus, i.ChangeEvents, i.Before = upgrading, []string{"0047"}, nil
		i.Generation++
		ops = append(ops, state.Swap(member.Key, member.Revision, i))
	}
	return s.client.Commit(ctx, append(ops, state.Swap(r.Key, r.Revision, cluster))...)
}

// upgradeChores offer newer minor versions, and apply them in the window to those who
// want that, or have not turned it off.
func (s *Server) upgradeChores(h *household, now time.Time) []chore {
	var all []chore
	installed := s.looks.Installed()
	for _, r := range h.instances {
		i := r.Value
		if i.Cluster != "" || !look.Newer(installed[i.Major], i.Version) {
			continue
		}
		all = append(all, chore{"offer an upgrade", r.Key + " (offer)", i.Account, func(ctx context.Context, l *sight, c front.Call) error {
			return s.offer(ctx, l, c, i.Common, event.Instance, func(next spec.Common) state.Op {
				i.Common = next
				return state.Swap(r.Key, r.Revision, i)
			})
		}})
		if (i.AutoMinor || i.OptedIn(spec.DBUpgrade)) && spec.InMaintenanceWindow(i.MaintenanceWindow, now) {
			all = append(all, chore{"upgrade PostgreSQL", r.Key + " (upgrade)", i.Account, func(ctx context.Context, l *sight, c front.Call) error {
				if !slices.Contains(look.Usable, l.Status(i)) {
					return nil
				}
				return s.upgradeInstance(ctx, l, c, r)
			}})
		}
	}
	for _, r := range h.clusters {
		cluster := r.Value
		if !look.Newer(installed[cluster.Major], cluster.Version) {
			continue
		}
		all = append(all, chore{"offer an upgrade", r.Key + " (offer)", cluster.Account, func(ctx context.Context, l *sight, c front.Call) error {
			return s.offer(ctx, l, c, cluster.Common, event.Cluster, func(next spec.Common) state.Op {
				cluster.Common = next
				return state.Swap(r.Key, r.Revision, cluster)
			})
		}})
		if (cluster.AutoMinor || cluster.OptedIn(spec.DBUpgrade)) && spec.InMaintenanceWindow(cluster.MaintenanceWindow, now) {
			all = append(all, chore{"upgrade PostgreSQL", r.Key + " (upgrade)", cluster.Account, func(ctx context.Context, l *sight, c front.Call) error {
				if !slices.Contains(look.Usable, l.ClusterStatus(cluster)) {
					return nil
				}
				return s.upgradeCluster(ctx, l, c, r)
			}})
		}
	}
	return all
}

// offer tells once that a version can be upgraded to.
func (s *Server) offer(ctx context.Context, l *sight, c front.Call, old spec.Common, kind event.SourceType, put func(spec.Common) state.Op) error {
	to, ok := l.upgradeOf(old)
	if !ok || old.Offered == to {
		return nil
	}
	number := "0155"
	if kind == event.Cluster {
		number = "0156"
	}
	ops, err := look.Tell(c, kind, old, look.Event(number))
	if err != nil {
		return err
	}
	old.Offered = to
	old.Generation++
	return s.client.Commit(ctx, append(ops, put(old))...)
}
