// Package edge leads clients to databases. It watches Patroni's leader keys and the hosts' reports,
// and checks itself that a new primary serves. Then it points the endpoints to the new primary, and
// cuts the sessions that lead to the old one.
package edge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/held"
	"howdah/internal/edge/nameserver"
	"howdah/internal/edge/seen"
	"howdah/internal/model/network/cidr"
	"howdah/internal/model/patroni"
	"howdah/internal/model/route"
	"howdah/internal/state"
	"howdah/internal/state/format"
)

// syncEvery is how often all endpoints are compared with what they should be.
const syncEvery = time.Second

var errPools = errors.New("it is in none of the pools that this edge was started with")

// Config is what an edge is started with. All fields are required, unless they say otherwise.
type Config struct {
	Name      string
	Version   string // of this program
	Store     *state.Store
	Forwarder endpoint.Forwarder
	Info      endpoint.Info
	TLS       *tls.Config // shows the edge's certificate to databases
	Log       *slog.Logger
	// Own, if set, makes this edge serve only the endpoints whose primary is on the host of this
	// name. So an address moves from edge to edge with the primary. Announce tells the network that
	// an address is on this machine now. Set both or neither.
	Own      string
	Announce func(netip.Addr) error
	// Keep, if set, stores which addresses this host is about to hold, for the host's agent. It is
	// called before an address is added. Kept is what the previous process stored.
	Keep func([]held.Place) error
	Kept []held.Place
	// Serves reports whether the forwarder can serve an address; nil means any address. An endpoint
	// with another address is left out, so that it does not hold up the others.
	Serves func(netip.Addr) bool
	// Names, if set, answers for the names of databases.
	Names *nameserver.Server
}

// Edge is one edge.
type Edge struct {
	Config
	cache     *state.Cache
	started   time.Time
	wake      chan struct{}
	confirmed chan switching
	tasks     sync.WaitGroup

	told chan map[string]route.Way
	led  chan struct{} // closed once the state knows where this process leads clients
	ask  chan struct{} // a control plane has started, and asks who runs
	held chan map[netip.Addr][]route.Route

	evidence *evidence

	// These fields belong to Run's goroutine.
	leads  leads                        // by database
	synced bool                         // what an earlier process made is no more, or in points
	points map[string]endpoint.Endpoint // by route: where each leads now
	lost   map[string]bool              // hosts that were lost at the last look
	broken map[string]string            // by route: why it is unusable
	read   []route.Route                // the newest that this release reads
	frozen bool                         // there are newer ones
}

// New makes an edge.
func New(cfg Config) *Edge {
	e := &Edge{
		Config: cfg, started: time.Now().UTC(), wake: make(chan struct{}, 1), confirmed: make(chan switching),
		told: make(chan map[string]route.Way, 1), led: make(chan struct{}), ask: make(chan struct{}, 1),
		held: make(chan map[netip.Addr][]route.Route, 1), evidence: newEvidence(),
		leads: leads{}, points: map[string]endpoint.Endpoint{}, lost: map[string]bool{}, broken: map[string]string{},
	}
	e.cache = state.NewCache(cfg.Store.Client, cfg.Log,
		patroni.Namespace, state.RouteRoot, state.WayRoot, state.ReportRoot, state.LiveRoot, state.ControlRoot)
	e.cache.OnChange(func(keys []string) {
		e.nudge()
		if slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, state.ControlRoot) }) {
			nudge(e.ask)
		}
	})
	return e
}

func (e *Edge) nudge() { nudge(e.wake) }

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run leads clients until ctx ends. Endpoints and open sessions survive it.
func (e *Edge) Run(ctx context.Context) error {
	defer e.tasks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if e.Names != nil {
		e.tasks.Go(func() { e.Names.Run(ctx) }) // it may know names from before
	}
	e.tasks.Go(func() { _ = e.cache.Run(ctx) })
	e.tasks.Go(func() {
		if err := e.Forwarder.Run(ctx); err != nil {
			e.Log.Error("watch endpoints", "error", err)
		}
	})
	if e.cache.Loaded(ctx) != nil {
		return nil
	}
	if err := e.newer(); err != nil {
		return err // what an earlier process made works on
	}
	e.tasks.Go(func() { e.hear(ctx) })
	e.tasks.Go(func() { e.keepVigil(ctx) })
	if e.Own != "" {
		e.tasks.Go(func() { e.herald(ctx) })
	}
	for e.evidence.silence() >= believedFor && ctx.Err() == nil {
		wait(ctx, confirmEvery) // what an earlier process made stays as it is until then
	}
	e.introduce(ctx)
	e.tasks.Go(func() { e.tellWays(ctx) })
	e.tasks.Go(func() { e.tellLife(ctx) })
	if e.Names != nil {
		e.tasks.Go(func() { e.tellNames(ctx) })
	}
	timer := time.NewTicker(syncEvery)
	defer timer.Stop()
	for full := true; ; {
		e.update(ctx, full)
		select {
		case <-ctx.Done():
			return nil
		case s := <-e.confirmed:
			e.settle(ctx, s)
			full = false
		case <-e.wake:
			full = false
		case <-timer.C:
			full = true
		}
	}
}

func (e *Edge) introduce(ctx context.Context) {
	between := state.Delete(state.Between(e.Name))
	if !e.Info.ClientAddressVisible {
		between = state.Put(state.Between(e.Name), seen.Between{Addresses: ownAddresses()})
	}
	if _, err := e.Store.Commit(ctx, state.Put(state.Edge(e.Name), e.status()), between); err != nil {
		e.Log.Warn("introduce the edge", "error", err)
	}
}

