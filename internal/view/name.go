package view

import (
	"slices"

	"howdah/internal/model/member"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/model/zone"
	"howdah/internal/state"
)

// DNSZone returns the zone in which databases have names, or "".
func DNSZone(cache *state.Cache) zone.Zone {
	setting, err := state.View[zone.Setting](cache, state.DNSZone())
	if err != nil {
		return ""
	}
	return setting.Value.Zone
}

// names are the DNS names of the database's endpoints in a zone, by the ids of their routes. An
// endpoint whose name would be too long has none: the API makes no such endpoint, but the zone may have
// been another one then.
func (d *Database) names(z zone.Zone) map[string]string {
	all := map[string]string{}
	add := func(routeID string, kind zone.Kind, in spec.Scope, name string) {
		if text, err := z.Name(kind, name, in.Account, in.Region); err == nil && text != "" {
			all[routeID] = text
		}
	}
	for _, s := range d.Specs {
		if !s.Value.Deleting || d.Cluster == nil {
			add(s.Value.ResourceID, zone.Instance, s.Value.Scope, s.Value.Name)
		}
	}
	if d.Cluster == nil {
		return all
	}
	c := d.Cluster.Value
	add(route.Writer(c.ResourceID), zone.Writer, c.Scope, c.Name)
	add(route.Reader(c.ResourceID), zone.Reader, c.Scope, c.Name)
	for _, e := range d.Custom {
		if !e.Deleting {
			add(e.ResourceID, zone.Custom, e.Scope, e.Name)
		}
	}
	return all
}

// serverNames are the names that clients may verify in the certificates of a database's servers: its
// own, and that of the instance whose place it is about to take.
func (w *Wanted) serverNames(d *Database) []string {
	if w.dns == "" {
		return nil
	}
	var all []string
	for _, name := range d.names(w.dns) {
		all = append(all, name)
	}
	if d.Owner.Expects != "" {
		for _, i := range w.made.Of(d.Owner.Account).Instances {
			if i.Value.Address != d.Owner.Expects {
				continue
			}
			if name, err := w.dns.Name(zone.Instance, i.Value.Name, i.Value.Account, i.Value.Region); err == nil {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// nameSeats gives the instances of a cluster their names, so that drivers hear of these. Without a zone
// they hear of addresses.
func (w *Wanted) nameSeats(d *Database) {
	if d.Cluster == nil {
		return
	}
	names := d.names(w.dns)
	for n, seat := range d.Want.Seats {
		if name := names[seat.Key]; name != "" {
			d.Want.Seats[n].Endpoint = name
		}
	}
}

// withNames gives routes their names. A route has one from the moment at which all certificates say it,
// and keeps it: clients that verify it must not be turned away. Until then, clients have the address.
func (b Basis) withNames(routes []route.Route) []route.Route {
	if b.Wanted.dns == "" {
		return routes
	}
	names := b.names(b.Wanted.dns)
	for n, r := range routes {
		name := names[r.ID]
		if name == "" {
			continue
		}
		last, err := state.View[route.Route](b.Wanted.cache, state.Route(r.ID))
		if err == nil && last.Value.Name == name ||
			b.certified(func(a member.Assignment) bool { return slices.Contains(a.ServerNames, name) }) {
			routes[n].Name = name
		}
	}
	return routes
}
