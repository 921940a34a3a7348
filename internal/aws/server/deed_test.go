package server

import (
	"slices"
	"strconv"
	"time"

	"howdah/internal/aws/rds/look"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// The deeds of reconcile, agents and Patroni, as far as the API sees them.

// wanted are the databases of a user, with what is wanted of them.
func (u *user) wanted() []plan.Database {
	u.Helper()
	if err := u.server.client.Fresh(u.Context()); err != nil {
		u.Fatal(err)
	}
	l := u.server.rds.Databases.Of(u.account)
	var all []plan.Database
	for _, r := range l.Instances {
		if i := *r.Value; i.Cluster == "" {
			all = append(all, plan.ForInstance(i, look.FollowLinks(i)))
		}
	}
	for _, r := range l.Clusters {
		all = append(all, plan.ForCluster(r.Value, l.InstancesOf(r.Value.ResourceID), plan.Links{}))
	}
	return all
}

// settle carries out everything that the user asked for: databases run, stop, or
// are gone, and all requests are done.
func (u *user) settle() {
	u.Helper()
	u.settleBackups()
	for _, want := range u.wanted() {
		switch want.State {
		case member.Absent:
			u.remove(want.ID)
		case member.Stopped:
			u.layOut(want, func(s *scene) { s.down() })
		default:
			u.layOut(want, nil)
		}
	}
	u.settleMembers()
}

// settleMembers removes deleted members of clusters and announces the others.
func (u *user) settleMembers() {
	u.Helper()
	l := u.server.rds.Databases.Of(u.account)
	var ops []state.Op
	for _, r := range l.Instances {
		if r.Value.Cluster != "" && r.Value.Deleting {
			ops = append(ops, state.Remove(r.Key, r.Revision), state.Delete(state.Address(r.Value.Address)))
		}
	}
	for _, r := range l.Clusters {
		for _, e := range l.EndpointsOf(r.Value.ResourceID) {
			if e.Value.Deleting {
				ops = append(ops, state.Remove(e.Key, e.Revision), state.Delete(state.Address(e.Value.Address)))
			}
		}
		ops = append(ops, routesOf(u.world, l, r.Value)...)
	}
	if len(ops) > 0 {
		u.put(ops...)
	}
	u.server.rds.Upkeep.House().Keep(u.Context())
}

// scene is what is seen of one database.
type scene struct {
	layout  plan.Layout
	reports map[string]member.Report
	leader  string
	sync    []string
}

func (s *scene) each(change func(*member.Report)) {
	for id, r := range s.reports {
		change(&r)
		s.reports[id] = r
	}
}

// promote makes a member the leader, and the one that led a standby in sync.
func (s *scene) promote(name string) {
	old := s.leader
	s.leader, s.sync = name, []string{old}
	for id, r := range s.reports {
		leads := id == member.ID(s.layout.ID, name)
		r.InRecovery, r.Streaming = !leads, !leads
		s.reports[id] = r
	}
}

// down: no process runs.
func (s *scene) down() {
	s.leader, s.sync = "", nil
	s.each(func(r *member.Report) { *r = member.Report{ID: r.ID, Host: r.Host} })
}

// layOut writes a database that runs as wanted, with what change makes of it.
func (u *user) layOut(want plan.Database, change func(*scene)) {
	u.Helper()
	s := &scene{reports: map[string]member.Report{}, layout: plan.Layout{
		ID: want.ID, Created: true, Changed: want.Change, Rebooted: want.Reboot, FailedOver: want.Failover, Next: len(want.Seats),
	}}
	for n, seat := range want.Seats {
		s.place(want, seat, n)
	}
	if change != nil {
		change(s)
	}
	ops := []state.Op{
		state.Put(state.Runs("edge"), true), state.Put(state.Layout(want.ID), s.layout), state.Put(patroni.SyncKey(want.ID), patroniSync(s.leader, s.sync)),
	}
	for id, r := range s.reports {
		ops = append(ops, state.Put(state.Report(r.Host, id), r))
	}
	u.put(append(ops, s.ways(want)...)...)
	u.lead(want.ID, s.leader)
}

// ways are the endpoints of a database, and the edge's word that they lead to its
// leader and to the members of its seats.
func (s *scene) ways(want plan.Database) []state.Op {
	leader := route.Route{ID: want.ID, Kind: route.Leader}
	var ops []state.Op
	for _, m := range s.layout.Members {
		if m.Name == s.leader {
			ops = append(ops, way(leader, m)...)
		}
		if m.Seat != "" {
			ops = append(ops, way(route.Route{ID: m.Seat, Kind: route.Seats, Seats: []string{m.Seat}}, m)...)
		}
	}
	return ops
}

func way(r route.Route, m plan.Placed) []state.Op {
	return []state.Op{
		state.Put(state.Route(r.ID), r),
		state.Put(state.Way(r.ID, "edge"), route.Way{Route: r.ID, Edge: "edge", Targets: []string{m.Listen()}}),
	}
}

// lead writes Patroni's leader key, whose value is no JSON.
func (u *user) lead(database, leader string) {
	u.Helper()
	answer, err := u.server.Store.Client.Put(u.Context(), patroni.LeaderKey(database), leader)
	if err != nil {
		u.Fatal(err)
	}
	if err := u.server.Cache.WaitRevision(u.Context(), answer.Header.Revision); err != nil {
		u.Fatal(err)
	}
}

// certUntil is when the certificates of all servers end.
var certUntil = time.Date(2027, 11, 22, 0, 0, 0, 0, time.UTC)

// place adds a member for a seat: the first one leads, the others stream.
func (s *scene) place(want plan.Database, seat plan.Seat, n int) {
	zones := []string{"a", "b", "c"}
	zone := zones[n%len(zones)]
	switch {
	case seat.Zone != "":
		zone = seat.Zone
	case want.Zone != "" && n == 0:
		zone = want.Zone
	}
	m := plan.Placed{
		Name: "m" + strconv.Itoa(n+1), Seat: seat.Key, Host: "host-" + zone, Zone: zone, Address: "127.0.0.1",
		Port: 15432 + n, RESTPort: 25432 + n, Rebooted: seat.Reboot, Restarted: seat.Restart, Votes: !seat.NoFailover,
	}
	r := member.Report{ID: member.ID(want.ID, m.Name), Host: m.Host, Patroni: true, Postgres: true, Ready: true, Timeline: 1}
	r.CertUntil, r.OwnerSerial = certUntil, want.Owner.Serial
	if want.Encrypted {
		r.Encryption = member.ByKey
	}
	if seat.Authority != spec.HomeAuthority {
		r.Authority = seat.Authority
	}
	if n == 0 {
		s.leader = m.Name
		r.InRecovery, r.Streaming = want.Upstream != nil, want.Upstream != nil
	} else {
		r.InRecovery, r.Streaming = true, true
		s.sync = append(s.sync, m.Name)
	}
	s.layout.Members = append(s.layout.Members, m)
	s.reports[r.ID] = r
}

// remove forgets a deleted database, with its resource.
func (u *user) remove(id string) {
	u.Helper()
	l := u.server.rds.Databases.Of(u.account)
	ops := []state.Op{state.Delete(state.Layout(id)), state.Delete(state.Secret(id)), state.DeletePrefix(patroni.Prefix(id))}
	for _, r := range l.Instances {
		if r.Value.ResourceID == id || r.Value.Cluster == id {
			ops = append(ops, state.Remove(r.Key, r.Revision), state.Delete(state.Address(r.Value.Address)))
		}
	}
	for _, r := range l.Clusters {
		if r.Value.ResourceID == id {
			ops = append(ops, state.Remove(r.Key, r.Revision), state.Delete(state.Address(r.Value.Address)), state.Delete(state.Address(r.Value.ReaderAddress)))
		}
	}
	u.put(ops...)
}

// database is what is wanted of the database of an instance or a cluster.
func (u *user) database(name string) plan.Database {
	u.Helper()
	l := u.server.rds.Databases.Of(u.account)
	id := ""
	for _, r := range l.Instances {
		if r.Value.Name == name && r.Value.Scope == u.scope() {
			id = r.Value.ResourceID
			if r.Value.Cluster != "" {
				id = r.Value.Cluster
			}
		}
	}
	for _, r := range l.Clusters {
		if r.Value.Name == name && r.Value.Scope == u.scope() {
			id = r.Value.ResourceID
		}
	}
	all := u.wanted()
	at := slices.IndexFunc(all, func(d plan.Database) bool { return d.ID == id })
	if at < 0 {
		u.Fatalf("there is no database %s", name)
	}
	return all[at]
}

// see shows a database in another way than settle does.
func (u *user) see(name string, change func(*scene)) {
	u.Helper()
	u.layOut(u.database(name), change)
}

// instanceRecord and clusterRecord are what is stored.
func (u *user) instanceRecord(name string) spec.Instance {
	u.Helper()
	r, err := state.Load[spec.Instance](u.server.Cache, state.Instance(u.account, u.region, name))
	if err != nil {
		u.Fatal(err)
	}
	return r.Value
}

func (u *user) clusterRecord(name string) spec.Cluster {
	u.Helper()
	r, err := state.Load[spec.Cluster](u.server.Cache, state.Cluster(u.account, u.region, name))
	if err != nil {
		u.Fatal(err)
	}
	return r.Value
}
