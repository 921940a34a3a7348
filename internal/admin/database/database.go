// Package database is what the admin API knows of databases, of all accounts and regions: facts,
// from looks, and what the planner would do. It changes nothing.
package database

import (
	"slices"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/aws/rds/look"
	"howdah/internal/control/plan"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// Subject is a database, with all that is known of it, and with the API resource that it belongs
// to.
type Subject struct {
	plan.Facts
	Common   spec.Common
	Instance *spec.Instance // or
	Cluster  *spec.Cluster
	Own      []spec.Instance // of the cluster
	Sync     patroni.Sync
}

// Source tells of databases. Use New.
type Source struct {
	looks *look.Source
	wants *view.Wants
}

// New returns a source.
func New(looks *look.Source) *Source {
	return &Source{looks: looks, wants: &view.Wants{Records: looks.Records}}
}

// All returns the databases of all accounts and regions, by name.
func (s *Source) All() []Subject {
	var all []Subject
	for _, r := range state.LoadAll[spec.Instance](s.looks.Cache, state.InstanceRoot) {
		if i := r.Value; i.Cluster == "" {
			all = append(all, Subject{Facts: s.looks.Facts(plan.ForInstance(i, look.FollowLinks(i))), Common: i.Common, Instance: &i})
		}
	}
	for _, r := range state.LoadAll[spec.Cluster](s.looks.Cache, state.ClusterRoot) {
		c := r.Value
		facts, own := s.clusterFacts(c)
		all = append(all, Subject{Facts: facts, Common: c.Common, Cluster: &c, Own: own})
	}
	for i := range all {
		all[i].Sync = view.Sync(s.looks.Cache, all[i].Want.ID)
	}
	slices.SortStableFunc(all, func(a, b Subject) int { return strings.Compare(a.Common.Name, b.Common.Name) })
	return all
}

// Has reports whether the database, or an instance of the cluster, has this name.
func (d Subject) Has(name string) bool {
	return d.Common.Name == name || slices.ContainsFunc(d.Own, func(i spec.Instance) bool { return i.Name == name })
}

// Named returns the ARNs that policies may mean if the database is asked for by a name. The name of
// an instance of a cluster shows the cluster.
func (d Subject) Named(name string) []string {
	if d.Instance != nil {
		return []string{d.Common.ARN("db", d.Common.Name)}
	}
	all := []string{d.Common.ARN("cluster", d.Common.Name)}
	for _, i := range d.Own {
		if i.Name == name {
			all = append(all, i.ARN("db", name))
		}
	}
	return all
}

// Title returns how texts call the database.
func (d Subject) Title() string { return "db " + d.Common.Name }

// Follows reports whether the database follows another one.
func (d Subject) Follows() bool { return d.Want.Upstream != nil }

// Role returns the role of a member. If the database follows another one, nobody is primary.
func (d Subject) Role(m plan.Placed) string {
	switch {
	case m.Name != d.Leader:
		return admin.RoleStandby
	case d.Follows():
		return admin.RoleReplica
	default:
		return admin.RolePrimary
	}
}

// SeatName returns the instance of a cluster that has a seat.
func (d Subject) SeatName(seat string) string {
	for _, i := range d.Own {
		if i.ResourceID == seat {
			return i.Name
		}
	}
	return ""
}

// HostOf returns the host of a member, by the member's name.
func (d Subject) HostOf(name string) string {
	for _, m := range d.Layout.Members {
		if m.Name == name {
			return m.Host
		}
	}
	return "no host"
}

// clusterFacts returns the facts of a cluster with its instances.
func (s *Source) clusterFacts(c spec.Cluster) (plan.Facts, []spec.Instance) {
	var own []spec.Instance
	for _, i := range state.LoadAll[spec.Instance](s.looks.Cache, state.Instance(c.Account, c.Region, "")) {
		if i.Value.Cluster == c.ResourceID {
			own = append(own, i.Value)
		}
	}
	return s.looks.ClusterFacts(c, own), own
}

// Input returns what reconcile decides a database's next step by. Reports and edges count as they
// do for a status: if their agent, or the edge, runs. ok is false if the database is no longer
// wanted.
func (s *Source) Input(d Subject) (in plan.Input, ok bool) {
	wanted := s.wants.Now()
	own := wanted.Database(d.Want.ID)
	if own == nil {
		return in, false
	}
	basis := wanted.Basis(own, d.Layout, s.looks.Hosts())
	basis.Reports, basis.Since = d.Reports, s.looks.Doubtful()
	return basis.Input(s.looks.Now(), s.looks.Policy), true
}

// Names returns the names of all databases, by resource id.
func (s *Source) Names() map[string]string {
	names := map[string]string{}
	for _, d := range s.All() {
		names[d.Want.ID] = d.Common.Name
	}
	return names
}
