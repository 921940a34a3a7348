package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/identity/seal"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
	"howdah/internal/view"
)

const (
	dbID    = "db-1"
	account = "000000000001"
	region  = "us-east-1"
)

// bench is a reconciler on a real etcd. The test makes its passes, so that nothing happens in
// between.
type bench struct {
	*testing.T
	store *state.Store
	cache *state.Cache
	r     *Reconciler
	now   time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, store: etcdtest.Store(t), now: time.Now()}
	b.r = b.reconciler()
	b.cache = b.r.Cache
	for i, zone := range []string{"a", "b", "c"} {
		h := member.Host{
			Name: zone, Zone: zone, Address: fmt.Sprintf("127.0.0.%d", i+1), CPUs: 2, Memory: 8 << 30,
			Disk: 100 << 30, DiskFree: 50 << 30, Majors: map[int]string{15: "15.18"}, OwnNames: true,
		}
		b.put(state.Put(state.Host(zone), h), state.Put(state.Live(zone), member.Liveness{Alive: true, Since: b.now}))
	}
	return b
}

// reconciler makes a reconciler with a cache of its own, as another control plane has.
func (b *bench) reconciler() *Reconciler {
	b.Helper()
	r := &Reconciler{Store: b.store, Policy: plan.Policy{Overcommit: true, ReplaceAfter: time.Minute}, Seals: seals(b), Log: slog.New(slog.DiscardHandler)}
	r.Cache = etcdtest.Cache(b, b.store, func(c *state.Cache) {
		r.Cache = c
		r.Watch()
	})
	return r
}

