package edge

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"howdah/internal/edge/nameserver"
	"howdah/internal/model/route"
	"howdah/internal/model/zone"
	"howdah/internal/state"
)

// noteNames tells the nameserver which names there are. An edge answers for the databases of all hosts,
// also if it serves only those of its own: clients ask any edge.
func (e *Edge) noteNames(routes []route.Route) {
	if e.Names == nil {
		return
	}
	names := map[string][]netip.Addr{}
	z := e.zone()
	if z != "" {
		serve := byDatabase(routes)
		for _, r := range routes {
			// Another endpoint may have had the name a moment ago: one of them has it for certain.
			if r.Name != "" && names[r.Name] == nil {
				names[r.Name] = e.answers(r, serve[r.Database])
			}
		}
	}
	e.Names.Set(nameserver.NewBook(z, names, e.Names.Addresses()))
}

// zone returns the zone by what the control plane said that spoke last.
func (e *Edge) zone() zone.Zone {
	var z zone.Zone
	newest := int64(0)
	for _, said := range state.LoadAll[zone.Said](e.cache, state.ControlRoot) {
		if said.Revision > newest {
			z, newest = said.Value.Zone, said.Revision
		}
	}
	return z
}

// byDatabase returns the routes to one seat each, by database and seat.
func byDatabase(routes []route.Route) map[string]map[string]route.Route {
	all := map[string]map[string]route.Route{}
	for _, r := range routes {
		if seat, one := r.Seat(); one && seat != "" {
			if all[r.Database] == nil {
				all[r.Database] = map[string]route.Route{}
			}
			all[r.Database][seat] = r
		}
	}
	return all
}

// answers returns the addresses that the name of an endpoint has: its own address, which stays through
// failovers, so that nobody waits for a resolver's cache then.
//
// An endpoint that several members serve at this moment has theirs instead, as RDS's reader endpoint
// has. Its own address would do: the edge balances the connections to it. But a client that knows all
// addresses goes on to the next one if a member died so recently that nobody has noticed, and one that
// keeps its connections for long (load_balance_hosts) spreads them by itself. When the member of an
// address becomes the primary, new connections to that address read there, as on RDS, for as long as
// the client keeps the old answer. Once fewer than two members serve, the name has the endpoint's own
// address again, and that leads to the one that is left, or to the primary, at once.
func (e *Edge) answers(r route.Route, seats map[string]route.Route) []netip.Addr {
	own := listenAddr(r)
	if _, one := r.Seat(); one {
		return own
	}
	targets := r.Targets(e.view(r))
	var all []netip.Addr
	for _, m := range r.Members {
		if slices.Contains(targets, m.Address) {
			all = append(all, listenAddr(seats[m.Seat])...)
		}
	}
	if len(all) < 2 {
		return own
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// listenAddr returns the address of a route. A route that has none that can be read has none.
func listenAddr(r route.Route) []netip.Addr {
	at, err := netip.ParseAddrPort(r.Listen)
	if err != nil {
		return nil
	}
	return []netip.Addr{at.Addr()}
}

const (
	// tellNamesEvery is the pause between two looks whether names are answered.
	tellNamesEvery = 500 * time.Millisecond
	// tellNamesWithin bounds how long it may take to say so.
	tellNamesWithin = 5 * time.Second
)

// tellNames says in the edge's status where names are answered, as this changes: the nameserver begins
// when there is a zone, and may have to wait for its address.
func (e *Edge) tellNames(ctx context.Context) {
	timer := time.NewTicker(tellNamesEvery)
	defer timer.Stop()
	for told := ""; ; {
		if s := e.status(); s.Names != told {
			within, cancel := context.WithTimeout(ctx, tellNamesWithin)
			_, err := e.Store.Commit(within, state.Put(state.Edge(e.Name), s))
			cancel()
			if err == nil {
				told = s.Names
			} else if ctx.Err() == nil {
				e.Log.Info("tell where names are answered", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}
