package upkeep

import (
	"context"
	"time"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/control/plan"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// upgrading is the status while a newer minor version of PostgreSQL is brought in.
const upgrading = "upgrading"

// upgradeOf is the minor version that a database can go to now: the newest that all
// hosts of its members have installed, if that is newer than its own.
func upgradeOf(l *look.Look, c *spec.Common) (to string, ok bool) {
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

// bringUp has a database restarted with the newest minor version that its hosts have.
func (u *Upkeep) bringUp(ctx context.Context, l *database.Sight, c front.Call, w ward) error {
	to, ok := upgradeOf(l.Look, w.Common)
	if !ok {
		return nil
	}
	if err := w.may(l.Look); err != nil {
		return err
	}
	return w.upgrade(ctx, l, c, to)
}

// upgradeInstance restarts an instance with a version, its standby first.
func (u *Upkeep) upgradeInstance(ctx context.Context, c front.Call, r state.Record[spec.Instance], to string) error {
	i := r.Value
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
	return u.State.Commit(ctx, append(events, state.Swap(r.Key, r.Revision, i))...)
}

// upgradeCluster is upgradeInstance for all instances of a cluster, one by one, the
// writer last.
func (u *Upkeep) upgradeCluster(ctx context.Context, l *database.Sight, c front.Call, r state.Record[spec.Cluster], to string) error {
	cluster := r.Value
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
	return u.State.Commit(ctx, append(ops, state.Swap(r.Key, r.Revision, cluster))...)
}

// upgrades offer newer minor versions, and bring them in the window to those who want that, or
// have not turned it off.
func (h *House) upgrades(now time.Time) []chore {
	var all []chore
	installed := h.Looks.Installed()
	for _, w := range h.wards {
		if !w.ownVersion || !look.Newer(installed[w.Major], w.Version) {
			continue
		}
		all = append(all, w.chore("offer an upgrade", " (offer)", func(ctx context.Context, l *database.Sight, c front.Call) error {
			return h.offerUpgrade(ctx, l.Look, c, w)
		}))
		if (w.autoMinor || w.OptedIn(spec.DBUpgrade)) && spec.InMaintenanceWindow(w.MaintenanceWindow, now) {
			all = append(all, w.chore("upgrade PostgreSQL", " (upgrade)", func(ctx context.Context, l *database.Sight, c front.Call) error {
				if !w.usable(l.Look) {
					return nil
				}
				return h.bringUp(ctx, l, c, w)
			}))
		}
	}
	return all
}

// offerUpgrade tells once that a version can be upgraded to.
func (u *Upkeep) offerUpgrade(ctx context.Context, l *look.Look, c front.Call, w ward) error {
	to, ok := upgradeOf(l, w.Common)
	if !ok || w.Offered == to {
		return nil
	}
	number := "0155"
	if w.kind == event.Cluster {
		number = "0156"
	}
	next := *w.Common
	ops, err := look.Tell(c, w.kind, next, look.Event(number))
	if err != nil {
		return err
	}
	next.Offered = to
	next.Generation++
	return u.State.Commit(ctx, append(ops, w.put(next))...)
}