// seals returns the seals of all benches' home.
func seals(t testing.TB) *seal.Assignments {
	t.Helper()
	s, err := seal.NewAssignments([]byte("the key of the home"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (b *bench) put(ops ...state.Op) {
	b.Helper()
	etcdtest.Put(b, b.store, b.cache, ops...)
}

// instance returns a Multi-AZ or single instance as the API writes it.
func (b *bench) instance(multiAZ bool) spec.Instance {
	return spec.Instance{
		Common: spec.Common{
			Scope: spec.Scope{Account: account, Region: region}, Name: "orders", ResourceID: dbID, Engine: spec.Postgres, Major: 15,
			Version: "15.18", Port: 5432, Address: "127.9.0.1", MasterUser: "u", Verifier: "v", PasswordSerial: 1,
		},
		Class: "db.t3.micro", Storage: 20, MultiAZ: multiAZ,
	}
}

func (b *bench) want(i spec.Instance) {
	b.Helper()
	b.put(state.Put(state.Instance(account, region, i.Name), i))
}

// look returns what the reconciler sees at the time of the test.
func (b *bench) look() *world { return look(b.cache, b.now) }

// input returns what decides the first database's next step.
func (b *bench) input() plan.Input {
	w := b.look()
	return w.input(w.databases[0], plan.Policy{})
}

// step takes one step for every database, at the time of the test, and returns the first error.
func (b *bench) step() error {
	w := b.look()
	for _, d := range w.databases {
		if err := b.r.followLeader(b.Context(), w, d); err != nil {
			return err
		}
		if err := b.r.advance(b.Context(), b.look(), d); err != nil {
			return err
		}
	}
	return nil
}

// settle takes steps until nothing moves any more. Its hosts do at once what they are told.
func (b *bench) settle() {
	b.Helper()
	last := int64(0)
	for range 50 {
		if err := b.step(); err != nil {
			b.Fatal(err)
		}
		b.obey()
		now := b.revision()
		if now == last {
			return
		}
		last = now
	}
	b.Fatal("it does not come to rest")
}

func (b *bench) revision() int64 {
	b.Helper()
	answer, err := b.store.Client.Get(b.Context(), "x")
	if err != nil {
		b.Fatal(err)
	}
	return answer.Header.Revision
}

// obey does what agents and Patroni do: the first member leads, and the others are in sync.
func (b *bench) obey() {
	b.Helper()
	_, _, led := b.cache.Raw(patroni.LeaderKey(dbID))
	leader := view.Leader(b.cache, dbID)
	var standbys []string
	for _, a := range state.LoadAll[member.Assignment](b.cache, state.AssignRoot) {
		host, _, _ := strings.Cut(state.Tail(a.Key, state.AssignRoot), "/")
		if live, err := state.Load[member.Liveness](b.cache, state.Live(host)); err != nil || !live.Value.Alive {
			continue
		}
		r := member.Report{ID: a.Value.ID, Host: host, Generation: a.Value.Generation, Timeline: 2, At: b.now}
		if a.Value.Want == member.Running {
			if !led {
				leader, led = a.Value.Name, true
				b.same(patroni.LeaderKey(dbID), a.Value.PatroniName())
			}
			leads := a.Value.Name == leader
			if !leads && !a.Value.NoFailover && !a.Value.NoSync {
				standbys = append(standbys, a.Value.PatroniName())
			}
			r.Patroni, r.Postgres, r.Ready, r.InRecovery, r.Streaming, r.OwnerSerial = true, true, true, !leads, !leads, a.Value.Owner.Serial
			r.OwnKey = a.Value.OwnKey()
			b.same(patroni.MemberKey(dbID, a.Value.PatroniName()), fmt.Sprintf(`{"state":"running","tags":{"generation":%d}}`, a.Value.Generation))
		}
		r.Gone = a.Value.Want == member.Absent
		b.report(r)
	}
	if led {
		b.same(patroni.SyncKey(dbID), fmt.Sprintf(`{"leader":%q,"sync_standby":%q}`, leader, strings.Join(standbys, ",")))
	}
	b.lead(leader)
}

// lead does what an edge does: endpoints lead to the leader.
func (b *bench) lead(leader string) {
	b.Helper()
	b.same(state.Runs("edge"), "true")
	for _, key := range b.cache.Keys(state.WayRoot) {
		id, _, _ := strings.Cut(state.Tail(key, state.WayRoot), "/")
		if _, _, exists := b.cache.Raw(state.Route(id)); !exists {
			b.put(state.Delete(key))
		}
	}
	for _, r := range state.LoadAll[route.Route](b.cache, state.RouteRoot) {
		key := state.Way(r.Value.ID, "edge")
		way := route.Way{Route: r.Value.ID, Edge: "edge", Listen: r.Value.Listen, Targets: r.Value.Targets(route.View{Leader: leader})}
		if old, err := state.Load[route.Way](b.cache, key); err != nil || !same(old.Value, way) {
			b.put(state.Put(key, way))
		}
	}
}

// same writes a value unless it is already there.
func (b *bench) same(key, value string) {
	b.Helper()
	if old, _, _ := b.cache.Raw(key); string(old) != value {
		etcdtest.Put(b, b.store, b.cache, state.Delete(key))
		answer, err := b.store.Client.Put(b.Context(), key, value)
		if err == nil {
			err = b.cache.WaitRevision(b.Context(), answer.Header.Revision)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func (b *bench) report(r member.Report) {
	b.Helper()
	key := state.Report(r.Host, r.ID)
	if old, err := state.Load[member.Report](b.cache, key); err == nil {
		// What a test says of a member lasts.
		r.Problem, r.Detail, r.StorageBytes, r.At = old.Value.Problem, old.Value.Detail, old.Value.StorageBytes, old.Value.At
		if same(r, old.Value) {
			return
		}
	}
	b.put(state.Put(key, r))
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// problem sets what an agent says of a member from now on.
func (b *bench) problem(host, name string, p member.Problem, change func(*member.Report)) {
	b.Helper()
	key := state.Report(host, member.ID(dbID, name))
	r, err := state.Load[member.Report](b.cache, key)
	if err != nil {
		b.Fatal(err)
	}
	report := r.Value
	report.Problem = p
	if change != nil {
		change(&report)
	}
	b.put(state.Put(key, report))
}

func (b *bench) layout() plan.Layout {
	b.Helper()
	l, err := state.Load[plan.Layout](b.cache, state.Layout(dbID))
	if err != nil {
		b.Fatal(err)
	}
	return l.Value
}

func (b *bench) assigned(host, name string) state.Record[member.Assignment] {
	b.Helper()
	a, err := state.Load[member.Assignment](b.cache, state.Assign(host, member.ID(dbID, name)))
	if err != nil {
		b.Fatal(err)
	}
	return a
}

// events returns the ids of all events about instances and clusters, oldest first.
func (b *bench) events() []string {
	var ids []string
	for _, e := range state.LoadAll[event.Event](b.cache, state.EventRoot) {
		_, id, _ := strings.Cut(e.Value.ID, "-EVENT-")
		if strings.HasPrefix(e.Value.ID, "HOWDAH") {
			id = "H" + id
		}
		ids = append(ids, id)
	}
	return ids
}

// later moves the time of the test on.
func (b *bench) later(d time.Duration) { b.now = b.now.Add(d) }

// lose makes the judge say that a host is lost, or that it is back.
func (b *bench) lose(host string, lost bool) {
	b.Helper()
	b.put(state.Put(state.Live(host), member.Liveness{Alive: !lost, Since: b.now}))
}

func background(t *testing.T, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}
