// Package fleet pretends hosts, by the thousand, towards a real control plane. Each has what an
// agent has: a certificate, heartbeats, a connection to etcd with the same watches, and reports.
// Nothing runs on them: members, Patroni's elections and one edge exist only as what they would
// write. Patroni's own requests to etcd, a loop each second for each member, are not pretended.
package fleet

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/seen"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
)

const (
	// beat is the pause between two heartbeats of an agent.
	beat = 400 * time.Millisecond
	// callTimeout bounds each call of a pretended host.
	callTimeout = 10 * time.Second
	// workers is how many databases are pretended at a time.
	workers = 16
)

// Config is what a fleet needs. All fields except Beat and Assigned are required.
type Config struct {
	Home  *home.Home // of the control plane, which must be running
	Hosts int
	Zones []string
	Beat  time.Duration // between heartbeats; 0: an agent's
	// Assigned is called for each assignment that a host sees. It must not block.
	Assigned func(host string, a member.Assignment)
}

// Fleet is a number of pretended hosts. It ends with the context of Start.
type Fleet struct {
	cfg   Config
	hosts []*host
	byKey map[string]*host // by name
	edge  *host
	// stage writes in one transaction what agents, edges and members say. None of them may do that
	// alone.
	stage *clientv3.Client
	done  sync.WaitGroup
	theater
}

// host is one pretended host. The edge is one, too, without heartbeats.
type host struct {
	name, zone, address string
	silent              atomic.Bool
	client              *clientv3.Client
	store               *state.Store
	control             *hostapi.Client
}

// Name returns the name of the n-th host.
func Name(n int) string { return fmt.Sprintf("h%04d", n) }

// Start makes the hosts, one after the other, and makes them work until ctx ends. Then call Wait.
func Start(ctx context.Context, cfg Config) (*Fleet, error) {
	f := &Fleet{cfg: cfg, byKey: map[string]*host{}}
	f.theater.begin()
	ca, err := cfg.Home.CA()
	if err != nil {
		return nil, err
	}
	if f.stage, err = f.dialStage(ctx); err != nil {
		return nil, err
	}
	if f.edge, err = f.join(ctx, ca, hostapi.Edge, "edge", "", ""); err != nil {
		return nil, err
	}
	for n := range cfg.Hosts {
		address := fmt.Sprintf("10.%d.%d.%d", 1+n/62500, n/250%250, 1+n%250)
		h, err := f.join(ctx, ca, hostapi.Agent, Name(n), cfg.Zones[n%len(cfg.Zones)], address)
		if err != nil {
			return nil, err
		}
		f.hosts = append(f.hosts, h)
		f.byKey[h.name] = h
	}
	if err := f.introduce(ctx); err != nil {
		return nil, err
	}
	for _, h := range f.hosts {
		if err := f.run(ctx, h); err != nil {
			return nil, err
		}
	}
	f.done.Go(func() { f.followRoutes(ctx) })
	for range workers {
		f.done.Go(func() { f.act(ctx) })
	}
	f.done.Go(func() { <-ctx.Done(); f.theater.end() })
	return f, nil
}

// Wait waits for a fleet whose context has ended.
func (f *Fleet) Wait() {
	f.done.Wait()
	for _, h := range append(f.hosts, f.edge) {
		h.control.Close()
		_ = h.client.Close()
	}
	_ = f.stage.Close()
}

// Silence makes hosts stop to say that they are alive, or begin again.
func (f *Fleet) Silence(silent bool, names ...string) {
	for _, name := range names {
		f.byKey[name].silent.Store(silent)
	}
}

// dialStage connects as a control plane does.
func (f *Fleet) dialStage(ctx context.Context) (*clientv3.Client, error) {
	pair, err := certs.Load(f.cfg.Home.CertDir())
	if err != nil {
		return nil, err
	}
	return etcd.Dial(context.WithoutCancel(ctx), f.etcd(), pair)
}

func (f *Fleet) etcd() []string { return []string{"https://" + f.cfg.Home.Address(0, 1) + ":2379"} }

// join connects a host as an agent is connected, with a certificate of the home.
func (f *Fleet) join(ctx context.Context, ca *certs.CA, kind hostapi.Kind, name, zone, address string) (*host, error) {
	pair, err := ca.Issue(certs.Subject{CommonName: string(kind) + ":" + name})
	if err != nil {
		return nil, err
	}
	h := &host{name: name, zone: zone, address: address}
	if h.client, err = etcd.Dial(context.WithoutCancel(ctx), f.etcd(), pair); err != nil {
		return nil, err
	}
	h.store = &state.Store{Client: h.client}
	h.control, err = hostapi.NewClient("https://"+f.cfg.Home.Listen, pair)
	return h, err
}

// introduce writes what hosts and edge say of themselves.
func (f *Fleet) introduce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 6*callTimeout)
	defer cancel()
	if _, err := f.edge.store.Commit(ctx,
		state.Put(state.Edge(f.edge.name), seen.Status{Name: f.edge.name, Info: endpoint.Info{Driver: "pretended", Cost: "nothing"}}),
		state.Put(state.Runs(f.edge.name), true)); err != nil {
		return err
	}
	for _, h := range f.hosts {
		_, err := h.store.Commit(ctx, state.Put(state.Host(h.name), member.Host{
			Name: h.name, Zone: h.zone, Address: h.address, CPUs: 64, Memory: 512 << 30, Disk: 8 << 40, DiskFree: 6 << 40,
			Majors: map[int]string{15: "15.18"}, Containment: "pretended", Limits: "none", Cut: "none", Version: "pretended",
			Started: time.Now().UTC(),
		}))
		if err != nil {
			return err
		}
	}
	return nil
}

// run does what an agent does: it sends heartbeats, and follows the same four families of keys. It
// returns once it follows them.
func (f *Fleet) run(ctx context.Context, h *host) error {
	f.done.Go(func() { h.beat(ctx, cmp.Or(f.cfg.Beat, beat)) })
	quiet := slog.New(slog.DiscardHandler)
	assigned := state.NewCache(h.client, quiet, state.AssignPrefix(h.name))
	assigned.OnChange(func(keys []string) {
		for _, key := range keys {
			f.assigned(h, key, assigned)
		}
	})
	asked := state.NewCache(h.client, quiet, state.TaskPrefix(h.name))
	asked.OnChange(func(keys []string) {
		for _, key := range keys {
			if task, err := state.Load[member.Task](asked, key); err == nil {
				f.done.Go(func() { f.perform(ctx, h, task.Value) })
			}
		}
	})
	fences := state.NewCache(h.client, quiet, state.FenceRoot)
	controls := state.NewCache(h.client, quiet, state.ControlRoot)
	for _, cache := range []*state.Cache{assigned, asked, fences, controls} {
		f.done.Go(func() { _ = cache.Run(ctx) })
	}
	return fences.Loaded(ctx)
}

// beat says that the host is alive. All hosts begin at different moments.
func (h *host) beat(ctx context.Context, every time.Duration) {
	next := time.NewTimer(rand.N(every))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		if !h.silent.Load() {
			call, cancel := context.WithTimeout(ctx, 2*every)
			_ = h.control.Heartbeat(call, "") // one that is missed counts like a host's
			cancel()
		}
		next.Reset(every)
	}
}
