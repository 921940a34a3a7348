package reconcile

import (
	"slices"
	"strings"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/edge/seen"
	"howdah/internal/model/member"
	"howdah/internal/model/network"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// world is one look at everything.
type world struct {
	cache     *state.Cache
	now       time.Time
	hosts     []plan.Host
	hostAt    map[string]int // places in hosts, by name
	databases []*database
	changed   []*database // those of them that changed since the look before
	byID      map[string]*database
	security  network.Book
	edges     []seen.Between         // that hide clients
	followers map[string][]*database // of databases, by resource id
	routed    *routed
	places    *view.Places
	// hostsVersion is that of hosts: see view.Places.Newer.
	hostsVersion int64
	seen         int64 // how far the mirror was: see state.Cache.Since
	networks     int64 // when networks changed last: see state.Cache.Changes
	parts        parts
}

// database is one database with the records that it comes from.
type database struct {
	want     plan.Database
	origin   origin
	changed  bool // since the look before: it is wanted otherwise, or its records are others
	owner    owner
	layout   state.Record[plan.Layout]
	unread   error                                      // why the layout cannot be read: then nothing can be decided
	assigned map[string]state.Record[member.Assignment] // by member id; see advance
	specs    []state.Record[*spec.Instance]             // instances, shared: itself, or those of the cluster
	cluster  *state.Record[spec.Cluster]
	custom   []spec.Endpoint // of the cluster
}

// owner is the API resource that a database belongs to.
type owner struct {
	spec.Common
	cluster bool
}

func (r *Reconciler) look() *world {
	r.last = lookAgain(r.last, r.Cache, time.Now())
	return r.last
}

func look(cache *state.Cache, now time.Time) *world { return lookAgain(nil, cache, now) }

// lookAgain makes a world, and takes over what did not change since the one before,
// which must not be used any more. That may be nil.
func lookAgain(before *world, cache *state.Cache, now time.Time) *world {
	if before == nil {
		before = &world{routed: &routed{}, places: &view.Places{Cache: cache}}
	}
	w := &world{
		cache: cache, now: now, routed: before.routed, places: before.places,
		security: before.security, edges: before.edges, networks: cache.Changes(state.SecurityGroupRoot, state.BetweenRoot),
		databases: before.databases, byID: before.byID, followers: before.followers, parts: before.parts.as(cache),
	}
	news := w.news(before)
	for _, d := range before.changed {
		d.changed = false
	}
	if news.networks {
		w.findNetworks()
	}
	if news.more || !w.follow(before, news) {
		w.findDatabases(before)
	}
	w.findHosts(before)
	return w
}

// news is what changed since the world before.
type news struct {
	instances, layouts []string // keys
	networks           bool
	more               bool // what concerns several databases, or nobody knows what
}

func (w *world) news(before *world) news {
	keys, seen, complete := w.cache.Since(before.seen, state.SpecRoot, state.SubnetGroupRoot, state.LayoutRoot)
	w.seen = seen
	n := news{networks: w.networks != before.networks || before.byID == nil}
	n.more = n.networks || !complete // databases name networks
	for _, key := range keys {
		switch {
		case strings.HasPrefix(key, state.InstanceRoot):
			n.instances = append(n.instances, key)
		case strings.HasPrefix(key, state.LayoutRoot):
			n.layouts = append(n.layouts, key)
		default:
			n.more = true
		}
	}
	return n
}

// lastAssignments is what hosts were told last of the members of a database, by id.
func (w *world) lastAssignments(d *database) map[string]state.Record[member.Assignment] {
	all := map[string]state.Record[member.Assignment]{}
	for _, m := range d.layout.Value.Members {
		id := member.ID(d.want.ID, m.Name)
		if a, ok := w.lastAssigned(m.Host, id); ok {
			all[id] = a
		}
	}
	return all
}

// served are the addresses that clients may verify in the server's certificate.
func served(d *database) []string {
	all := addresses(d)
	for _, e := range d.custom {
		if !e.Deleting {
			all = append(append(all, e.Address), e.Former...)
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

// addresses are those of the database's own records, which go with it, also such as
// their endpoints are just leaving.
func addresses(d *database) []string {
	var all []string
	for _, s := range d.specs {
		all = append(append(all, s.Value.Address), s.Value.Former...)
	}
	if d.cluster != nil {
		c := d.cluster.Value
		all = slices.Concat(all, []string{c.Address, c.ReaderAddress}, c.Former, c.ReaderFormer)
	}
	all = slices.DeleteFunc(all, func(a string) bool { return a == "" })
	slices.Sort(all)
	return slices.Compact(all)
}

// findHosts finds what is free on the hosts. What a decision took of those before, see
// remember, it wrote, too, so that they changed.
func (w *world) findHosts(before *world) {
	w.hosts, w.hostAt = before.hosts, before.hostAt
	hosts, version := w.places.Newer(before.hostsVersion)
	if w.hostsVersion = version; hosts == nil {
		return
	}
	w.hosts, w.hostAt = hosts, make(map[string]int, len(hosts))
	for n := range w.hosts {
		w.hostAt[w.hosts[n].Name] = n
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
	for _, m := range l.Members {
		h := w.host(m.Host)
		old, known := find(d.layout.Value, m.Name)
		if h == nil || known && old.Port == m.Port && old.RESTPort == m.RESTPort {
			continue
		}
		h.UsedPorts = append(h.UsedPorts, m.Port, m.RESTPort)
		if !known {
			h.Committed += memoryOfSeat(d.want, m)
		}
	}
}

// host is nil for one that is not known.
func (w *world) host(name string) *plan.Host {
	if at, ok := w.hostAt[name]; ok {
		return &w.hosts[at]
	}
	return nil
}

func (w *world) alive(host string) bool {
	h := w.host(host)
	return h != nil && h.Alive
}

func (w *world) memoryOf(host string) int64 {
	if h := w.host(host); h != nil {
		return h.Memory
	}
	return 0
}

// input gathers what the planner needs for one database.
func (w *world) input(d *database, policy plan.Policy) plan.Input {
	in := view.Input(w.cache, d.want, d.layout.Value)
	in.Now, in.Hosts, in.HostAt, in.Policy = w.now, w.hosts, w.hostAt, policy
	in.Ways, in.OwnNames, in.Keys = view.Ways(w.cache, w.wantedRoutes(d, d.layout.Value), 0), w.parts.ownNames, w.keys(d)
	for _, m := range d.layout.Value.Members {
		id := member.ID(d.want.ID, m.Name)
		delete(in.Assigned, id) // what this round goes by was read before
		if a, ok := d.assigned[id]; ok {
			in.Assigned[id] = a.Value.Generation
			if outstanding(d, m) && !w.upToDate(d, m, a.Value) {
				in.Assigned[id]++ // it is about to be told
			}
		}
	}
	return in
}