func (e *Edge) status() seen.Status {
	s := seen.Status{Name: e.Name, Info: e.Info, Started: e.started, OwnNames: true, Reads: format.Newest, Own: e.Own}
	if e.Names != nil {
		s.Names = e.Names.At()
	}
	return s
}

// ownAddresses returns the addresses of the machine, except loopback.
func ownAddresses() []string {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var texts []string
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			texts = append(texts, p.Addr().String())
		}
	}
	return texts
}

// update brings the endpoints up to date with what is known. An endpoint that changed is updated at
// once, and all of them if full is set. Sessions are cut only after that: a client that connects
// again at once must not be led to the old primary.
func (e *Edge) update(ctx context.Context, full bool) []route.Route {
	routes := e.readRoutes()
	elections := e.followLeaders(routes)
	wanted := e.wanted(routes)
	for id, point := range wanted {
		if now, known := e.points[id]; known && now.Listen == point.Listen && !reflect.DeepEqual(now, point) {
			e.move(ctx, point)
		}
	}
	e.keep(routes, wanted)
	if full || !sameAddresses(wanted, e.points) {
		e.syncAll(ctx, wanted)
	}
	for _, s := range elections {
		e.takeOver(ctx, s, routes)
	}
	e.cutLostHosts(ctx, routes)
	e.noteWays()
	e.noteNames(routes)
	e.noteHeld(routes)
	return routes
}

// wanted returns, by route id, where the routes that this edge serves lead.
func (e *Edge) wanted(routes []route.Route) map[string]endpoint.Endpoint {
	points, broken := map[string]endpoint.Endpoint{}, map[string]string{}
	for _, r := range routes {
		point, err := e.resolve(r)
		if err != nil {
			broken[r.ID] = err.Error()
			if e.broken[r.ID] != broken[r.ID] {
				e.Log.Error("route is unusable", "route", r.ID, "error", err)
			}
			continue
		}
		if e.owned(r) {
			if e.Own != "" && !e.credible(r) {
				point.Away, point.Targets = true, nil
			}
			points[r.ID] = point
		}
	}
	e.broken = broken
	return points
}

// syncAll makes all endpoints what they should be, and repairs what others broke.
func (e *Edge) syncAll(ctx context.Context, wanted map[string]endpoint.Endpoint) {
	mended, err := e.Forwarder.Sync(ctx, slices.Collect(maps.Values(wanted)))
	for _, line := range mended {
		e.Log.Warn("endpoint mended", "what", line)
	}
	if err != nil {
		if ctx.Err() == nil {
			e.Log.Error("sync endpoints", "error", err)
		}
		return
	}
	e.points, e.synced = wanted, true
}

// sameAddresses reports whether two sets have the same endpoints at the same addresses. An endpoint
// whose address changed needs a sync, which also cuts the sessions of the old address.
func sameAddresses(a, b map[string]endpoint.Endpoint) bool {
	return maps.EqualFunc(a, b, func(x, y endpoint.Endpoint) bool { return x.Listen == y.Listen })
}

// owned reports whether this edge serves the endpoint. With Own set, the endpoint is served on the
// host of the elected member. While nobody is elected it stays where it was.
func (e *Edge) owned(r route.Route) bool {
	if e.Own == "" {
		return true
	}
	leader := ""
	if l := e.leads[r.Database]; l != nil {
		leader = l.elected
	}
	for _, m := range r.Members {
		if m.Name == leader {
			return m.Host == e.Own
		}
	}
	_, had := e.points[r.ID]
	return had
}

// move points an endpoint to other targets. Open sessions stay.
func (e *Edge) move(ctx context.Context, to endpoint.Endpoint) {
	if err := e.Forwarder.Point(ctx, to); err != nil {
		e.Log.Error("point endpoint", "endpoint", to.ID, "error", err)
		return
	}
	e.points[to.ID] = to
	e.Log.Info("endpoint moved", "endpoint", to.ID, "listen", to.Listen.String(), "targets", fmt.Sprint(to.Targets), "allow", cidr.Texts(to.Allow))
}

// resolve returns where a route leads now.
func (e *Edge) resolve(r route.Route) (endpoint.Endpoint, error) {
	point := endpoint.Endpoint{ID: r.ID}
	var err error
	if point.Listen, err = netip.ParseAddrPort(r.Listen); err != nil {
		return point, fmt.Errorf("listen address: %w", err)
	}
	if e.Serves != nil && !e.Serves(point.Listen.Addr()) {
		return point, fmt.Errorf("listen address %s: %w", point.Listen, errPools)
	}
	if point.Allow, err = cidr.Parse(r.Allow); err != nil {
		return point, fmt.Errorf("networks: %w", err)
	}
	for _, target := range r.Targets(e.view(r)) {
		address, err := netip.ParseAddrPort(target)
		if err != nil {
			return point, fmt.Errorf("target: %w", err)
		}
		point.Targets = append(point.Targets, address)
	}
	return point, nil
}

// view returns what is known about the database of a route.
func (e *Edge) view(r route.Route) route.View {
	v := route.View{Serving: map[string]bool{}}
	if l := e.leads[r.Database]; l != nil {
		v.Leader = l.serving
	}
	for _, m := range r.Members {
		v.Serving[m.Name] = e.serving(r, m)
	}
	return v
}
