package view

import (
	"cmp"
	"slices"
	"sync"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// hostsOf are all hosts, without what databases take of them.
func hostsOf(cache *state.Cache) []plan.Host {
	hosts, edgeless := []plan.Host{}, Edgeless(cache)
	for _, h := range state.ViewAll[member.Host](cache, state.HostRoot) {
		host := plan.Host{
			Name: h.Value.Name, Zone: h.Value.Zone, Address: h.Value.Address,
			CPUs: h.Value.CPUs, Memory: h.Value.Memory, DiskFull: member.NearlyFull(h.Value.Disk, h.Value.DiskFree),
			OwnKeys: h.Value.OwnKeys, Shares: h.Value.Shares,
		}
		if live, err := state.View[member.Liveness](cache, state.Live(host.Name)); err == nil {
			host.Alive, host.LostSince = live.Value.Alive, live.Value.Since
		}
		_, _, host.Draining = cache.Raw(state.Drain(host.Name))
		host.Edgeless = edgeless(host.Name)
		if h.Value.Encrypts == member.NotEncrypted {
			host.WhyPlain = cmp.Or(h.Value.WhyPlain, "its agent is of an older version")
		}
		for major := range h.Value.Majors {
			host.Majors = append(host.Majors, major)
		}
		slices.Sort(host.Majors)
		host.Extensions = h.Value.Extensions
		hosts = append(hosts, host)
	}
	return hosts
}

// Places knows what is free on the hosts, as placing sees it. It follows what changes,
// so that asking costs little however many databases there are. It may be used by
// several goroutines; its zero value with a Cache is ready.
type Places struct {
	Cache *state.Cache

	mu    sync.Mutex
	seen  int64                // guarded by mu, as all below: see state.Cache.Since
	known map[string]tenant    // instances, by key
	needs map[string]int64     // memory of an instance, by resource id
	taken map[string][]portion // by database

	promised map[string]int64 // bytes, by host
	ports    map[string][]int // by host; lists are replaced, never altered

	hostsSeen int64
	hosts     []plan.Host // without what is taken of them

	version int64 // counts the changes of any of it
}

// tenant is what counts of an instance.
type tenant struct{ id, database string }

// portion is what a member takes of a host.
type portion struct {
	host  string
	ports [2]int
	bytes int64
}

// Hosts are all hosts by name, with what is taken of them as of now.
func (p *Places) Hosts() []plan.Host {
	hosts, _ := p.Newer(0)
	return hosts
}

// Newer answers the hosts, unless nothing changed since it answered this version; then
// they are nil.
func (p *Places) Newer(last int64) (hosts []plan.Host, version int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow()
	if now := p.Cache.Changes(state.HostRoot, state.LiveRoot, state.DrainRoot, state.EdgeRoot, state.RunsRoot); p.hosts == nil || now != p.hostsSeen {
		p.hosts, p.hostsSeen = hostsOf(p.Cache), now
		p.version++
	}
	if p.version == last {
		return nil, last
	}
	hosts = slices.Clone(p.hosts)
	for n := range hosts {
		h := &hosts[n]
		h.Committed, h.UsedPorts = p.promised[h.Name], slices.Clip(p.ports[h.Name])
	}
	return hosts, p.version
}

// follow catches up with what changed.
func (p *Places) follow() {
	keys, now, complete := p.Cache.Since(p.seen, state.InstanceRoot, state.LayoutRoot)
	p.seen = now
	if !complete {
		p.known, p.needs, p.taken = map[string]tenant{}, map[string]int64{}, map[string][]portion{}
		p.promised, p.ports = map[string]int64{}, map[string][]int{}
		keys = slices.Concat(p.Cache.Keys(state.InstanceRoot), p.Cache.Keys(state.LayoutRoot))
		p.version++
	}
	concerned := map[string]bool{} // "" is nobody's
	for _, key := range keys {
		if id := state.Tail(key, state.LayoutRoot); id != key {
			concerned[id] = true
			continue
		}
		concerned[p.forget(key)] = true
	}
	// An instance that got another name, or two that changed places, are noted after all are forgotten.
	for _, key := range keys {
		if id := state.Tail(key, state.LayoutRoot); id == key {
			concerned[p.tenant(key)] = true
		}
	}
	delete(concerned, "")
	for id := range concerned {
		p.count(id)
		p.version++
	}
}

// forget drops what is known of an instance. It answers the database that it belonged to, or "".
func (p *Places) forget(key string) string {
	old := p.known[key]
	delete(p.needs, old.id)
	delete(p.known, key)
	return old.database
}

// tenant notes what an instance needs now. It answers the database that it belongs to, or "".
func (p *Places) tenant(key string) string {
	r, err := state.View[spec.Instance](p.Cache, key)
	if err != nil {
		return ""
	}
	i := r.Value
	now := tenant{i.ResourceID, cmp.Or(i.Cluster, i.ResourceID)}
	p.known[key] = now
	// What is deleted with its cluster needs no room for more.
	if class, ok := spec.LookupClass(i.Class); ok && (i.Cluster == "" || !i.Deleting) {
		p.needs[i.ResourceID] = class.Memory
	}
	return now.database
}

// count counts anew what one database takes.
func (p *Places) count(database string) {
	for _, m := range p.taken[database] {
		p.promised[m.host] -= m.bytes
		left := slices.Clone(p.ports[m.host])
		for _, port := range m.ports {
			if at := slices.Index(left, port); at >= 0 {
				left = slices.Delete(left, at, at+1)
			}
		}
		p.ports[m.host] = left
	}
	delete(p.taken, database)
	layout, err := state.View[plan.Layout](p.Cache, state.Layout(database))
	if err != nil {
		return
	}
	for _, m := range layout.Value.Members {
		now := portion{m.Host, [2]int{m.Port, m.RESTPort}, p.needs[cmp.Or(m.Seat, database)]}
		p.taken[database] = append(p.taken[database], now)
		p.promised[m.Host] += now.bytes
		p.ports[m.Host] = append(slices.Clip(p.ports[m.Host]), now.ports[:]...)
	}
}
