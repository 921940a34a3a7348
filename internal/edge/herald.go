package edge

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"howdah/internal/route"
)

const (
	// announceAfter is when an address that came here is announced for the second time.
	// Each further time takes twice as long as the one before, up to announceEvery.
	announceAfter = 500 * time.Millisecond
	announceEvery = 30 * time.Second
)

// noteHeld hands over which addresses are at this machine now, with the routes that they
// serve; only the newest matters.
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

// heralded is an address that is announced.
type heralded struct {
	next  time.Time
	pause time.Duration
}

// herald announces the addresses that are here to the network, until ctx ends: at once, and
// again and again, as a neighbour may miss it, or take it for old (it believes what it
// heard from another machine for a second). An edge that stood still has no evidence, and
// is silent until it knows more.
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
