package view

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"howdah/internal/control/plan"
	"howdah/internal/edge/seen"
	"howdah/internal/model/network"
	"howdah/internal/model/network/cidr"
	"howdah/internal/model/spec"
	"howdah/internal/model/zone"
	"howdah/internal/state"
)

// Wanted is all databases that users want, as of one moment. It is shared: nothing in it may
// be altered. Its zero value with a cache wants none: see After.
type Wanted struct {
	cache     *state.Cache
	databases []*Database
	byID      map[string]*Database
	followers map[string][]*Database // of databases, by resource id
	made      *Made                  // what it was made of, as are the next ones
	security  network.Book
	edges     []seen.Between // that hide clients
	networks  int64          // when security and edges changed last: see state.Cache.Changes
	zones     map[spec.GroupKey][]string
	subnets   int64 // when zones changed last
	dns       zone.Zone
	parts     parts
	archives  archives
}

// Nothing is where all databases of a state are new.
func Nothing(cache *state.Cache) *Wanted { return &Wanted{cache: cache} }

// News is what is wanted otherwise than before.
type News struct {
	All        bool        // any database may be another one; else these are
	Gone, Come []*Database // one that is wanted otherwise is in both
}

// Databases are all databases.
func (w *Wanted) Databases() []*Database { return w.databases }

// Database is nil for one that is not wanted.
func (w *Wanted) Database(id string) *Database { return w.byID[id] }

// Wants knows what is wanted now. It may be used by several goroutines; its zero value with
// Records is ready.
type Wants struct {
	Records *Records

	mu     sync.Mutex
	wanted *Wanted // guarded by mu
}

// Now is what is wanted now.
func (w *Wants) Now() *Wanted {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wanted == nil {
		w.wanted = Nothing(w.Records.Cache)
	}
	w.wanted, _ = w.wanted.After(w.Records.Made())
	return w.wanted
}

// After is what is wanted once users made this. Databases that are wanted as before stay the
// same ones.
func (w *Wanted) After(made *Made) (next *Wanted, news News) {
	own := *w
	next = &own
	next.parts = w.parts.as(w.cache)
	next.networks, next.subnets = w.cache.Changes(state.SecurityGroupRoot, state.BetweenRoot), w.cache.Changes(state.SubnetGroupRoot)
	networks, subnets := w.made == nil || next.networks != w.networks, w.made == nil || next.subnets != w.subnets
	var moved bool
	next.archives, moved = w.archives.as(w.cache)
	if next.dns = DNSZone(w.cache); next.dns != w.dns {
		moved = true
	}
	if made == w.made && !networks && !subnets && !moved {
		return next, News{}
	}
	next.made = made
	if networks {
		next.security = network.NewBook(values(state.LoadAll[network.Group](w.cache, state.SecurityGroupRoot)))
		next.edges = values(state.LoadAll[seen.Between](w.cache, state.BetweenRoot))
	}
	if subnets {
		next.zones = subnetZones(w.cache)
	}
	if !networks && !subnets && !moved && made.marks == w.made.marks {
		if gone, come, plain := w.made.differs(made); plain && w.alone(gone) && w.alone(come) {
			return next, next.exchange(w, gone, come)
		}
	}
	next.findAll(w)
	return next, News{All: true}
}

// differs are the instances that went and came between two moments. plain is false if
// databases of several records changed, too, or too many did.
func (m *Made) differs(after *Made) (gone, come []state.Record[*spec.Instance], plain bool) {
	names := maps.Clone(m.accounts)
	maps.Copy(names, after.accounts)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, now := m.Of(name), after.Of(name)
		switch {
		case old == now:
			continue
		case old.Related != now.Related || len(gone)+len(come) > fewKeys:
			return nil, nil, false
		}
		g, c := between(old.Instances, now.Instances)
		gone, come = append(gone, g...), append(come, c...)
	}
	return gone, come, len(gone)+len(come) <= 2*fewKeys
}

// between are the records that only one of two lists has; both are by key.
func between(old, now []state.Record[*spec.Instance]) (gone, come []state.Record[*spec.Instance]) {
	for len(old) > 0 && len(now) > 0 {
		switch order := strings.Compare(old[0].Key, now[0].Key); {
		case order < 0:
			gone, old = append(gone, old[0]), old[1:]
		case order > 0:
			come, now = append(come, now[0]), now[1:]
		default:
			if old[0].Revision != now[0].Revision {
				gone, come = append(gone, old[0]), append(come, now[0])
			}
			old, now = old[1:], now[1:]
		}
	}
	return append(gone, old...), append(come, now...)
}

// alone: no database follows one of these.
func (w *Wanted) alone(records []state.Record[*spec.Instance]) bool {
	return all(records, func(r state.Record[*spec.Instance]) bool { return len(w.followers[r.Value.ResourceID]) == 0 })
}

// exchange puts databases of instances in the places of others. One that was renamed is both.
func (w *Wanted) exchange(before *Wanted, gone, come []state.Record[*spec.Instance]) (news News) {
	w.databases, w.byID = slices.Clone(before.databases), maps.Clone(before.byID)
	for _, r := range gone {
		if d := before.byID[r.Value.ResourceID]; d != nil {
			news.Gone = append(news.Gone, d)
			delete(w.byID, d.Want.ID)
		}
	}
	for _, r := range come {
		d := w.ofInstance(before, r, plan.Links{})
		news.Come = append(news.Come, d)
		w.byID[d.Want.ID] = d
	}
	w.databases = Exchange(w.databases, news.Gone, news.Come)
	return news
}

