package reconcile

import (
	"slices"
	"time"

	"howdah/internal/engine/patroni"
	"howdah/internal/member"
	"howdah/internal/plan"
	"howdah/internal/spec"
	"howdah/internal/state"
)

// Liveness is the judge's word on a host.
type Liveness struct {
	Alive bool      `json:"alive"`
	Since time.Time `json:"since"`
}

// world is one look at everything.
type world struct {
	cache     *state.Cache
	now       time.Time
	hosts     []plan.Host
	databases []*database
	layouts   map[string]state.Record[plan.Layout]
	ports     map[string][]int // in use, by host
	promised  map[string]int64 // bytes that the classes of its members promise, by host
}

// database is one database with the records that it comes from.
type database struct {
	want     plan.Database
	owner    owner
	layout   state.Record[plan.Layout]
	assigned map[string]state.Record[member.Assignment] // by member id
	specs    []state.Record[spec.Instance]              // instances: itself, or those of the cluster
	cluster  *state.Record[spec.Cluster]
	custom   []spec.Endpoint // of the cluster
}

// owner is the API resource that a database belongs to.
type owner struct {
	spec.Common
	cluster bool
}

func (r *Reconciler) look() *world { return look(r.Cache, time.Now()) }

func look(cache *state.Cache, now time.Time) *world {
	w := &world{
		cache: cache, now: now, layouts: map[string]state.Record[plan.Layout]{},
		ports: map[string][]int{}, promised: map[string]int64{},
	}
	for _, l := range state.LoadAll[plan.Layout](cache, state.LayoutRoot) {
		w.layouts[l.Value.ID] = l
	}
	w.findDatabases()
	w.findHosts()
	return w
}

func (w *world) findDatabases() {
	instances := state.LoadAll[spec.Instance](w.cache, state.InstanceRoot)
	clusters := state.LoadAll[spec.Cluster](w.cache, state.ClusterRoot)
	links := relations(instances, clusters)
	custom := map[string][]spec.Endpoint{}
	for _, e := range state.LoadAll[spec.Endpoint](w.cache, state.EndpointRoot) {
		custom[e.Value.Cluster] = append(custom[e.Value.Cluster], e.Value)
	}
	members := map[string][]state.Record[spec.Instance]{}
	for _, i := range instances {
		if i.Value.Cluster != "" {
			members[i.Value.Cluster] = append(members[i.Value.Cluster], i)
			continue
		}
		w.add(&database{
			want: plan.ForInstance(i.Value, links[i.Value.ResourceID]), owner: owner{Common: i.Value.Common},
			specs: []state.Record[spec.Instance]{i},
		})
	}
	for _, c := range clusters {
		own := members[c.Value.ResourceID]
		w.add(&database{
			want:  plan.ForCluster(c.Value, values(own), links[c.Value.ResourceID]),
			owner: owner{Common: c.Value.Common, cluster: true}, specs: own, cluster: &c,
			custom: custom[c.Value.ResourceID],
		})
	}
}

func (w *world) add(d *database) {
	d.want.ServerIPs = served(d)
	d.layout = w.layouts[d.want.ID]
	d.assigned = map[string]state.Record[member.Assignment]{}
	for _, m := range d.layout.Value.Members {
		id := plan.ID(d.want.ID, m.Name)
		if a, ok := w.lastAssigned(m.Host, id); ok {
			d.assigned[id] = a
		}
		w.ports[m.Host] = append(w.ports[m.Host], m.Port, m.RESTPort)
		w.promised[m.Host] += memoryOfSeat(d.want, m)
	}
	w.databases = append(w.databases, d)
}

