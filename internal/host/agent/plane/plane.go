// Package plane knows the control planes of a home, as a host does: it tells each again and again
// that the host is alive, and hears of which release the records of the home are.
package plane

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"howdah/internal/host/hostapi"
	"howdah/internal/host/pace"
	"howdah/internal/identity/certs"
	"howdah/internal/state"
	"howdah/internal/state/format"
)

// Beat is how often a host says that it is alive.
const Beat = 400 * time.Millisecond

// Config says which control planes there are, and who speaks to them. All fields are required.
type Config struct {
	URLs     []string // of control planes, as they were known last
	Identity *certs.Identity
	Version  string // of the agent
	Life     string // names its process
	// Remember is told of the control planes when they change, for the next start.
	Remember func(urls []string)
}

// Planes are the control planes of the home. They come and go: etcd knows them.
type Planes struct {
	cfg Config

	mu      sync.Mutex
	clients map[string]*hostapi.Client // by URL, guarded by mu
	gates   []string                   // host:port of those before etcd, guarded by mu
	format  format.Record              // of the home's records, guarded by mu
	heard   chan struct{}              // closed once that is known
}

// New are those that the config names.
func New(cfg Config) (*Planes, error) {
	c := &Planes{cfg: cfg, clients: map[string]*hostapi.Client{}, heard: make(chan struct{})}
	return c, c.set(cfg.URLs)
}

// set keeps exactly these control planes.
func (c *Planes) set(urls []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, url := range urls {
		if c.clients[url] != nil {
			continue
		}
		client, err := hostapi.NewClient(url, c.cfg.Identity)
		if err != nil {
			return err
		}
		c.clients[url] = client
	}
	for url, client := range c.clients {
		if !slices.Contains(urls, url) {
			client.Close()
			delete(c.clients, url)
		}
	}
	return nil
}

// All are clients of those that are known now.
func (c *Planes) All() []*hostapi.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*hostapi.Client
	for _, client := range c.clients {
		all = append(all, client)
	}
	return all
}

func (c *Planes) knows(client *hostapi.Client) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clients[client.URL] == client
}

// Run beats to every control plane, each on its own: a slow one does not delay
// the others. It follows who they are in the cache.
func (c *Planes) Run(ctx context.Context, cache *state.Cache, log *slog.Logger) {
	changed := make(chan struct{}, 1)
	cache.OnChange(func([]string) {
		c.setFormat(cache)
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { _ = cache.Run(ctx) })
	all.Go(func() {
		if cache.Loaded(ctx) == nil {
			c.setFormat(cache)
			close(c.heard)
		}
	})
	beating := map[*hostapi.Client]bool{}
	for {
		for _, client := range c.All() {
			if !beating[client] {
				beating[client] = true
				all.Go(func() { c.beat(ctx, client, log) })
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		if urls, gates := whereTold(cache); len(urls) > 0 {
			c.setGates(gates)
			if err := c.set(urls); err != nil {
				log.Error("follow control planes", "error", err)
			}
			c.cfg.Remember(urls)
		}
	}
}

// whereTold is where the control planes say that they answer: hosts, and members that ask
// for etcd.
func whereTold(cache *state.Cache) (urls, gates []string) {
	for _, m := range state.LoadAll[hostapi.ControlMember](cache, state.ControlRoot) {
		urls = append(urls, m.Value.URL)
		if m.Value.Gate != "" {
			gates = append(gates, m.Value.Gate)
		}
	}
	slices.Sort(gates)
	return urls, gates
}

func (c *Planes) setGates(gates []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gates = gates
}

// Gates are the gates before etcd, as host:port; none if nobody has told yet.
func (c *Planes) Gates() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.gates)
}

// beat tells one control plane that this host is alive, until it is one no more.
func (c *Planes) beat(ctx context.Context, client *hostapi.Client, log *slog.Logger) {
	silent := false
	for c.knows(client) {
		call, cancel := context.WithTimeout(ctx, 2*Beat)
		err := client.Heartbeat(call, c.cfg.Life)
		cancel()
		if (err != nil) != silent && ctx.Err() == nil {
			silent = err != nil
			log.Info("control plane", "url", client.URL, "answers", !silent)
		}
		if !pace.Sleep(ctx, Beat) {
			return
		}
	}
}
