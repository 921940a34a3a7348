package edge

import (
	"context"
	"errors"
	"time"

	"howdah/internal/edge/seen"
	"howdah/internal/model/patroni"
	"howdah/internal/model/route"
	"howdah/internal/state"
)

// lead is who leads a database.
type lead struct {
	elected string // has the leader key, or ""
	serving string // was seen to serve in that role: clients are led there
	last    string // served last, or was elected on a host whose own edge leads there
	cancel  context.CancelFunc
}

// followLeaders reads each leader key and returns the changes that need a switch. Without a leader,
// new connections are refused and open ones stay, as the primary may win its key back. With another
// leader, the old one must not be used any more. Without evidence, a database counts as one without
// a leader.
func (e *Edge) followLeaders(routes []route.Route) []seen.Switch {
	var changes []seen.Switch
	known := map[string]bool{}
	for _, r := range routes {
		if r.Kind != route.Leader {
			continue
		}
		known[r.Database] = true
		value, _, _ := e.cache.Raw(patroni.LeaderKey(r.Database))
		if !e.credible(r) {
			value = nil
			if l := e.leads[r.Database]; l != nil && l.elected != "" && e.owned(r) {
				e.Log.Warn("writers are refused: etcd is silent, and the primary acknowledges nothing", "database", r.Database, "member", l.elected)
			}
		}
		if s, changed := e.elect(r, patroni.MemberName(string(value))); changed {
			changes = append(changes, s)
		}
	}
	for database, l := range e.leads {
		if !known[database] {
			l.cancel()
			delete(e.leads, database)
		}
	}
	e.evidence.know(e.primaries(routes))
	return changes
}

// primaries returns the members that served last, for the databases whose writers this edge leads.
func (e *Edge) primaries(routes []route.Route) map[string]primary {
	seats := map[string]primary{}
	for _, r := range routes {
		if l := e.leads[r.Database]; r.Kind == route.Leader && !r.Follows && l != nil && l.last != "" && e.owned(r) {
			seats[r.Database] = primary{r, l.last}
		}
	}
	return seats
}

// elect notes who has the leader key. It reports whether the leader changed to another member.
func (e *Edge) elect(r route.Route, elected string) (seen.Switch, bool) {
	l := e.leads[r.Database]
	if l == nil {
		l = &lead{cancel: func() {}}
		e.leads[r.Database] = l
	}
	if l.elected == elected {
		return seen.Switch{}, false
	}
	l.cancel()
	s := seen.Switch{Database: r.Database, From: l.last, To: elected, Elected: time.Now().UTC()}
	l.elected, l.serving, l.cancel = elected, "", func() {}
	if e.Own != "" && elected != "" && !e.owned(r) {
		l.last = elected // the edge of another host leads there, and sees whether it serves
	}
	return s, elected != ""
}

// switching is a switch under way.
type switching struct {
	seen.Switch
	cut chan int // how many sessions of the old primary were cut, once done
}

// takeOver cuts the sessions of the old primary, and watches the new one until it serves. It does
// both at once: clients are cut off whether or not the new primary serves yet.
func (e *Edge) takeOver(ctx context.Context, s seen.Switch, routes []route.Route) {
	ctx, e.leads[s.Database].cancel = context.WithCancel(ctx)
	change := switching{Switch: s, cut: make(chan int, 1)}
	e.tasks.Go(func() {
		sessions := 0
		if s.From != "" && s.From != s.To {
			sessions = e.cutMember(ctx, routes, s.Database, s.From)
		}
		change.cut <- sessions
	})
	leader := leaderRoute(routes, s.Database)
	e.tasks.Go(func() {
		if !e.confirm(ctx, leader, s.To) {
			return
		}
		change.Serving = time.Now().UTC()
		select {
		case e.confirmed <- change:
		case <-ctx.Done():
		}
	})
}

func leaderRoute(routes []route.Route, database string) route.Route {
	for _, r := range routes {
		if r.Database == database && r.Kind == route.Leader {
			return r
		}
	}
	return route.Route{}
}

// settle leads clients to a new primary that serves.
func (e *Edge) settle(ctx context.Context, s switching) {
	l := e.leads[s.Database]
	if l == nil || l.elected != s.To {
		return // elected away again meanwhile
	}
	l.serving, l.last = s.To, s.To
	routes := e.update(ctx, false)
	s.Switched = time.Now().UTC()
	leader := leaderRoute(routes, s.Database)
	if s.From == s.To || !e.owned(leader) {
		return
	}
	e.tasks.Go(func() { e.finish(ctx, s, leader) })
}

// finish checks that writes work through the new primary, and records the times of the switch for
// the post-mortem.
func (e *Edge) finish(ctx context.Context, s switching, leader route.Route) {
	if !leader.Follows {
		s.FirstWrite = e.firstWrite(ctx, leader, s.To)
	}
	select {
	case s.Sessions = <-s.cut:
	case <-ctx.Done():
		return
	}
	if err := e.record(ctx, s.Switch); err != nil {
		e.Log.Warn("record switch", "database", s.Database, "error", err)
	}
}

// record keeps a switch, unless a later switch of the database was recorded already: the first
// write after an earlier switch may have hung for long.
func (e *Edge) record(ctx context.Context, s seen.Switch) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	key := state.Switch(e.Name, s.Database)
	for {
		last, err := state.Get[seen.Switch](ctx, e.Store, key)
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
		if last.Value.Elected.After(s.Elected) {
			return nil
		}
		_, err = e.Store.Commit(ctx, state.Swap(key, last.Revision, s))
		if !errors.Is(err, state.ErrConflict) {
			return err
		}
	}
}
