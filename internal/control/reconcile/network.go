package reconcile

import (
	"maps"
	"net/netip"
	"slices"

	"howdah/internal/edge/seen"
	"howdah/internal/model/network"
	"howdah/internal/model/network/cidr"
	"howdah/internal/state"
)

// findNetworks looks at what decides who may connect from where.
func (w *world) findNetworks() {
	w.security = network.NewBook(values(state.LoadAll[network.Group](w.cache, state.SecurityGroupRoot)))
	w.edges = values(state.LoadAll[seen.Between](w.cache, state.BetweenRoot))
}

// findFollowers finds the databases that follow each database.
func (w *world) findFollowers() {
	w.followers = map[string][]*database{}
	for _, d := range w.databases {
		if source, ok := d.upstream(); ok {
			w.followers[source] = append(w.followers[source], d)
		}
	}
}

// wakeSources adds the databases that others of a set follow: where those are decides
// who may pass to their sources.
func (w *world) wakeSources(ids map[string]bool) {
	for _, id := range slices.Collect(maps.Keys(ids)) {
		if d := w.byID[id]; d != nil {
			if source, ok := d.upstream(); ok {
				ids[source] = true
			}
		}
	}
}

// upstream is the resource id of the database that this one follows, if it does.
func (d *database) upstream() (id string, ok bool) {
	if d.cluster != nil || !d.specs[0].Value.Follows() {
		return "", false
	}
	return d.specs[0].Value.Source, true
}

func (d *database) follows() bool {
	_, follows := d.upstream()
	return follows
}

// admitted are the networks from which users may connect to a database, by the
// security groups that it is in; nil: from everywhere.
func (w *world) admitted(d *database) []string {
	return cidr.Texts(w.security.Admitted(d.owner.Scope, d.owner.SecurityGroups, d.want.Port))
}

// between are the addresses that members may see in place of a client's: those of
// edges that do not show it, and of the endpoints themselves, from which a proxy on
// the same machine connects. Such an edge has asked already whether the client may.
func (w *world) between(d *database) []string {
	var all []string
	for _, e := range w.edges {
		all = append(append(all, d.want.ServerIPs...), e.Addresses...)
	}
	return hostNetworks(all)
}

// passing are the networks that an endpoint lets through: those of users, and the
// hosts of databases that follow this one, which replicate through it.
func (w *world) passing(d *database) []string {
	if d.want.Allow == nil {
		return nil
	}
	var hosts []string
	for _, f := range w.followers[d.want.ID] {
		for _, m := range f.layout.Value.Members {
			hosts = append(hosts, sourceOf(m.Address))
		}
	}
	networks, err := cidr.Parse(append(slices.Clone(d.want.Allow), hostNetworks(hosts)...))
	if err != nil {
		return d.want.Allow
	}
	return cidr.Texts(cidr.Minimal(networks))
}

// loopbackSource is the address that whoever has none of its own is seen to have
// within 127.0.0.0/8.
const loopbackSource = "127.0.0.1"

// sourceOf is the address from which a member connects to others.
func sourceOf(address string) string {
	if a, err := netip.ParseAddr(address); err == nil && a.IsLoopback() {
		return loopbackSource
	}
	return address
}

// hostNetworks are the networks of single addresses, sorted, each once.
func hostNetworks(addresses []string) []string {
	var all []string
	for _, text := range addresses {
		if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
			all = append(all, cidr.Host(a).String())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
