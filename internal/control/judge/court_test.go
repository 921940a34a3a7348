package judge

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/control/plan"
	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/etcdtest"
	"howdah/internal/testkit/patience"
)

const (
	database = "db-1"
	quorum3  = `{"leader":"m1","sync_standby":"m2,m3","quorum":1}`

	beatEvery  = 20 * time.Millisecond
	renewEvery = 200 * time.Millisecond
	// leaseTTL is so long that no lease ends because a machine is slow: what counts is
	// for how long it was not renewed.
	leaseTTL = 60 * patroni.TTL
)

// detection is short, for fake hosts that beat so often. One that is heard must be heard
// on a busy machine, too.
var detection = patience.For(400 * time.Millisecond)

// court is a judge with a real etcd and fake hosts: m1, the primary, is on host a,
// its standbys m2 and m3 on b and c.
type court struct {
	*testing.T
	store *state.Store
	cache *state.Cache
	pulse *Pulse
	lease clientv3.LeaseID

	mu    sync.Mutex
	hosts map[string]fakeHost // guarded by mu
}

// fakeHost is what an agent does.
type fakeHost struct {
	beats             bool
	witnesses, cuts   bool // it answers to cases
	patroni, postgres bool // it reaches these of the primary
}

func newCourt(t *testing.T, sync string) *court {
	t.Helper()
	c := &court{T: t, store: etcdtest.Store(t), pulse: NewPulse(), hosts: map[string]fakeHost{}}
	c.cache = etcdtest.Cache(t, c.store, nil)
	layout := plan.Layout{ID: database, Created: true}
	for i, host := range []string{"a", "b", "c"} {
		c.hosts[host] = fakeHost{beats: true, witnesses: true, cuts: true}
		c.put(state.Put(state.Host(host), member.Host{Name: host, Zone: host, Address: "127.0.0.1"}))
		layout.Members = append(layout.Members, plan.Placed{Name: fmt.Sprintf("m%d", i+1), Host: host, Address: "127.0.0.1", Port: 5432, RESTPort: 8008})
	}
	c.put(state.Put(state.Layout(database), layout))
	c.lease = c.leads("m1")
	if sync != "" {
		c.raw(patroni.SyncKey(database), sync)
	}
	c.background(c.beat)
	c.background(c.live)
	return c
}

// leads gives a member the leader key, by a lease of its own, which its Patroni renews
// as long as its host beats.
func (c *court) leads(member string) clientv3.LeaseID {
	c.Helper()
	lease, err := c.store.Client.Grant(c.Context(), leaseTTL)
	if err != nil {
		c.Fatal(err)
	}
	host := string(rune('a' + member[1] - '1'))
	c.background(func(ctx context.Context) {
		for pauseFor(ctx, renewEvery) {
			if c.snapshot()[host].beats {
				_, _ = c.store.Client.KeepAliveOnce(ctx, lease.ID) // a test may have ended it
			}
		}
	})
	c.raw(patroni.LeaderKey(database), patroni.OwnName(database, member), clientv3.WithLease(lease.ID))
	return lease.ID
}

func (c *court) put(ops ...state.Op) {
	c.Helper()
	etcdtest.Put(c, c.store, c.cache, ops...)
}

func (c *court) raw(key, value string, opts ...clientv3.OpOption) {
	c.Helper()
	answer, err := c.store.Client.Put(c.Context(), key, value, opts...)
	if err == nil {
		err = c.cache.WaitRevision(c.Context(), answer.Header.Revision)
	}
	if err != nil {
		c.Fatal(err)
	}
}

// background runs something until the test ends, and waits for its end.
func (c *court) background(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { run(ctx) })
	stop = func() { cancel(); done.Wait() }
	c.Cleanup(stop)
	return stop
}

// beat is the heartbeats of the fake hosts. They wait for nothing: a disk that is busy
// delays what a host writes, and not that it is heard.
func (c *court) beat(ctx context.Context) {
	for pauseFor(ctx, beatEvery) {
		c.mu.Lock()
		for name, h := range c.hosts {
			if h.beats {
				c.pulse.Beat(name, "")
			}
		}
		c.mu.Unlock()
	}
}

// live is what else the fake hosts do: they bear witness, and cut.
func (c *court) live(ctx context.Context) {
	for pauseFor(ctx, beatEvery) {
		for name, h := range c.snapshot() {
			for _, r := range state.LoadAll[fence.Case](c.cache, state.FencePrefix(database)) {
				if name != r.Value.Host {
					c.answer(ctx, name, h, r.Value)
				}
			}
		}
	}
}

