package edge

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"

	"howdah/internal/edge/endpoint"
	"howdah/internal/model/member"
	"howdah/internal/model/route"
	"howdah/internal/state"
)

// cutMember resets every session of a database that leads to one member, through whichever
// endpoint, and returns how many there were.
func (e *Edge) cutMember(ctx context.Context, routes []route.Route, database, name string) int {
	var sessions atomic.Int64
	var all sync.WaitGroup
	for _, r := range routes {
		if r.Database != database {
			continue
		}
		for _, m := range r.Members {
			if m.Name == name {
				all.Go(func() { sessions.Add(int64(e.cut(ctx, r.Listen, m.Address))) })
			}
		}
	}
	all.Wait()
	return int(sessions.Load())
}

func (e *Edge) cut(ctx context.Context, listen, target string) int {
	from, errFrom := netip.ParseAddrPort(listen)
	to, errTo := netip.ParseAddrPort(target)
	if err := errors.Join(errFrom, errTo); err != nil {
		e.Log.Error("cut sessions", "error", err)
		return 0
	}
	sessions, err := e.Forwarder.Cut(ctx, from, to)
	if err != nil && !errors.Is(err, endpoint.ErrSilent) && ctx.Err() == nil {
		e.Log.Warn("cut sessions", "listen", listen, "target", target, "error", err)
	}
	if sessions > 0 {
		e.Log.Info("sessions cut", "listen", listen, "target", target, "sessions", sessions)
	}
	return sessions
}

// cutLostHosts resets the sessions that lead to members on a host that was judged lost. Nobody else
// would tell those clients.
func (e *Edge) cutLostHosts(ctx context.Context, routes []route.Route) {
	lost := map[string]bool{}
	for _, l := range state.LoadAll[member.Liveness](e.cache, state.LiveRoot) {
		if !l.Value.Alive {
			lost[state.Tail(l.Key, state.LiveRoot)] = true
		}
	}
	for host := range lost {
		if e.lost[host] {
			continue
		}
		for _, r := range routes {
			for _, m := range r.Members {
				if m.Host == host && !e.leads.led(r.Database, m.Name) {
					e.tasks.Go(func() { e.cut(ctx, r.Listen, m.Address) })
				}
			}
		}
	}
	e.lost = lost
}

// leads holds who leads each database.
type leads map[string]*lead

// led reports whether a member was the last to serve as leader. Its sessions are cut when another
// member is elected, and not before.
func (l leads) led(database, name string) bool {
	return l[database] != nil && l[database].last == name
}
