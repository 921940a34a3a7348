package server

import (
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// facts gathers what is known of a database now: nothing that is shown as a
// status was stored as one.
func (s *Server) facts(want plan.Database) plan.Facts {
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
	f.Ways = view.Ways(s.Cache, s.routes(want), s.doubtful())
	leader, _, _ := s.Cache.Raw(patroni.LeaderKey(want.ID))
	f.Leader = patroni.MemberName(string(leader))
	return f
}

// routes are those of a database that belong to its writer or to one seat.
func (s *Server) routes(want plan.Database) []route.Route {
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

// instanceFacts are those of an instance with a database of its own; of what is wanted
// its shape only.
func (s *Server) instanceFacts(i spec.Instance) plan.Facts {
	return s.facts(plan.ShapeOf(i, followLinks(i)))
}

// followLinks says only that an instance follows another one: whom does not
// matter for its status.
func followLinks(i spec.Instance) plan.Links {
	if i.Follows() {
		return plan.Links{Upstream: &patroni.Upstream{}}
	}
	return plan.Links{}
}

// clusterFacts are those of a cluster with its instances.
func (s *Server) clusterFacts(c spec.Cluster) (plan.Facts, []spec.Instance) {
	var own []spec.Instance
	for _, i := range s.instances(c.Scope) {
		if i.Value.Cluster == c.ResourceID {
			own = append(own, i.Value)
		}
	}
	f := s.facts(plan.ForCluster(c, own, plan.Links{}))
	f.Known = announced(own)
	return f, own
}

// announced are the instances of a cluster that have been available once.
func announced(own []spec.Instance) map[string]bool {
	known := map[string]bool{}
	for _, i := range own {
		known[i.ResourceID] = i.Announced
	}
	return known
}

// instances of a scope, by name.
func (s *Server) instances(scope spec.Scope) []state.Record[spec.Instance] {
	return state.LoadAll[spec.Instance](s.Cache, state.Instance(scope.Account, scope.Region, ""))
}

// clusters of a scope, by name.
func (s *Server) clusters(scope spec.Scope) []state.Record[spec.Cluster] {
	return state.LoadAll[spec.Cluster](s.Cache, state.Cluster(scope.Account, scope.Region, ""))
}

// instanceStatus is the status word of any instance.
func (s *Server) instanceStatus(i spec.Instance) string { return s.look(i.Account).status(i) }

// seatOf is the seat of an instance of a cluster.
func seatOf(f plan.Facts, i spec.Instance) plan.Seat {
	for _, seat := range f.Want.Seats {
		if seat.Key == i.ResourceID {
			return seat
		}
	}
	return plan.Seat{Key: i.ResourceID}
}
