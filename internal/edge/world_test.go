package edge

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"howdah/internal/edge/endpoint"
	"howdah/internal/model/member"
	"howdah/internal/model/network/cidr"
	"howdah/internal/model/patroni"
	"howdah/internal/model/route"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
	"howdah/internal/testkit/pgtest"
)

const soon = 20 * time.Second

// paths stands for the kernel: it remembers where endpoints lead and what was cut.
type paths struct {
	mu    sync.Mutex
	leads map[string]string // guarded by mu; targets by endpoint id
	sits  map[string]string // guarded by mu; listen addresses by endpoint id
	away  map[string]bool   // guarded by mu; by endpoint id
	allow map[string]string // guarded by mu; who may connect, by endpoint id
	log   []string          // guarded by mu; "point ID TARGETS" and "cut LISTEN TARGET", in order
}

var _ endpoint.Forwarder = (*paths)(nil)

func (p *paths) Sync(_ context.Context, all []endpoint.Endpoint) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leads, p.allow, p.sits, p.away = map[string]string{}, map[string]string{}, map[string]string{}, map[string]bool{}
	for _, e := range all {
		p.away[e.ID] = e.Away
		p.sits[e.ID] = e.Listen.String()
		p.leads[e.ID], p.allow[e.ID] = fmt.Sprint(e.Targets), fmt.Sprint(cidr.Texts(e.Allow), e.Allow == nil)
	}
	return nil, nil
}

func (p *paths) Point(_ context.Context, e endpoint.Endpoint) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leads[e.ID], p.allow[e.ID] = fmt.Sprint(e.Targets), fmt.Sprint(cidr.Texts(e.Allow), e.Allow == nil)
	p.away[e.ID] = e.Away
	p.log = append(p.log, fmt.Sprintf("point %s %v", e.ID, e.Targets))
	return nil
}

func (p *paths) Cut(_ context.Context, listen, target netip.AddrPort) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, fmt.Sprintf("cut %s %s", listen, target))
	return 3, nil
}

func (p *paths) Run(ctx context.Context) error { <-ctx.Done(); return nil }
func (p *paths) Remove(context.Context) error  { return nil }
func (p *paths) Info() endpoint.Info           { return endpoint.Info{Driver: "paths"} }
func (p *paths) seen(line string) bool         { return slices.Contains(p.lines(), line) }
func (p *paths) leading(id string) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.leads[id]
	return t, ok
}

func (p *paths) isAway(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.away[id]
}

func (p *paths) at(id string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sits[id]
}

func (p *paths) allows(id string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.allow[id]
}

func (p *paths) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

// world is a home with an edge and real servers that stand for the members of the
// database db-1: m1 and m2 write, m3 is in recovery until it is promoted.
type world struct {
	*testing.T
	home    *hometest.Home
	paths   *paths
	servers map[string]*pgtest.Server
	listen  string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	h := hometest.New(t)
	w := &world{T: t, home: h, paths: &paths{leads: map[string]string{}}, servers: map[string]*pgtest.Server{}, listen: "127.201.0.1:5432"}
	pair := h.Issue(t, "agent:x")
	for name, standby := range map[string]bool{"m1": false, "m2": false, "m3": true} {
		w.servers[name] = pgtest.Start(t, pgtest.Options{Pair: &pair, Standby: standby})
	}
	return w
}

func (w *world) put(key string, value any) {
	w.Helper()
	if _, err := w.home.Store.Commit(w.Context(), state.Put(key, value)); err != nil {
		w.Fatal(err)
	}
}

// route is one of db-1 with all of its members, each on a host of its own.
func (w *world) route(id string, kind route.Kind, listen string) route.Route {
	r := route.Route{ID: id, Database: "db-1", Kind: kind, Listen: listen}
	for _, name := range []string{"m1", "m2", "m3"} {
		r.Members = append(r.Members, route.Member{Name: name, Host: "host-" + name, Address: w.servers[name].Addr})
	}
	return r
}

func (w *world) putRoute(r route.Route) { w.put(state.Route(r.ID), r) }

// elect writes Patroni's leader key; "" deletes it.
func (w *world) elect(name string) {
	w.Helper()
	client, key := w.home.Store.Client, patroni.LeaderKey("db-1")
	var err error
	if name == "" {
		_, err = client.Delete(w.Context(), key)
	} else {
		_, err = client.Put(w.Context(), key, patroni.OwnName("db-1", name))
	}
	if err != nil {
		w.Fatal(err)
	}
}

// serves writes what is known of a healthy replica.
func (w *world) serves(name string, streaming, alive bool) {
	w.Helper()
	id := "db-1." + name
	w.put(state.Report("host-"+name, id), member.Report{ID: id, Host: "host-" + name, Ready: true, InRecovery: true, Streaming: streaming})
	w.put(state.Live("host-"+name), member.Liveness{Alive: alive})
	_, err := w.home.Store.Client.Put(w.Context(), patroni.MemberKey("db-1", patroni.OwnName("db-1", name)), `{"state":"running","role":"replica"}`)
	if err != nil {
		w.Fatal(err)
	}
}

// run starts the edge; change may alter it before.
func (w *world) run(change func(*Config)) (stop func()) {
	w.Helper()
	pair := w.home.Issue(w.T, "edge:edge")
	config, err := pair.ClientTLS()
	if err != nil {
		w.Fatal(err)
	}
	cfg := Config{
		Name: "edge", Store: w.home.Store, Forwarder: w.paths, Info: w.paths.Info(), TLS: config, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&cfg)
	}
	ctx, cancel := context.WithCancel(w.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := New(cfg).Run(ctx); err != nil {
			w.Errorf("edge: %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	w.Cleanup(stop)
	return stop
}

// leadsTo waits until an endpoint leads to these members, in this order.
func (w *world) leadsTo(id string, names ...string) {
	w.Helper()
	testkit.Eventually(w.T, soon, func() error { return w.leadsNow(id, names...) })
}

func (w *world) leadsNow(id string, names ...string) error {
	var addresses []string
	for _, name := range names {
		addresses = append(addresses, w.servers[name].Addr)
	}
	got, ok := w.paths.leading(id)
	if want := fmt.Sprint(addresses); !ok || got != want {
		return fmt.Errorf("%s leads to %s (%v), want %s", id, got, ok, want)
	}
	return nil
}

// passed returns when the edge has acted on everything that was written before.
func (w *world) passed() {
	w.Helper()
	r := w.route("marker", route.Seats, "127.201.0.9:5432")
	r.Database, r.Members = "db-marker", nil
	r.Listen = fmt.Sprintf("127.201.0.9:%d", 2000+time.Now().UnixNano()%30000)
	r.ID = "marker-" + r.Listen
	w.putRoute(r)
	testkit.Eventually(w.T, soon, func() error {
		if _, ok := w.paths.leading(r.ID); !ok {
			return fmt.Errorf("%s is not there", r.ID)
		}
		return nil
	})
}
