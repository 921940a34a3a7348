package look

import (
	"iter"
	"slices"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// Facts gathers what is known of a database now: nothing that is shown as a
// status was stored as one.
func (s *Source) Facts(want plan.Database) plan.Facts {
	f := plan.Facts{Want: want, Reports: map[string]member.Report{}, Alive: map[string]bool{}}
	if layout, err := state.Load[plan.Layout](s.Cache, state.Layout(want.ID)); err == nil {
		f.Layout = layout.Value
	}
	for _, m := range f.Layout.Members {
		id := member.ID(want.ID, m.Name)
		if report, err := state.Load[member.Report](s.Cache, state.Report(m.Host, id)); err == nil {
			if s.Hearing != nil && !s.Hearing.Vouches(m.Host, report.Value.Agent) {
				report.Value.Ready = false // a login worked, but not a moment ago
			}
			f.Reports[id] = report.Value
		}
		if live, err := state.Load[member.Liveness](s.Cache, state.Live(m.Host)); err == nil {
			f.Alive[m.Host] = live.Value.Alive
		}
	}
	f.Ways = view.Ways(s.Cache, s.routes(want), s.Doubtful())
	leader, _, _ := s.Cache.Raw(patroni.LeaderKey(want.ID))
	f.Leader = patroni.MemberName(string(leader))
	return f
}

// routes are those of a database that belong to its writer or to one seat.
func (s *Source) routes(want plan.Database) []route.Route {
	ids := []string{want.ID, route.Writer(want.ID)}
	for _, seat := range want.Seats {
		ids = append(ids, seat.Key)
	}
	var routes []route.Route
	for _, id := range ids {
		if r, err := state.Load[route.Route](s.Cache, state.Route(id)); err == nil {
			routes = append(routes, r.Value)
		}
	}
	return routes
}

// InstanceFacts are those of an instance with a database of its own; of what is wanted
// its shape only.
func (s *Source) InstanceFacts(i spec.Instance) plan.Facts {
	return s.Facts(plan.ShapeOf(i, FollowLinks(i)))
}

// FollowLinks says only that an instance follows another one: whom does not
// matter for its status.
func FollowLinks(i spec.Instance) plan.Links {
	if i.Follows() {
		return plan.Links{Upstream: &patroni.Upstream{}}
	}
	return plan.Links{}
}

// Links are those of FollowLinks, with the groups, by whose values a database is placed.
func (l *Look) Links(i spec.Instance) plan.Links {
	links := FollowLinks(i)
	links.Groups = l.Groups
	return links
}

// ClusterFacts are those of a cluster with its instances. Known are the instances that have
// been available once.
func (s *Source) ClusterFacts(c spec.Cluster, own []spec.Instance) plan.Facts {
	f := s.Facts(plan.ForCluster(c, own, plan.Links{}))
	f.Known = map[string]bool{}
	for _, i := range own {
		f.Known[i.ResourceID] = i.Announced
	}
	return f
}

// SeatOf is the seat of an instance of a cluster.
func SeatOf(f plan.Facts, i spec.Instance) plan.Seat {
	for _, seat := range f.Want.Seats {
		if seat.Key == i.ResourceID {
			return seat
		}
	}
	return plan.Seat{Key: i.ResourceID}
}

// Candidates are the members that can take over without losing anything: those that are
// in sync, and those that receive from the primary and are about to be, as when a database
// has just become available. The planner hands over once one is in sync. A database that
// follows another one has no synchronous standby, and nothing to lose.
func (l *Look) Candidates(f plan.Facts) []plan.Placed {
	sync, anybody := view.Sync(l.Cache, f.Want.ID), plan.SyncMode(f.Want, f.Layout) != patroni.SyncOff
	var all []plan.Placed
	for _, m := range f.Layout.Members {
		report := f.Reports[member.ID(f.Want.ID, m.Name)]
		inSync := sync.Leader == f.Leader && slices.Contains(sync.Standbys, m.Name)
		// One that stands aside is put in sync before it takes over, too.
		soon := anybody && f.Leader != "" && !m.Barred && m.Going == plan.Staying
		can := report.Streaming && (inSync || soon) || f.Want.Upstream != nil
		if m.Name != f.Leader && !m.Leaving && f.Alive[m.Host] && report.Ready && can {
			all = append(all, m)
		}
	}
	return all
}

// PlacesOf are the members that an instance stands for, but for those that leave: all of a database
// of its own, and in a cluster those of its seat.
func PlacesOf(i spec.Instance, f plan.Facts) iter.Seq[plan.Placed] {
	return func(yield func(plan.Placed) bool) {
		for _, m := range f.Layout.Members {
			if !m.Leaving && (i.Cluster == "" || m.Seat == i.ResourceID) && !yield(m) {
				return
			}
		}
	}
}

// FactsOf are those of the database that an instance is, or is part of.
func (l *Look) FactsOf(i spec.Instance) plan.Facts {
	if i.Cluster == "" {
		return l.InstanceFacts(i)
	}
	return l.FactsOfCluster(l.Cluster[i.Cluster])
}

// FactsOfCluster are those of the database that a cluster is.
func (l *Look) FactsOfCluster(c spec.Cluster) plan.Facts {
	return l.ClusterFacts(c, l.InstancesOf(c.ResourceID))
}
