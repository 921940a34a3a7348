package view

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/network/cidr"
	"howdah/internal/model/route"
	"howdah/internal/state"
)

// Routes are the endpoints of the database, where its members are those of a layout. A hidden one has
// none.
func (b Basis) Routes(layout plan.Layout) []route.Route {
	if b.Want.State == member.Absent || b.Want.Hidden {
		return nil
	}
	base := route.Route{Database: b.Want.ID, Follows: b.Want.Upstream != nil, Members: []route.Member{}, Allow: b.passing()}
	for _, m := range layout.Members {
		if !m.Leaving {
			base.Members = append(base.Members, route.Member{
				Name: m.Name, Seat: m.Seat, Host: m.Host, Address: m.Listen(),
			})
		}
	}
	if b.Cluster == nil {
		i := b.Specs[0].Value
		return b.withNames([]route.Route{with(base, i.ResourceID, route.Leader, b.listen(i.ResourceID, i.Address, i.Former), i.Port)})
	}
	return b.withNames(b.clusterRoutes(base))
}

func (b Basis) clusterRoutes(base route.Route) []route.Route {
	c := b.Cluster.Value
	all := []route.Route{
		with(base, route.Writer(c.ResourceID), route.Leader, b.listen(route.Writer(c.ResourceID), c.Address, c.Former), c.Port),
		with(base, route.Reader(c.ResourceID), route.Readers, b.listen(route.Reader(c.ResourceID), c.ReaderAddress, c.ReaderFormer), c.Port),
	}
	for _, s := range b.Specs {
		if s.Value.Deleting {
			continue
		}
		r := with(base, s.Value.ResourceID, route.Seats, b.listen(s.Value.ResourceID, s.Value.Address, s.Value.Former), c.Port)
		r.Seats = []string{s.Value.ResourceID}
		all = append(all, r)
	}
	for _, e := range b.Custom {
		if !e.Deleting {
			r := with(base, e.ResourceID, route.Seats, b.listen(e.ResourceID, e.Address, e.Former), c.Port)
			r.Seats, r.ReadersOnly = e.Seats(shared(b.Specs))
			all = append(all, r)
		}
	}
	return all
}

func with(base route.Route, id string, kind route.Kind, address string, port int) route.Route {
	base.ID, base.Kind, base.Listen = id, kind, fmt.Sprintf("%s:%d", address, port)
	return base
}

// listen is the address of an endpoint's route. One that is being moved stays where it
// is until the members' certificates name its new address: clients that verify it must
// not be turned away.
func (b Basis) listen(id, address string, former []string) string {
	if len(former) == 0 {
		return address
	}
	last, err := state.Load[route.Route](b.Wanted.cache, state.Route(id))
	if err != nil {
		return address // it is not served yet
	}
	now, _, err := net.SplitHostPort(last.Value.Listen)
	if err != nil || !slices.Contains(former, now) || b.certified(func(a member.Assignment) bool { return slices.Contains(a.ServerIPs, address) }) {
		return address
	}
	return now
}

// certified: all servers of a database that run on living hosts have a certificate that says such.
// One on a lost host gets it before it starts again.
func (b Basis) certified(such func(member.Assignment) bool) bool {
	for _, m := range b.Layout.Members {
		id := member.ID(b.Want.ID, m.Name)
		last, told := b.Assigned[id]
		switch {
		case m.Leaving || !b.host(m.Host).Alive || !told || last.Value.Want != member.Running:
			continue
		case !such(last.Value):
			return false
		}
		report, ok := b.Reports[id]
		if !ok || followed(report) < last.Value.Generation {
			return false
		}
	}
	return true
}

// followed is the newest assignment that a member's certificate follows, as far as its
// agent says.
func followed(r member.Report) int64 {
	if r.Rendered == 0 {
		return r.Generation
	}
	return r.Rendered
}

// passing are the networks that an endpoint lets through: those of users, and the
// hosts of databases that follow this one, which replicate through it.
func (b Basis) passing() []string {
	if b.Want.Allow == nil {
		return nil
	}
	var hosts []string
	for _, f := range b.Wanted.followers[b.Want.ID] {
		for _, m := range layoutOf(b.Wanted.cache, f.Want.ID).Members {
			hosts = append(hosts, sourceOf(m.Address))
		}
	}
	networks, err := cidr.Parse(append(slices.Clone(b.Want.Allow), hostNetworks(hosts)...))
	if err != nil {
		return b.Want.Allow
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