// Exchange puts elements in the places of others. It alters the list.
func Exchange[T comparable](list, gone, come []T) []T {
	for _, old := range gone {
		at := slices.Index(list, old)
		if at >= 0 && len(come) > 0 {
			list[at], come = come[0], come[1:]
		} else if at >= 0 {
			list = slices.Delete(list, at, at+1)
		}
	}
	return append(list, come...)
}

// findAll makes all databases. One that is wanted as before is the one of before.
func (w *Wanted) findAll(before *Wanted) {
	var instances []state.Record[*spec.Instance]
	var clusters []state.Record[spec.Cluster]
	for _, name := range slices.Sorted(maps.Keys(w.made.accounts)) {
		a := w.made.accounts[name]
		instances, clusters = append(instances, a.Instances...), append(clusters, a.Clusters...)
	}
	w.databases, w.byID = make([]*Database, 0, len(instances)), make(map[string]*Database, len(instances))
	links := relations(instances, clusters)
	for _, i := range instances {
		if i.Value.Cluster == "" {
			w.add(w.ofInstance(before, i, links[i.Value.ResourceID]))
		}
	}
	for _, c := range clusters {
		w.add(w.ofCluster(before, c, links[c.Value.ResourceID]))
	}
	w.followers = map[string][]*Database{}
	for _, d := range w.databases {
		if source, ok := d.Upstream(); ok {
			w.followers[source] = append(w.followers[source], d)
		}
	}
	w.raise()
}

func (w *Wanted) add(d *Database) {
	w.databases = append(w.databases, d)
	w.byID[d.Want.ID] = d
}

// originOf is the origin of a database by its own record.
func (w *Wanted) originOf(revision int64, c spec.Common, links plan.Links) origin {
	return origin{
		archive: strings.Join(links.Repositories, " "),
		own:     revision, followers: strings.Join(links.Followers, " ") + "/" + strings.Join(links.Below, " "), groups: w.made.marks, networks: w.networks,
		zones: strings.Join(w.zones[c.SubnetGroupKey()], " "), dns: w.dns,
	}
}

// ofInstance is the database of an instance that is no member of a cluster.
func (w *Wanted) ofInstance(before *Wanted, i state.Record[*spec.Instance], links plan.Links) *Database {
	links.Groups, links.Repositories = w.made.Groups, w.archives.of(i.Value.ResourceID)
	return w.one(before, i.Value.ResourceID, w.originOf(i.Revision, i.Value.Common, links), func() *Database {
		return &Database{Want: plan.ForInstance(*i.Value, links), Owner: i.Value.Common, Specs: []state.Record[*spec.Instance]{i}}
	})
}

func (w *Wanted) ofCluster(before *Wanted, c state.Record[spec.Cluster], links plan.Links) *Database {
	links.Groups, links.Repositories = w.made.Groups, w.archives.of(c.Value.ResourceID)
	account, _, _ := strings.Cut(state.Tail(c.Key, state.ClusterRoot), "/")
	id, a := c.Value.ResourceID, w.made.Of(account)
	members, custom := a.Members[id], a.Custom[id]
	from := w.originOf(c.Revision, c.Value.Common, links)
	from.instances = revisions(members) + "/" + revisions(custom)
	return w.one(before, id, from, func() *Database {
		return &Database{Want: plan.ForCluster(c.Value, shared(members), links), Owner: c.Value.Common, Specs: members, Cluster: &c, Custom: values(custom)}
	})
}

// one is the database of before, if that was made of the same records. Otherwise made makes
// it.
func (w *Wanted) one(before *Wanted, id string, from origin, made func() *Database) *Database {
	if d := before.byID[id]; d != nil && d.origin == from {
		if _, follows := d.Upstream(); !follows {
			return d
		}
	}
	d := made()
	d.origin = from
	d.Want.ServerIPs, d.Want.ServerNames = d.served(), w.serverNames(d)
	w.nameSeats(d)
	d.Want.Zones = strings.Fields(from.zones)
	d.Want.Allow, d.Want.Between = w.admitted(d), w.between(d)
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

// admitted are the networks from which users may connect to a database, by the
// security groups that it is in; nil: from everywhere.
func (w *Wanted) admitted(d *Database) []string {
	return cidr.Texts(w.security.Admitted(d.Owner.Scope, d.Owner.SecurityGroups, d.Want.Port))
}

// between are the addresses that members may see in place of a client's: those of
// edges that do not show it, and of the endpoints themselves, from which a proxy on
// the same machine connects. Such an edge has asked already whether the client may.
func (w *Wanted) between(d *Database) []string {
	var all []string
	for _, e := range w.edges {
		all = append(append(all, d.Want.ServerIPs...), e.Addresses...)
	}
	return hostNetworks(all)
}

// raise lets databases that follow others have as much as their sources of what a
// standby needs. A chain is as long as there are databases, at most.
func (w *Wanted) raise() {
	done := map[string]bool{}
	for _, d := range w.databases {
		w.raiseOne(d, done)
	}
}

// raiseOne alters only who follows others: those were made just now.
func (w *Wanted) raiseOne(d *Database, done map[string]bool) {
	if done[d.Want.ID] {
		return
	}
	done[d.Want.ID] = true
	if source := w.source(d); source != nil {
		w.raiseOne(source, done)
		d.Want.Raise(source.Want)
	}
}

// source is the database that one follows; nil if it follows none.
func (w *Wanted) source(d *Database) *Database {
	if d.Want.Upstream == nil || len(d.Specs) == 0 {
		return nil
	}
	return w.byID[d.Specs[0].Value.Source]
}
