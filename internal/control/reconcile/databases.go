package reconcile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"howdah/internal/control/plan"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// origin is what a database is wanted by: as long as it is the same, so is what is
// wanted. One that follows another one depends on that, too, and has none.
type origin struct {
	own       int64  // revision of the record of the instance or cluster
	instances string // of the cluster, and its custom endpoints, with their revisions
	followers string
	groups    string // all parameter groups
	networks  int64  // all security groups, and edges that hide clients
	zones     string // of its subnet group
}

// findDatabases reads what users want. A database that is wanted as before is the one
// of the world before.
func (w *world) findDatabases(before *world) {
	instances := state.ViewAll[spec.Instance](w.cache, state.InstanceRoot)
	w.databases, w.byID = make([]*database, 0, len(instances)), make(map[string]*database, len(instances))
	clusters := state.LoadAll[spec.Cluster](w.cache, state.ClusterRoot)
	links := relations(instances, clusters)
	named := w.findNamed()
	custom := map[string][]state.Record[spec.Endpoint]{}
	for _, e := range state.LoadAll[spec.Endpoint](w.cache, state.EndpointRoot) {
		custom[e.Value.Cluster] = append(custom[e.Value.Cluster], e)
	}
	members := map[string][]state.Record[*spec.Instance]{}
	for _, i := range instances {
		if i.Value.Cluster != "" {
			members[i.Value.Cluster] = append(members[i.Value.Cluster], i)
			continue
		}
		w.add(w.ofInstance(before, i, links[i.Value.ResourceID], named))
	}
	for _, c := range clusters {
		id, own := c.Value.ResourceID, links[c.Value.ResourceID]
		own.Groups = named.groups
		from := w.originOf(c.Revision, c.Value.Common, own, named)
		from.instances = revisions(members[id]) + "/" + revisions(custom[id])
		w.add(w.one(before, id, from, func() *database {
			return &database{
				want: plan.ForCluster(c.Value, shared(members[id]), own), owner: owner{Common: c.Value.Common, cluster: true},
				specs: members[id], cluster: &c, custom: values(custom[id]),
			}
		}))
	}
	w.findFollowers()
	w.raise()
	for _, d := range w.databases {
		// Only now it is known what those want that follow others.
		w.compare(d, before.byID[d.want.ID])
		w.findLayout(d)
	}
}

// compare notes whether a database is another one than in the world before.
func (w *world) compare(d, old *database) {
	d.changed = old == nil || d != old && (d.origin.own != old.origin.own || d.origin.instances != old.origin.instances || !reflect.DeepEqual(d.want, old.want))
	if d.changed {
		w.changed = append(w.changed, d)
	}
}

// findLayout finds out where the members of a database are.
func (w *world) findLayout(d *database) {
	d.layout, d.unread = state.Load[plan.Layout](w.cache, state.Layout(d.want.ID))
	if errors.Is(d.unread, state.ErrNotFound) {
		d.unread = nil // it has none yet
	}
	if d.unread != nil {
		d.layout = state.Record[plan.Layout]{}
	}
}

func (w *world) add(d *database) {
	w.databases = append(w.databases, d)
	w.byID[d.want.ID] = d
}

// named is what records name: all parameter groups, told apart by a mark, and the zones
// of subnet groups.
type named struct {
	groups plan.Groups
	mark   string
	zones  map[spec.GroupKey][]string
}

func (w *world) findNamed() named {
	groups, records := view.Groups(w.cache)
	return named{groups, revisions(records), subnetZones(w.cache)}
}

// originOf is the origin of a database by its own record.
func (w *world) originOf(revision int64, c spec.Common, links plan.Links, n named) origin {
	return origin{
		own: revision, followers: strings.Join(links.Followers, " ") + "/" + strings.Join(links.Below, " "), groups: n.mark, networks: w.networks,
		zones: strings.Join(n.zones[c.SubnetGroupKey()], " "),
	}
}

