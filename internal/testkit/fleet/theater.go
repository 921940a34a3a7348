package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/route"
	"howdah/internal/state"
)

// theater is where the databases are played. A database is played again whenever one of its
// assignments or routes changed. One worker at a time plays it.
type theater struct {
	mu        sync.Mutex
	changed   *sync.Cond
	databases map[string]*database // by scope, guarded by mu
	waiting   []string             // scopes to be played, guarded by mu
	ended     bool                 // guarded by mu
}

// database is what is pretended of one database.
type database struct {
	members  map[string]placed      // by name; guarded by theater.mu, as are all but written
	routes   map[string]route.Route // by id
	leader   string
	timeline int
	written  int64 // bytes of WAL
	waits    bool  // it is in theater.waiting
	busy     bool  // a worker has it
	again    bool  // something changed since
	serves   bool

	known map[string]string // what each key holds; belongs to the worker that has it
}

// placed is a member with its host.
type placed struct {
	member.Assignment
	host string
}

func (t *theater) begin() {
	t.changed = sync.NewCond(&t.mu)
	t.databases = map[string]*database{}
}

func (t *theater) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.changed.Broadcast()
}

// alter changes a database. The database is then played again.
func (t *theater) alter(scope string, change func(*database)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.databases[scope]
	if d == nil {
		d = &database{members: map[string]placed{}, routes: map[string]route.Route{}, known: map[string]string{}}
		t.databases[scope] = d
	}
	change(d)
	t.queue(scope, d)
}

// queue puts a database into the queue. The caller holds mu.
func (t *theater) queue(scope string, d *database) {
	switch {
	case d.busy:
		d.again = true
	case !d.waits:
		d.waits = true
		t.waiting = append(t.waiting, scope)
		t.changed.Signal()
	}
}

// Serving returns how many databases have a leader that serves.
func (t *theater) Serving() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, d := range t.databases {
		if d.serves {
			n++
		}
	}
	return n
}

// Write makes some databases write WAL, so that their hosts report new positions.
func (t *theater) Write(scopes []string) {
	for _, scope := range scopes {
		t.alter(scope, func(d *database) { d.written += 8 << 10 })
	}
}

// Scopes returns all databases that serve, in order.
func (t *theater) Scopes() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	for scope, d := range t.databases {
		if d.serves {
			all = append(all, scope)
		}
	}
	slices.Sort(all)
	return all
}

// assigned takes over what a host was told of a member.
func (f *Fleet) assigned(h *host, key string, cache *state.Cache) {
	scope, name, _ := strings.Cut(state.Tail(key, state.AssignPrefix(h.name)), ".")
	a, err := state.Load[member.Assignment](cache, key)
	f.alter(scope, func(d *database) {
		if err != nil {
			delete(d.members, name)
			return
		}
		d.members[name] = placed{a.Value, h.name}
	})
	if err == nil && f.cfg.Assigned != nil {
		f.cfg.Assigned(h.name, a.Value)
	}
}

// perform does a task at once.
func (f *Fleet) perform(ctx context.Context, h *host, t member.Task) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	now := time.Now().UTC()
	if _, err := state.Get[member.Result](ctx, h.store, state.Result(t.ID)); err == nil {
		return
	}
	if t.Kind == member.Handover {
		f.handOver(t)
	}
	_, _ = h.store.Commit(ctx, state.Swap(state.Result(t.ID), 0, member.Result{ID: t.ID, Member: t.Member, Done: true, Began: now, Ended: now}))
}

func (f *Fleet) handOver(t member.Task) {
	scope, old, _ := strings.Cut(t.Member, ".")
	f.alter(scope, func(d *database) {
		for _, m := range d.running() {
			if m.Name != old && !m.NoFailover {
				d.leader = m.Name
				d.timeline++
				return
			}
		}
	})
}

// followRoutes is the pretended edge.
func (f *Fleet) followRoutes(ctx context.Context) {
	cache := state.NewCache(f.edge.client, slog.New(slog.DiscardHandler), state.RouteRoot)
	known := map[string]string{} // scopes, by route
	cache.OnChange(func(keys []string) {
		for _, key := range keys {
			id := state.Tail(key, state.RouteRoot)
			if r, err := state.Load[route.Route](cache, key); err == nil {
				known[id] = r.Value.Database
				f.alter(r.Value.Database, func(d *database) { d.routes[id] = r.Value })
			} else if scope, ok := known[id]; ok {
				delete(known, id)
				f.alter(scope, func(d *database) { delete(d.routes, id) })
			}
		}
	})
	_ = cache.Run(ctx)
}