// served are the addresses that clients may verify in the server's certificate.
func served(d *database) []string {
	all := addresses(d)
	for _, e := range d.custom {
		if !e.Deleting {
			all = append(all, e.Address)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// lastAssigned is what a host was told last of a member, if it was told anything.
// Where the record is of no use, because it is gone, does not decode or is older
// than what the agent has, it is empty, so that it is written again, with a
// generation that the agent takes: above what it reports, or above the record's
// revision, which no generation ever exceeds.
func (w *world) lastAssigned(host, id string) (last state.Record[member.Assignment], ok bool) {
	key := state.Assign(host, id)
	last, err := state.Load[member.Assignment](w.cache, key)
	var known int64
	if report, err := state.Load[member.Report](w.cache, state.Report(host, id)); err == nil {
		known = report.Value.Generation
	}
	if err == nil && known <= last.Value.Generation {
		return last, true
	}
	_, revision, found := w.cache.Raw(key)
	last = state.Record[member.Assignment]{Key: key, Revision: revision}
	last.Value.Generation = max(revision, known)
	return last, found || known > 0
}

// addresses are those of the database's own records, which go with it.
func addresses(d *database) []string {
	var all []string
	for _, s := range d.specs {
		all = append(all, s.Value.Address)
	}
	if d.cluster != nil {
		all = append(all, d.cluster.Value.Address, d.cluster.Value.ReaderAddress)
	}
	all = slices.DeleteFunc(all, func(a string) bool { return a == "" })
	slices.Sort(all)
	return slices.Compact(all)
}

func values[T any](records []state.Record[T]) []T {
	all := make([]T, len(records))
	for i, r := range records {
		all[i] = r.Value
	}
	return all
}

// relations finds who follows whom.
func relations(instances []state.Record[spec.Instance], clusters []state.Record[spec.Cluster]) map[string]plan.Links {
	sources := map[string]spec.Common{}
	for _, i := range instances {
		sources[i.Value.ResourceID] = i.Value.Common
	}
	for _, c := range clusters {
		sources[c.Value.ResourceID] = c.Value.Common
	}
	links := map[string]plan.Links{}
	for _, i := range instances {
		source, ok := sources[i.Value.Source]
		if !i.Value.Follows() || !ok || i.Value.Deleting {
			continue
		}
		own := links[i.Value.ResourceID]
		own.Upstream = &patroni.Upstream{Host: source.Address, Port: source.Port, Slot: plan.SlotName(i.Value.ResourceID)}
		links[i.Value.ResourceID] = own
		theirs := links[source.ResourceID]
		theirs.Followers = append(theirs.Followers, i.Value.ResourceID)
		links[source.ResourceID] = theirs
	}
	return links
}

func (w *world) findHosts() {
	for _, h := range state.LoadAll[member.Host](w.cache, state.HostRoot) {
		host := plan.Host{
			Name: h.Value.Name, Zone: h.Value.Zone, Address: h.Value.Address,
			CPUs: h.Value.CPUs, Memory: h.Value.Memory, DiskFull: member.NearlyFull(h.Value.Disk, h.Value.DiskFree),
			Committed: w.promised[h.Value.Name], UsedPorts: w.ports[h.Value.Name],
		}
		if live, err := state.Load[Liveness](w.cache, state.Live(host.Name)); err == nil {
			host.Alive, host.LostSince = live.Value.Alive, live.Value.Since
		}
		_, _, host.Draining = w.cache.Raw(state.Drain(host.Name))
		for major := range h.Value.Majors {
			host.Majors = append(host.Majors, major)
		}
		slices.Sort(host.Majors)
		w.hosts = append(w.hosts, host)
	}
}

// memoryOfSeat is what the class of a member promises.
func memoryOfSeat(want plan.Database, m plan.Placed) int64 {
	for _, s := range want.Seats {
		if s.Key == m.Seat {
			return s.Limits.MemoryBytes
		}
	}
	return 0
}

// remember lets later decisions of the same pass see what a layout that was just
// made takes of the hosts.
func (w *world) remember(d *database, l plan.Layout) {
	for i := range w.hosts {
		for _, m := range l.Members {
			if m.Host != w.hosts[i].Name {
				continue
			}
			w.hosts[i].UsedPorts = append(w.hosts[i].UsedPorts, m.Port, m.RESTPort)
			if _, known := find(d.layout.Value, m.Name); !known {
				w.hosts[i].Committed += memoryOfSeat(d.want, m)
			}
		}
	}
}

func (w *world) alive(host string) bool {
	for _, h := range w.hosts {
		if h.Name == host {
			return h.Alive
		}
	}
	return false
}

func (w *world) memoryOf(host string) int64 {
	for _, h := range w.hosts {
		if h.Name == host {
			return h.Memory
		}
	}
	return 0
}

// input gathers what the planner needs for one database.
func (w *world) input(d *database, policy plan.Policy) plan.Input {
	in := plan.Input{
		Now: w.now, Want: d.want, Layout: d.layout.Value, Hosts: w.hosts, Policy: policy,
		Reports: map[string]member.Report{}, Applied: map[string]int64{}, Assigned: map[string]int64{},
		Results: map[string]member.Result{},
		Leader:  leaderOf(w.cache, d.want.ID), Sync: syncOf(w.cache, d.want.ID),
		Ways: Ways(w.cache, w.wantedRoutes(d, d.layout.Value)),
	}
	for _, m := range d.layout.Value.Members {
		id := plan.ID(d.want.ID, m.Name)
		if report, err := state.Load[member.Report](w.cache, state.Report(m.Host, id)); err == nil {
			in.Reports[id] = report.Value
		}
		if a, ok := d.assigned[id]; ok {
			in.Assigned[id] = a.Value.Generation
		}
		if value, _, ok := w.cache.Raw(patroni.MemberKey(d.want.ID, m.Name)); ok {
			if s, err := patroni.ParseMember(value); err == nil {
				in.Applied[id] = s.Generation()
			}
		}
	}
	for _, result := range state.LoadAll[member.Result](w.cache, state.ResultRoot+d.want.ID+"/") {
		in.Results[result.Value.ID] = result.Value
	}
	return in
}

func leaderOf(cache *state.Cache, scope string) string {
	value, _, _ := cache.Raw(patroni.LeaderKey(scope))
	return string(value)
}

func syncOf(cache *state.Cache, scope string) patroni.Sync {
	value, _, _ := cache.Raw(patroni.SyncKey(scope))
	s, err := patroni.ParseSync(value)
	if err != nil {
		return patroni.Sync{}
	}
	return s
}

// Hosts are all hosts with what is free on them, as placing sees them.
func Hosts(cache *state.Cache, now time.Time) []plan.Host { return look(cache, now).hosts }
