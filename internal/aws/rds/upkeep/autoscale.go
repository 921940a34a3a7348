package upkeep

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/instance"
	"howdah/internal/aws/rds/look"
	"howdah/internal/control/plan"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// autoscales reports whether the storage of an instance may grow by itself. Instances of clusters
// have their cluster's, which RDS does not let grow by itself: neither Aurora's, which has no size,
// nor that of a Multi-AZ DB cluster.
func autoscales(i spec.Instance) bool {
	return i.Cluster == "" && i.MaxStorage > i.Storage && !i.Going()
}

// growths are the instances whose storage is to grow now.
func (h *House) growths(now time.Time) []chore {
	var all []chore
	known := map[string]bool{}
	for _, r := range h.instances {
		i := r.Value
		if !autoscales(i) {
			continue
		}
		known[i.ResourceID] = true
		s := h.stores[i.ResourceID]
		if s == nil {
			s = &store{}
			h.stores[i.ResourceID] = s
		}
		used, said := h.used(i.ResourceID)
		if !said {
			continue
		}
		if s.see(now, used, int64(i.Storage)<<30); !s.due(now, i.StorageChanged) {
			continue
		}
		to := grown(i.Storage, i.MaxStorage, s.predicted(now, used))
		all = append(all, chore{"have storage grow", r.Key + " (storage)", i.Account, func(ctx context.Context, l *database.Sight, c front.Call) error {
			return h.grow(ctx, l, c, r, s, to)
		}})
	}
	maps.DeleteFunc(h.stores, func(id string, _ *store) bool { return !known[id] })
	return all
}

// used returns how many bytes of its storage an instance uses, as the host of its primary says.
func (h *House) used(id string) (bytes int64, said bool) {
	cache := h.State.Cache
	layout, err := state.View[plan.Layout](cache, state.Layout(id))
	if err != nil {
		return 0, false
	}
	leader := view.Leader(cache, id)
	for _, m := range layout.Value.Members {
		if m.Name != leader {
			continue
		}
		live, err := state.View[member.Liveness](cache, state.Live(m.Host))
		report, bad := state.View[member.Report](cache, state.Report(m.Host, member.ID(id, m.Name)))
		if err != nil || bad != nil || !live.Value.Alive || report.Value.StorageBytes <= 0 {
			return 0, false
		}
		return report.Value.StorageBytes, true
	}
	return 0, false
}

// grow has storage grow as a modification does, once the instance is usable. It tells, once, why it
// cannot.
func (h *House) grow(ctx context.Context, l *database.Sight, c front.Call, r state.Record[spec.Instance], s *store, to int) error {
	i := r.Value
	if h.instance(r).may(l.Look) != nil {
		return nil //nolint:nilerr // it is looked at again in the next round
	}
	disk := i.Disk()
	disk.GiB = to
	disk, err := spec.CheckStorage(disk)
	why := h.tooFull(i.ResourceID, int64(to-i.Storage)<<30)
	if err != nil {
		why = err.Error()
	}
	if why != "" {
		return h.cannotGrow(ctx, c, i, s, why)
	}
	m := instance.Kind.Begin(l, c)
	m.Autoscales = true
	if to == i.MaxStorage {
		m.Began = append(m.Began, look.Event("0224"))
	}
	if to*5 >= i.MaxStorage*4 {
		m.Began = append(m.Began, look.Event("0225", strconv.Itoa(to), strconv.Itoa(i.MaxStorage)))
	}
	if i.Pending != nil && i.Pending.Disk != nil && i.Pending.Disk.GiB < to {
		// What waits for the window must not make it smaller again.
		pending, later := *i.Pending, *i.Pending.Disk
		later.GiB = to
		pending.Disk, i.Pending = &later, &pending
	}
	return instance.Kind.Apply(ctx, m, r, i, spec.Values{Disk: &disk})
}

// tooFull says which host of a database has less room on its disk than its storage is to get, or "".
func (h *House) tooFull(id string, more int64) string {
	cache := h.State.Cache
	layout, err := state.View[plan.Layout](cache, state.Layout(id))
	if err != nil {
		return ""
	}
	for _, m := range layout.Value.Members {
		host, err := state.View[member.Host](cache, state.Host(m.Host))
		if err == nil && host.Value.DiskFree < more {
			return fmt.Sprintf("the disk of host %s has %d GiB free, and %d GiB are needed", m.Host, host.Value.DiskFree>>30, more>>30)
		}
	}
	return ""
}

func (h *House) cannotGrow(ctx context.Context, c front.Call, i spec.Instance, s *store, why string) error {
	if s.told != "" {
		return nil
	}
	ops, err := look.Tell(c, event.Instance, i.Common, look.Event("0223", why))
	if err == nil {
		err = h.State.Commit(ctx, ops...)
	}
	if err == nil {
		s.told = why
	}
	return err
}
