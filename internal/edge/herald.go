package edge

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/held"
	"howdah/internal/model/route"
)

const (
	// announceAfter is the time from the first announcement of an address to the second. Each
	// further pause is twice as long as the one before, up to announceEvery.
	announceAfter = 500 * time.Millisecond
	announceEvery = 30 * time.Second
)

// noteHeld hands over which addresses are on this machine now, with the routes that they serve.
// Only the newest set matters.
func (e *Edge) noteHeld(routes []route.Route) {
	held := map[netip.Addr][]route.Route{}
	for _, r := range routes {
		if point, ok := e.points[r.ID]; ok && !point.Away {
			held[point.Listen.Addr()] = append(held[point.Listen.Addr()], r)
		}
	}
	select {
	case <-e.held:
	default:
	}
	e.held <- held
}

// keep records what this host holds. What is wanted is recorded before it is made real, and what
// was kept stays recorded until it is removed. An endpoint that waits for a primary is recorded
// with the member that led last, as the address came with that one.
func (e *Edge) keep(routes []route.Route, wanted map[string]endpoint.Endpoint) {
	if e.Keep == nil {
		return
	}
	places, standing := []held.Place{}, map[string]bool{}
	for _, r := range routes {
		l := e.leads[r.Database]
		if point, ok := wanted[r.ID]; ok && l != nil && (l.elected != "" || l.last != "") {
			places = append(places, held.Place{Database: r.Database, Member: cmp.Or(l.elected, l.last), Listen: point.Listen.String()})
		}
	}
	for _, point := range e.points {
		standing[point.Listen.String()] = true
	}
	for _, old := range e.Kept {
		here := func(p held.Place) bool { return p.Listen == old.Listen }
		if (!e.synced || standing[old.Listen]) && !slices.ContainsFunc(places, here) {
			places = append(places, old)
		}
	}
	if slices.Equal(places, e.Kept) {
		return
	}
	if err := e.Keep(places); err != nil {
		e.Log.Error("leave word of what is held", "error", err)
		return
	}
	e.Kept = places
}

// heralded is an address that is being announced.
type heralded struct {
	next  time.Time
	pause time.Duration
}

// herald announces the addresses on this machine to the network until ctx ends. It announces an
// address at once, and then again and again: a neighbour may miss an announcement, or ignore it
// because it heard another machine within the last second. An edge that stood still has no
// evidence, and stays silent until it has some.
func (e *Edge) herald(ctx context.Context) {
	var held map[netip.Addr][]route.Route
	due := map[netip.Addr]heralded{}
	look := time.NewTicker(announceAfter / 2)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case held = <-e.held:
		case <-look.C:
		}
		now := time.Now()
		for a := range due {
			if _, here := held[a]; !here {
				delete(due, a)
			}
		}
		for a, routes := range held {
			if now.Before(due[a].next) || !slices.ContainsFunc(routes, e.credible) {
				continue
			}
			if err := e.Announce(a); err != nil {
				e.Log.Error("announce endpoint", "address", a.String(), "error", err)
			}
			pause := min(max(2*due[a].pause, announceAfter), announceEvery)
			due[a] = heralded{now.Add(pause), pause}
		}
	}
}
