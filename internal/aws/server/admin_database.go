package server

import (
	"fmt"
	"slices"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/aws/rds/look"
	"howdah/internal/control/plan"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// subject is a database with all that is known of it and the API resource that
// it belongs to.
type subject struct {
	plan.Facts
	common   spec.Common
	instance *spec.Instance // or
	cluster  *spec.Cluster
	own      []spec.Instance // of the cluster
	sync     patroni.Sync
}

// subjects are the databases of all accounts and regions, by name.
func (s *Server) subjects() []subject {
	var all []subject
	for _, r := range state.LoadAll[spec.Instance](s.Cache, state.InstanceRoot) {
		if i := r.Value; i.Cluster == "" {
			all = append(all, subject{Facts: s.looks.Facts(plan.ForInstance(i, look.FollowLinks(i))), common: i.Common, instance: &i})
		}
	}
	for _, r := range state.LoadAll[spec.Cluster](s.Cache, state.ClusterRoot) {
		c := r.Value
		facts, own := s.clusterFacts(c)
		all = append(all, subject{Facts: facts, common: c.Common, cluster: &c, own: own})
	}
	for i := range all {
		all[i].sync = view.Sync(s.Cache, all[i].Want.ID)
	}
	slices.SortStableFunc(all, func(a, b subject) int { return strings.Compare(a.common.Name, b.common.Name) })
	return all
}

// has: the database, or an instance of the cluster, has this name.
func (d subject) has(name string) bool {
	return d.common.Name == name || slices.ContainsFunc(d.own, func(i spec.Instance) bool { return i.Name == name })
}

// named are the ARNs that policies may mean where the database is asked for by a name:
// that of an instance of a cluster shows the cluster.
func (d subject) named(name string) []string {
	if d.instance != nil {
		return []string{d.common.ARN("db", d.common.Name)}
	}
	all := []string{d.common.ARN("cluster", d.common.Name)}
	for _, i := range d.own {
		if i.Name == name {
			all = append(all, i.ARN("db", name))
		}
	}
	return all
}

// title is how texts call the database.
func (d subject) title() string { return "db " + d.common.Name }

func (d subject) follows() bool { return d.Want.Upstream != nil }

// role of a member. Of a database that follows another one nobody is primary.
func (d subject) role(m plan.Placed) string {
	switch {
	case m.Name != d.Leader:
		return admin.RoleStandby
	case d.follows():
		return admin.RoleReplica
	default:
		return admin.RolePrimary
	}
}

func (d subject) syncState(m plan.Placed) string {
	mode := plan.SyncMode(d.Want, d.Layout)
	switch {
	case d.role(m) != admin.RoleStandby:
		return ""
	case !slices.Contains(d.sync.Standbys, m.Name) || d.sync.Leader != d.Leader:
		return admin.SyncAsync
	case mode == patroni.SyncQuorum:
		return admin.SyncQuorum
	default:
		return admin.SyncSync
	}
}

// databaseOut shows a database.
func (s *Server) databaseOut(d subject) admin.Database {
	out := admin.Database{
		Kind: admin.KindInstance, Name: d.common.Name, Account: d.common.Account, Region: d.common.Region,
		ResourceID: d.common.ResourceID, Engine: d.common.Engine, Version: d.common.Version,
		MasterUser: d.common.MasterUser, DBName: d.common.DBName, Created: d.common.Created,
		Protected: d.common.DeletionProtection, Abandoned: d.Layout.Abandoned, SyncMode: string(plan.SyncMode(d.Want, d.Layout)),
		Endpoints: s.endpointsOut(d), Members: []admin.Member{}, Steps: stepsOut(d.Layout.Steps),
		HostKeys: len(d.Layout.Members) > 0 && !d.Layout.OnlyOwnKeys,
	}
	if i := d.instance; i != nil {
		out.Status = s.instanceStatus(*i)
		out.Class, out.MultiAZ, out.Follows, out.Waiting = i.Class, i.MultiAZ, s.sourceName(*i), i.Pending != nil
		out.StorageGiB, out.StorageType, out.IOPS = i.Storage, i.StorageType, i.IOPS
	}
	if c := d.cluster; c != nil {
		out.Kind, out.Status, out.MultiAZ = admin.KindCluster, d.DatabaseStatus(), c.MultiAZ()
		out.Class, out.StorageGiB, out.StorageType, out.IOPS = c.Class, c.Storage, c.StorageType, c.IOPS
	}
	primary := s.position(d.Want.ID, d.Leader)
	for _, m := range d.Layout.Members {
		out.Members = append(out.Members, s.memberOut(d, m, primary))
	}
	return out
}

// sourceName is the name of the database that an instance follows.
func (s *Server) sourceName(i spec.Instance) string {
	if !i.Follows() {
		return ""
	}
	for _, other := range s.instances(i.Scope) {
		if other.Value.ResourceID == i.Source {
			return other.Value.Name
		}
	}
	for _, c := range s.clusters(i.Scope) {
		if c.Value.ResourceID == i.Source {
			return c.Value.Name
		}
	}
	return i.Source
}

// position is where a member's WAL ends, as its Patroni said a second ago; 0 if
// it is not known. Reports of agents tell positions less often.
func (s *Server) position(database, name string) lsn.LSN {
	m, _ := patroni.FindMember(s.Cache.Raw, database, name)
	return lsn.LSN(m.Location)
}

func (s *Server) memberOut(d subject, m plan.Placed, primary lsn.LSN) admin.Member {
	report := d.Reports[member.ID(d.Want.ID, m.Name)]
	out := admin.Member{
		Name: m.Name, Instance: d.seatName(m.Seat), Host: m.Host, Zone: m.Zone,
		Address: m.Listen(), Role: d.role(m), Sync: d.syncState(m),
		Patroni: report.Patroni, Postgres: report.Postgres, Timeline: report.Timeline, LSN: report.LSN,
		StorageBytes: report.StorageBytes, Going: string(m.Going), Problem: string(report.Problem), Detail: report.Detail,
	}
	out.State = d.memberState(m, report)
	out.Ready = out.State == stateReady
	at := s.position(d.Want.ID, m.Name)
	if at > 0 {
		out.LSN = at
	}
	if out.Role == admin.RoleStandby && report.Ready {
		seconds := report.LagSeconds
		out.LagSeconds = &seconds
		if at > 0 && primary > 0 {
			bytes := max(int64(primary)-int64(at), 0)
			out.LagBytes = &bytes
		}
	}
	return out
}

// Words for what a member does.
const (
	stateReady    = "ready"
	stateLost     = "host lost"
	stateRemoving = "removing"
	stateStopped  = "stopped"
	stateStarting = "starting"
	stateNotReady = "not ready"
	stateDown     = "down"
)

func (d subject) memberState(m plan.Placed, r member.Report) string {
	switch {
	case !d.Alive[m.Host]:
		return stateLost
	case m.Leaving:
		return stateRemoving
	case r.Ready && (m.Name == d.Leader || r.Streaming || d.follows()):
		return stateReady
	case m.Stopped && !r.Postgres:
		return stateStopped
	case r.Postgres:
		return stateNotReady
	case r.Patroni:
		return stateStarting
	default:
		return stateDown
	}
}

// seatName is the instance of a cluster that has a seat.
func (d subject) seatName(seat string) string {
	for _, i := range d.own {
		if i.ResourceID == seat {
			return i.Name
		}
	}
	return ""
}

// endpointsOut are the addresses of a database, with where each leads by what is
// known here: the edges decide it in the same way.
func (s *Server) endpointsOut(d subject) []admin.Endpoint {
	view := route.View{Serving: map[string]bool{}}
	for _, m := range d.Layout.Members {
		report := d.Reports[member.ID(d.Want.ID, m.Name)]
		ready := d.memberState(m, report) == stateReady
		view.Serving[m.Name] = ready && report.Streaming
		if m.Name == d.Leader && ready {
			view.Leader = m.Name
		}
	}
	out := []admin.Endpoint{}
	for _, record := range state.LoadAll[route.Route](s.Cache, state.RouteRoot) {
		if r := record.Value; r.Database == d.Want.ID {
			kind, name := s.endpointName(d, r)
			out = append(out, admin.Endpoint{Kind: kind, Name: name, Address: r.Listen, LeadsTo: leadsTo(r, view)})
		}
	}
	if len(out) == 0 && d.common.Address != "" {
		// Not routed yet: the address is decided all the same.
		address := fmt.Sprintf("%s:%d", d.common.Address, d.common.Port)
		out = append(out, admin.Endpoint{Kind: admin.EndpointWriter, Name: d.common.Name, Address: address, LeadsTo: []string{}})
	}
	order := []string{admin.EndpointWriter, admin.EndpointReader, admin.EndpointInstance, admin.EndpointCustom}
	slices.SortStableFunc(out, func(a, b admin.Endpoint) int {
		return slices.Index(order, a.Kind) - slices.Index(order, b.Kind)
	})
	return out
}

func leadsTo(r route.Route, view route.View) []string {
	targets := r.Targets(view)
	names := []string{}
	for _, m := range r.Members {
		if slices.Contains(targets, m.Address) {
			names = append(names, m.Name)
		}
	}
	return names
}

// endpointName tells the endpoints of a database apart by their ids.
func (s *Server) endpointName(d subject, r route.Route) (kind, name string) {
	switch r.Kind {
	case route.Leader:
		return admin.EndpointWriter, d.common.Name
	case route.Readers:
		return admin.EndpointReader, d.common.Name
	case route.Seats:
	}
	if instance := d.seatName(r.ID); instance != "" {
		return admin.EndpointInstance, instance
	}
	for _, e := range state.LoadAll[spec.Endpoint](s.Cache, state.EndpointRoot) {
		if e.Value.ResourceID == r.ID {
			return admin.EndpointCustom, e.Value.Name
		}
	}
	return admin.EndpointCustom, r.ID
}

// clusterFacts are those of a cluster with its instances.
func (s *Server) clusterFacts(c spec.Cluster) (plan.Facts, []spec.Instance) {
	var own []spec.Instance
	for _, i := range s.instances(c.Scope) {
		if i.Value.Cluster == c.ResourceID {
			own = append(own, i.Value)
		}
	}
	return s.looks.ClusterFacts(c, own), own
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
func (s *Server) instanceStatus(i spec.Instance) string { return s.look(i.Account).Status(i) }
