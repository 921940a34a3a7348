package reconcile

import (
	"errors"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
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
	records   *view.Records
	wanted    *view.Wanted
	routed    *routed
	places    *view.Places
	// hostsVersion is the version of hosts: see view.Places.Newer.
	hostsVersion int64
	seen         int64 // how far the mirror was: see state.Cache.Since
}

// database is one database that is wanted, with what was decided about it.
type database struct {
	*view.Database
	changed  bool // since the look before: it is wanted otherwise, or its records are others
	layout   state.Record[plan.Layout]
	unread   error                                      // why the layout cannot be read: then nothing can be decided
	assigned map[string]state.Record[member.Assignment] // by member id; see advance
}

func (r *Reconciler) look() *world {
	r.last = lookAgain(r.last, r.Cache, time.Now())
	return r.last
}

func look(cache *state.Cache, now time.Time) *world { return lookAgain(nil, cache, now) }

// lookAgain makes a world. It takes over what did not change from before, which must not be used
// any more. before may be nil.
func lookAgain(before *world, cache *state.Cache, now time.Time) *world {
	if before == nil {
		before = &world{routed: &routed{}, places: &view.Places{Cache: cache}, records: &view.Records{Cache: cache}, wanted: view.Nothing(cache)}
	}
	w := &world{
		cache: cache, now: now, routed: before.routed, places: before.places, records: before.records,
		databases: before.databases, byID: before.byID,
	}
	for _, d := range before.changed {
		d.changed = false
	}
	layouts, seen, complete := cache.Since(before.seen, state.LayoutRoot)
	w.seen = seen
	var news view.News
	w.wanted, news = before.wanted.After(w.records.Made())
	if news.All || !complete {
		w.findDatabases(before)
	} else {
		w.exchange(before, news)
		for _, key := range layouts {
			if d := w.byID[state.Tail(key, state.LayoutRoot)]; d != nil {
				w.findLayout(d)
			}
		}
	}
	w.findHosts(before)
	return w
}

// findDatabases looks at all databases. A database that is wanted as before is taken over from the
// previous world.
func (w *world) findDatabases(before *world) {
	wanted := w.wanted.Databases()
	w.databases, w.byID = make([]*database, 0, len(wanted)), make(map[string]*database, len(wanted))
	for _, d := range wanted {
		w.databases = append(w.databases, w.of(before, d))
	}
}

// exchange puts databases in the places of others.
func (w *world) exchange(before *world, news view.News) {
	var gone, come []*database
	for _, d := range news.Gone {
		gone = append(gone, before.byID[d.Want.ID])
	}
	for _, d := range news.Come {
		come = append(come, w.of(before, d))
	}
	for _, d := range gone {
		if w.byID[d.Want.ID] == d {
			delete(w.byID, d.Want.ID)
		}
	}
	w.databases = view.Exchange(w.databases, gone, come)
}

// of returns a database as the world has it.
func (w *world) of(before *world, wanted *view.Database) *database {
	old := before.byID[wanted.Want.ID]
	d := old
	if old == nil || old.Database != wanted {
		d = &database{Database: wanted, changed: old == nil || !wanted.As(old.Database)}
	}
	if d.changed {
		w.changed = append(w.changed, d)
	}
	w.findLayout(d)
	w.byID[wanted.Want.ID] = d
	return d
}

// findLayout finds out where the members of a database are.
func (w *world) findLayout(d *database) {
	d.layout, d.unread = state.Load[plan.Layout](w.cache, state.Layout(d.Want.ID))
	if errors.Is(d.unread, state.ErrNotFound) {
		d.unread = nil // it has none yet
	}
	if d.unread != nil {
		d.layout = state.Record[plan.Layout]{}
	}
}

// findHosts finds what is free on the hosts. What an earlier decision took of them (see remember)
// it also wrote, so those hosts changed.
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

// memoryOfSeat returns the memory that the class of a member promises.
func memoryOfSeat(want plan.Database, m plan.Placed) int64 {
	for _, s := range want.Seats {
		if s.Key == m.Seat {
			return s.Limits.MemoryBytes
		}
	}
	return 0
}

// remember lets later decisions of the same pass see what a new layout takes of the hosts.
func (w *world) remember(d *database, l plan.Layout) {
	for _, m := range l.Members {
		h := w.host(m.Host)
		old, known := find(d.layout.Value, m.Name)
		if h == nil || known && old.Port == m.Port && old.RESTPort == m.RESTPort {
			continue
		}
		h.UsedPorts = append(h.UsedPorts, m.Port, m.RESTPort)
		if !known {
			h.Committed += memoryOfSeat(d.Want, m)
		}
	}
}

// host returns nil if the host is not known.
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

// basis returns what decisions about a database go by in this round.
func (w *world) basis(d *database) view.Basis {
	return view.Basis{
		Database: d.Database, Wanted: w.wanted, Layout: d.layout.Value, Hosts: w.hosts, HostAt: w.hostAt,
		Assigned: d.assigned, Reports: view.Reports(w.cache, d.Want.ID, d.layout.Value),
	}
}

// input returns what decides a database's next step. What was assigned is read once, so that the
// writes swap exactly what the decision went by.
func (w *world) input(d *database, policy plan.Policy) plan.Input {
	d.assigned = view.Assigned(w.cache, d.Want.ID, d.layout.Value)
	return w.basis(d).Input(w.now, policy)
}