func (c *court) snapshot() map[string]fakeHost {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.hosts)
}

func (c *court) answer(ctx context.Context, name string, h fakeHost, of fence.Case) {
	if of.Phase == fence.Suspected && h.witnesses {
		c.store.Commit(ctx, state.Put(state.Witness(of.ID, name), fence.Witness{
			Case: of.ID, Host: name, Patroni: h.patroni, Postgres: h.postgres, At: time.Now(),
		}))
	}
	member := "m" + string(rune('1'+name[0]-'a'))
	_, _, told := c.cache.Raw(state.Cut(of.ID, member))
	if of.Wanted() && h.cuts && !told && slices.Contains(of.Leadership.Sync.Standbys, member) {
		c.store.Commit(ctx, state.Put(state.Cut(of.ID, member), fence.CutReport{
			Case: of.ID, Host: name, Member: member, How: "kernel", At: time.Now(),
		}))
	}
}

// host changes what a fake host does.
func (c *court) host(name string, change func(*fakeHost)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[name]
	change(&h)
	c.hosts[name] = h
}

func silent(h *fakeHost) { h.beats, h.witnesses, h.cuts = false, false, false }
func heard(h *fakeHost)  { h.beats = true }

// judge starts a judge; stop ends it, as the end of this control plane's lead does.
func (c *court) judge(change func(*Config)) (j *Judge, stop func()) {
	cfg := Config{Store: c.store, Cache: c.cache, Pulse: c.pulse, Detection: detection, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	j = New(cfg)
	return j, c.background(func(ctx context.Context) {
		if err := j.Run(ctx); err != nil {
			c.Errorf("run: %v", err)
		}
	})
}

// knows waits until the judge has pronounced a host.
func (c *court) knows(host string, alive bool) {
	c.Helper()
	testkit.Eventually(c, 10*time.Second, func() error {
		r, err := state.Load[struct{ Alive bool }](c.cache, state.Live(host))
		if err == nil && r.Value.Alive != alive {
			err = fmt.Errorf("%s is alive: %v", host, r.Value.Alive)
		}
		return err
	})
}

func (c *court) leader() (name string, revision int64) {
	value, revision, _ := c.cache.Raw(patroni.LeaderKey(database))
	return patroni.MemberName(string(value)), revision
}

// phase waits until the case of m1 is in a phase; "" is no case.
func (c *court) phase(want fence.Phase) fence.Case {
	c.Helper()
	return c.phaseOf("m1", want)
}

func (c *court) phaseOf(leader string, want fence.Phase) fence.Case {
	c.Helper()
	var last fence.Case
	testkit.Eventually(c, 15*time.Second, func() error {
		r, err := state.Load[fence.Case](c.cache, state.Fence(database, leader))
		last = r.Value
		switch {
		case err != nil && want == "" || err == nil && last.Phase == want:
			return nil
		case err != nil:
			return fmt.Errorf("want %q: %w", want, err)
		}
		return fmt.Errorf("the case is %q, want %q", last.Phase, want)
	})
	return last
}

// report is what the agent of host a says when it is back.
func (c *court) report(postgres, recovery bool) {
	c.Helper()
	c.put(state.Put(state.Report("a", database+".m1"), member.Report{
		ID: database + ".m1", Host: "a", Postgres: postgres, Ready: postgres, InRecovery: recovery, At: time.Now().UTC(),
	}))
}

func (c *court) incidents() []fence.Incident {
	var all []fence.Incident
	for _, r := range state.LoadAll[fence.Incident](c.cache, state.IncidentRoot+database+"/") {
		all = append(all, r.Value)
	}
	slices.SortFunc(all, func(a, b fence.Incident) int { return a.Detected.Compare(b.Detected) })
	return all
}

// trial is one of a judge that does not run, for its fencers.
func (c *court) trial() *trial {
	c.Helper()
	l, err := fence.Read(c.Context(), c.store.Client, database)
	if err != nil {
		c.Fatal(err)
	}
	layout, err := state.Load[plan.Layout](c.cache, state.Layout(database))
	if err != nil {
		c.Fatal(err)
	}
	j := New(Config{Store: c.store, Cache: c.cache, Pulse: c.pulse, Detection: detection, Log: slog.New(slog.DiscardHandler)})
	return &trial{judge: j, layout: layout.Value, done: make(chan struct{}), c: fence.Case{
		ID: "case-1", Phase: fence.Cutting, Leadership: l, Host: "a", Cut: time.Now().UTC(), Proof: fence.Proof{Method: "quorum"},
	}}
}
