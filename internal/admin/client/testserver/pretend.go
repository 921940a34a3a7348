package testserver

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/control/plan"
	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/seen"
	"howdah/internal/failover/fence"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/certs"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/route"
	"howdah/internal/state"
)

// pace is the pause between two looks of hosts at their assignments.
const pace = 20 * time.Millisecond

// position is the end of every pretended WAL.
const position = lsn.LSN(0x3000060)

// pretend has hosts whose members exist only as reports. The member with the first name wins each
// election of their Patroni.
type pretend struct {
	server *Server
	store  *state.Store

	mu       sync.Mutex
	hosts    map[string]*host
	held     bool
	problems map[string]member.Report // by member id

	// These belong to run's goroutine.
	leaders   map[string]string // by scope
	timelines map[string]int
	written   map[string]any // what each key holds
}

type host struct {
	lost   bool
	client *hostapi.Client
}

func newPretend(s *Server) *pretend {
	return &pretend{
		server: s, store: s.Store, hosts: map[string]*host{}, problems: map[string]member.Report{},
		leaders: map[string]string{}, timelines: map[string]int{}, written: map[string]any{},
	}
}

func (p *pretend) number() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.hosts) }

func (p *pretend) setLost(name string, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hosts[name].lost = lost
}

func (p *pretend) setHeld(held bool) { p.mu.Lock(); defer p.mu.Unlock(); p.held = held }

func (p *pretend) setProblem(id, problem, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems[id] = member.Report{Problem: member.Problem(problem), Detail: detail}
}

// add makes a host that has joined.
func (p *pretend) add(t testing.TB, name, zone, address string) {
	t.Helper()
	ca, err := p.server.Home.CA()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(certs.Subject{CommonName: string(hostapi.Agent) + ":" + name})
	if err != nil {
		t.Fatal(err)
	}
	client, err := hostapi.NewClient("https://"+p.server.Home.Listen, pair)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	p.mu.Lock()
	p.hosts[name] = &host{client: client}
	p.mu.Unlock()
	p.put(t.Context(), state.Host(name), member.Host{
		Name: name, Zone: zone, Address: address, CPUs: 4, Memory: 16 << 30, Disk: 200 << 30, DiskFree: 100 << 30,
		Majors: map[int]string{15: "15.18"}, Containment: "pretended", Limits: "none", Cut: "none", Version: Version,
		Started: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC),
	})
	p.put(t.Context(), state.Edge("edge"), seen.Status{Name: "edge", Info: endpoint.Info{
		Driver: "pretended", ClientAddressVisible: true, Cost: "nothing",
	}})
	p.put(t.Context(), state.Runs("edge"), true)
}

// run pretends until ctx ends. As with an agent, heartbeats wait for nothing that a host reads or
// writes: work that takes long on a busy disk does not make the host silent.
func (p *pretend) run(ctx context.Context) {
	var beats sync.WaitGroup
	defer beats.Wait()
	beats.Go(func() { paced(ctx, p.beat) })
	paced(ctx, p.round)
}

// paced does something again and again until ctx ends.
func paced(ctx context.Context, do func(context.Context)) {
	for ctx.Err() == nil {
		do(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(pace):
		}
	}
}

func (p *pretend) beat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var all sync.WaitGroup
	for _, h := range p.living() {
		all.Go(func() { _ = h.client.Heartbeat(ctx, "") }) // a beat that is missed counts like a host's
	}
	all.Wait()
}

// living returns the hosts that are heard.
func (p *pretend) living() map[string]*host {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]*host{}
	for name, h := range p.hosts {
		if !h.lost {
			all[name] = h
		}
	}
	return all
}

// round does what is assigned, at once.
func (p *pretend) round(ctx context.Context) {
	p.mu.Lock()
	held := p.held
	p.mu.Unlock()
	if held {
		return
	}
	alive := p.living()
	running := map[string][]placed{}
	// All are read at one moment. The first member of a database leads it.
	assigned, err := state.List[member.Assignment](ctx, p.store, state.AssignRoot)
	if err != nil {
		return
	}
	for _, a := range assigned {
		name, _, _ := strings.Cut(state.Tail(a.Key, state.AssignRoot), "/")
		switch {
		case alive[name] == nil:
		case a.Value.Want == member.Running:
			running[a.Value.Scope] = append(running[a.Value.Scope], placed{a.Value, name})
		default:
			p.report(ctx, name, member.Report{ID: a.Value.ID, Host: name, Generation: a.Value.Generation, Gone: a.Value.Want == member.Absent})
		}
	}
	for name := range alive {
		p.work(ctx, name)
	}
	for scope, members := range running {
		p.serve(ctx, scope, members)
	}
	p.expire(ctx)
	p.leadClients(ctx)
}

// leadClients does what an edge does: clients of every route get where they belong.
func (p *pretend) leadClients(ctx context.Context) {
	routes, err := state.List[route.Route](ctx, p.store, state.RouteRoot)
	if err != nil {
		return
	}
	wanted := map[string]bool{}
	for _, r := range routes {
		view := route.View{Leader: p.leaders[r.Value.Database], Serving: map[string]bool{}}
		for _, m := range r.Value.Members {
			view.Serving[m.Name] = true
		}
		key := state.Way(r.Value.ID, "edge")
		wanted[key] = true
		p.put(ctx, key, route.Way{Route: r.Value.ID, Edge: "edge", Listen: r.Value.Listen, Targets: r.Value.Targets(view)})
	}
	for key := range p.written {
		if strings.HasPrefix(key, state.WayRoot) && !wanted[key] {
			_, _ = p.store.Commit(ctx, state.Delete(key))
			delete(p.written, key)
		}
	}
}