// ofInstance is the database of an instance that is no member of a cluster.
func (w *world) ofInstance(before *world, i state.Record[*spec.Instance], links plan.Links, n named) *database {
	links.Groups = n.groups
	return w.one(before, i.Value.ResourceID, w.originOf(i.Revision, i.Value.Common, links, n), func() *database {
		return &database{want: plan.ForInstance(*i.Value, links), owner: owner{Common: i.Value.Common}, specs: []state.Record[*spec.Instance]{i}}
	})
}

// one is the database of the round before, if that was made of the same records. Otherwise
// made makes it.
func (w *world) one(before *world, id string, from origin, made func() *database) *database {
	d := before.byID[id]
	if d == nil || d.origin != from || d.follows() {
		d = made()
		d.origin = from
		d.want.ServerIPs = served(d)
		d.want.Zones = strings.Fields(from.zones)
		d.want.Allow, d.want.Between = w.admitted(d), w.between(d)
	}
	return d
}

// subnetZones are the zones that the subnet groups cover that users made.
func subnetZones(cache *state.Cache) map[spec.GroupKey][]string {
	all := map[spec.GroupKey][]string{}
	for _, g := range state.LoadAll[spec.SubnetGroup](cache, state.SubnetGroupRoot) {
		all[spec.GroupKey{Scope: g.Value.Scope, Name: g.Value.Name}] = g.Value.Zones()
	}
	return all
}

// revisions tells lists of records apart.
func revisions[T any](records []state.Record[T]) string {
	var text strings.Builder
	for _, r := range records {
		fmt.Fprintf(&text, "%s@%d ", r.Key, r.Revision)
	}
	return text.String()
}

// shared are the values of shared records.
func shared[T any](records []state.Record[*T]) []T {
	all := make([]T, len(records))
	for i, r := range records {
		all[i] = *r.Value
	}
	return all
}

func values[T any](records []state.Record[T]) []T {
	all := make([]T, len(records))
	for i, r := range records {
		all[i] = r.Value
	}
	return all
}

// relations finds who follows whom.
func relations(instances []state.Record[*spec.Instance], clusters []state.Record[spec.Cluster]) map[string]plan.Links {
	sources := make(map[string]*spec.Common, len(instances)+len(clusters))
	for _, i := range instances {
		sources[i.Value.ResourceID] = &i.Value.Common
	}
	for n := range clusters {
		sources[clusters[n].Value.ResourceID] = &clusters[n].Value.Common
	}
	followed := map[string]*spec.Common{} // by who follows
	for _, i := range instances {
		if source, ok := sources[i.Value.Source]; ok && i.Value.Follows() && !i.Value.Deleting {
			followed[i.Value.ResourceID] = source
		}
	}
	links := map[string]plan.Links{}
	for _, i := range instances {
		source, ok := followed[i.Value.ResourceID]
		if !ok {
			continue
		}
		own := links[i.Value.ResourceID]
		own.Upstream = &patroni.Upstream{
			Host: source.ServedAt(), Port: source.Port, Slot: plan.SlotName(i.Value.ResourceID), Origin: originAbove(source, followed),
		}
		links[i.Value.ResourceID] = own
		theirs := links[source.ResourceID]
		theirs.Followers = append(theirs.Followers, i.Value.ResourceID)
		links[source.ResourceID] = theirs
		for above, n := source, 0; above != nil && n <= len(followed); above, n = followed[above.ResourceID], n+1 {
			theirs := links[above.ResourceID]
			theirs.Below = append(theirs.Below, i.Value.ResourceID)
			links[above.ResourceID] = theirs
		}
	}
	return links
}

// originAbove is where the data of a read replica come from in the end; nil if it is no
// read replica.
func originAbove(replica *spec.Common, followed map[string]*spec.Common) *patroni.Address {
	at := replica
	for range followed { // a chain is no longer than that
		above, ok := followed[at.ResourceID]
		if !ok {
			break
		}
		at = above
	}
	if at == replica {
		return nil
	}
	return &patroni.Address{Host: at.ServedAt(), Port: at.Port}
}