// act plays databases until ctx ends.
func (f *Fleet) act(ctx context.Context) {
	for {
		scope, d, keys, ok := f.next()
		if !ok {
			return
		}
		err := f.write(ctx, d, keys)
		f.mu.Lock()
		d.busy = false
		d.serves = err == nil && d.leader != ""
		switch {
		case (err != nil || d.again) && ctx.Err() == nil:
			d.again = false
			f.queue(scope, d)
		case len(d.members) == 0 && len(d.routes) == 0:
			delete(f.databases, scope)
		}
		f.mu.Unlock()
	}
}

// next returns the next database, with what its keys are to hold.
func (f *Fleet) next() (scope string, d *database, keys map[string]string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.waiting) == 0 && !f.ended {
		f.changed.Wait()
	}
	if f.ended {
		return "", nil, nil, false
	}
	scope, f.waiting = f.waiting[0], f.waiting[1:]
	d = f.databases[scope]
	d.waits, d.busy = false, true
	d.elect()
	return scope, d, d.keys(scope, f.edge.name), true
}

// write makes the keys hold what they are to hold, in one transaction.
func (f *Fleet) write(ctx context.Context, d *database, keys map[string]string) error {
	var ops []clientv3.Op
	for key, value := range keys {
		if d.known[key] != value {
			ops = append(ops, clientv3.OpPut(key, value))
		}
	}
	for key := range d.known {
		if _, wanted := keys[key]; !wanted {
			ops = append(ops, clientv3.OpDelete(key))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := f.stage.Txn(ctx).Then(ops...).Commit(); err != nil {
		return fmt.Errorf("play: %w", err)
	}
	d.known = maps.Clone(keys)
	return nil
}

// running returns the members that are to run, the oldest first.
func (d *database) running() []placed {
	var all []placed
	for _, m := range d.members {
		if m.Want == member.Running {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// elect makes the oldest member the leader if there is none.
func (d *database) elect() {
	running := d.running()
	if slices.ContainsFunc(running, func(m placed) bool { return m.Name == d.leader }) {
		return
	}
	d.leader = ""
	if len(running) > 0 {
		d.leader = running[0].Name
		d.timeline++
	}
}

// keys returns all that agents, Patroni and the edge write of the database.
func (d *database) keys(scope, edge string) map[string]string {
	keys := map[string]string{}
	position := lsn.LSN(0x3000060 + d.written)
	var standbys []string
	for _, m := range d.members {
		r := member.Report{ID: m.ID, Host: m.host, Generation: m.Generation, Gone: m.Want == member.Absent}
		if m.Want == member.Running {
			leads := m.Name == d.leader
			if !leads && !m.NoFailover && !m.NoSync {
				standbys = append(standbys, m.Name)
			}
			r.Patroni, r.Postgres, r.Ready, r.InRecovery, r.Streaming = true, true, true, !leads, !leads
			r.Timeline, r.LSN, r.OwnerSerial, r.StorageBytes = d.timeline, position, m.Owner.Serial, 40<<20
			keys[patroni.MemberKey(scope, m.Name)] = encode(patroni.MemberState{
				State: "running", Role: "replica", Timeline: d.timeline, Location: int64(position), Tags: map[string]any{"generation": m.Generation},
			})
		}
		keys[state.Report(m.host, m.ID)] = encode(r)
	}
	if d.leader == "" {
		return keys
	}
	slices.Sort(standbys)
	keys[patroni.LeaderKey(scope)] = d.leader
	keys[patroni.SyncKey(scope)] = encode(map[string]any{
		"leader": d.leader, "sync_standby": strings.Join(standbys, ","), "quorum": max(len(standbys)-1, 0),
	})
	for _, r := range d.routes {
		view := route.View{Leader: d.leader, Serving: map[string]bool{}}
		for _, m := range r.Members {
			view.Serving[m.Name] = true
		}
		keys[state.Way(r.ID, edge)] = encode(route.Way{Route: r.ID, Edge: edge, Listen: r.Listen, Targets: r.Targets(view)})
	}
	return keys
}

func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic("fleet: " + err.Error()) // only strings, numbers and lists of them
	}
	return string(text)
}