// expire removes what the Patroni of lost hosts keeps under a lease.
func (p *pretend) expire(ctx context.Context) {
	p.mu.Lock()
	var lost []string
	for name, h := range p.hosts {
		if h.lost {
			lost = append(lost, name)
		}
	}
	p.mu.Unlock()
	for _, name := range lost {
		assigned, err := state.List[member.Assignment](ctx, p.store, state.AssignPrefix(name))
		if err != nil {
			return
		}
		for _, a := range assigned {
			_, _ = p.store.Commit(ctx, state.Delete(patroni.MemberKey(a.Value.Scope, a.Value.Name)))
		}
	}
}

// placed is a member that runs on a host.
type placed struct {
	member.Assignment
	host string
}

// serve pretends one database: who leads, who is in sync, and all reports.
func (p *pretend) serve(ctx context.Context, scope string, members []placed) {
	slices.SortFunc(members, func(a, b placed) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	leader := p.leaders[scope]
	if !slices.ContainsFunc(members, func(m placed) bool { return m.Name == leader }) {
		leader = members[0].Name
		p.leaders[scope], p.timelines[scope] = leader, p.timelines[scope]+1
	}
	var standbys []string
	for _, m := range members {
		if m.Name != leader && !m.NoFailover && !m.NoSync {
			standbys = append(standbys, m.Name)
		}
	}
	p.raw(ctx, patroni.LeaderKey(scope), leader)
	p.put(ctx, patroni.SyncKey(scope), map[string]any{"leader": leader, "sync_standby": strings.Join(standbys, ","), "quorum": max(len(standbys)-1, 0)})
	for _, m := range members {
		p.put(ctx, patroni.MemberKey(scope, m.Name), patroni.MemberState{
			State: "running", Role: "replica", Timeline: p.timelines[scope], Location: int64(position),
			Tags: map[string]any{"generation": m.Generation},
		})
		p.report(ctx, m.host, member.Report{
			ID: m.ID, Host: m.host, Generation: m.Generation, Patroni: true, Postgres: true, Ready: true,
			InRecovery: m.Name != leader, Streaming: m.Name != leader, Timeline: p.timelines[scope], LSN: position,
			OwnerSerial: m.Owner.Serial, StorageBytes: 40 << 20,
		})
	}
}

func (p *pretend) report(ctx context.Context, host string, r member.Report) {
	p.mu.Lock()
	if broken, ok := p.problems[r.ID]; ok {
		r.Problem, r.Detail = broken.Problem, broken.Detail
	}
	p.mu.Unlock()
	p.put(ctx, state.Report(host, r.ID), r)
}

// work does the tasks of a host.
func (p *pretend) work(ctx context.Context, name string) {
	tasks, err := state.List[member.Task](ctx, p.store, state.TaskPrefix(name))
	if err != nil {
		return
	}
	for _, t := range tasks {
		result := member.Result{ID: t.Value.ID, Member: t.Value.Member, Done: true, Began: time.Now().UTC(), Ended: time.Now().UTC()}
		if _, err := state.Get[member.Result](ctx, p.store, state.Result(t.Value.ID)); err == nil {
			continue
		}
		if t.Value.Kind == member.Handover {
			p.handOver(ctx, t.Value)
		}
		// A task that was taken back meanwhile has no result.
		_, _ = p.store.Commit(ctx, state.Unchanged(t.Key, t.Revision), state.Swap(state.Result(t.Value.ID), 0, result))
	}
}

// handOver makes another member the leader, and reports what agent and edge would.
func (p *pretend) handOver(ctx context.Context, t member.Task) {
	scope, old, _ := strings.Cut(t.Member, ".")
	layout, err := state.Get[plan.Layout](ctx, p.store, state.Layout(scope))
	if err != nil {
		return
	}
	for _, m := range layout.Value.Members {
		if m.Name == old || m.Leaving || m.Going != plan.Staying {
			continue
		}
		now := time.Now().UTC()
		p.leaders[scope] = m.Name
		p.timelines[scope]++
		p.put(ctx, state.Incident(scope, fmt.Sprintf("%016x", now.UnixNano())), fence.Incident{
			Kind: fence.Failover, Planned: true, Database: scope, Member: old, Host: t.Host, Cause: "planned",
			Detected: now, Fenced: now.Add(100 * time.Millisecond), Revoked: now.Add(101 * time.Millisecond),
			Proof: fence.Proof{Method: "killed", Text: "pretended", At: now},
		})
		p.put(ctx, state.Switch("edge", scope), seen.Switch{
			Database: scope, From: old, To: m.Name, Elected: now.Add(120 * time.Millisecond), Serving: now.Add(200 * time.Millisecond),
			Switched: now.Add(201 * time.Millisecond), FirstWrite: now.Add(210 * time.Millisecond), Sessions: 3,
		})
		return
	}
}

// put writes a value unless the key already holds it, both as far as we know and in fact.
func (p *pretend) put(ctx context.Context, key string, value any) {
	if reflect.DeepEqual(p.written[key], value) && p.exists(ctx, key) {
		return
	}
	if _, err := p.store.Commit(ctx, state.Put(key, value)); err == nil {
		p.written[key] = value
	}
}

func (p *pretend) raw(ctx context.Context, key, value string) {
	if p.written[key] == value && p.exists(ctx, key) {
		return
	}
	if _, err := p.store.Client.Put(ctx, key, value); err == nil {
		p.written[key] = value
	}
}

func (p *pretend) exists(ctx context.Context, key string) bool {
	answer, err := p.store.Client.Get(ctx, key, clientv3.WithCountOnly())
	return err == nil && answer.Count > 0
}
