package edge

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/seen"
	"howdah/internal/model/member"
	"howdah/internal/model/route"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
)

// switched waits for what the edge saw when a member took over.
func (w *world) switched(to string) seen.Switch {
	w.Helper()
	var s seen.Switch
	testkit.Eventually(w.T, soon, func() error {
		record, err := state.Get[seen.Switch](w.Context(), w.home.Store, state.Switch("edge", "db-1"))
		if err != nil {
			return err
		}
		if s = record.Value; s.To != to {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	return s
}

// Another leader key: the endpoint follows, the old primary's sessions are cut
// whatever endpoint they came through, and the times are kept.
func TestTheEndpointFollowsTheLeader(t *testing.T) {
	w := newWorld(t)
	w.putRoute(w.route("writer", route.Leader, w.listen))
	w.putRoute(w.route("readers", route.Readers, "127.201.0.2:5432"))
	w.elect("m1")
	w.run(nil)
	w.leadsTo("writer", "m1")
	first := w.switched("m1")
	if first.From != "" || first.Sessions != 0 {
		t.Errorf("the first leader: %+v", first)
	}
	w.elect("m2")
	w.leadsTo("writer", "m2")
	s := w.switched("m2")
	if s.From != "m1" || s.Database != "db-1" || s.Sessions != 6 {
		t.Errorf("switch %+v, want 3 sessions cut of each of two endpoints", s)
	}
	if s.Elected.After(s.Serving) || s.Serving.After(s.Switched) || s.Switched.After(s.FirstWrite) || s.FirstWrite.IsZero() {
		t.Errorf("times %+v", s)
	}
	for _, listen := range []string{w.listen, "127.201.0.2:5432"} {
		if line := fmt.Sprintf("cut %s %s", listen, w.servers["m1"].Addr); !w.paths.seen(line) {
			t.Errorf("no %q in %q", line, w.paths.lines())
		}
		if line := fmt.Sprintf("cut %s %s", listen, w.servers["m2"].Addr); w.paths.seen(line) {
			t.Errorf("sessions of the new primary were cut: %q", line)
		}
	}
}

// While nobody has the key, new connections are refused and open ones stay; the
// primary that wins it back loses no session.
func TestAPrimaryThatWinsItsKeyBack(t *testing.T) {
	w := newWorld(t)
	w.putRoute(w.route("writer", route.Leader, w.listen))
	w.elect("m1")
	w.run(nil)
	w.leadsTo("writer", "m1")
	w.elect("")
	w.leadsTo("writer")
	w.elect("m1")
	w.leadsTo("writer", "m1")
	w.passed()
	if slices.ContainsFunc(w.paths.lines(), func(l string) bool { return l[:3] == "cut" }) {
		t.Errorf("sessions were cut: %q", w.paths.lines())
	}
}

// A member that was elected and is still in recovery gets no client; once it takes
// writes it does.
func TestNobodyIsLedToAPrimaryInRecovery(t *testing.T) {
	w := newWorld(t)
	w.putRoute(w.route("writer", route.Leader, w.listen))
	w.elect("m1")
	w.run(nil)
	w.leadsTo("writer", "m1")
	w.elect("m3")
	w.leadsTo("writer")
	line := fmt.Sprintf("cut %s %s", w.listen, w.servers["m1"].Addr)
	testkit.Eventually(t, soon, func() error {
		if !w.paths.seen(line) {
			return errors.New("the old sessions wait for the new primary")
		}
		return nil
	})
	w.passed()
	if err := w.leadsNow("writer"); err != nil {
		t.Error(err)
	}
	w.servers["m3"].Exec("SELECT pg_promote()")
	w.leadsTo("writer", "m3")
	if s := w.switched("m3"); s.FirstWrite.IsZero() {
		t.Errorf("switch %+v", s)
	}
}

// The first write of a switch may hang for so long that the next switch is proved before.
func TestALaterSwitchStaysRecorded(t *testing.T) {
	h := hometest.New(t)
	e := &Edge{Config: Config{Store: h.Store, Name: "edge"}}
	began := time.Now().UTC()
	for _, c := range []struct {
		to   string
		at   time.Duration
		want string
	}{{"m2", time.Minute, "m2"}, {"m3", 0, "m2"}, {"m1", 2 * time.Minute, "m1"}} {
		if err := e.record(t.Context(), seen.Switch{Database: "db-1", To: c.to, Elected: began.Add(c.at)}); err != nil {
			t.Fatal(err)
		}
		kept, err := state.Get[seen.Switch](t.Context(), h.Store, state.Switch("edge", "db-1"))
		if err != nil || kept.Value.To != c.want {
			t.Errorf("after the switch to %s: %+v, %v, want that to %s", c.to, kept.Value, err, c.want)
		}
	}
}

// The leader of a database that follows another one is in recovery for ever: it is
// enough that it answers, and nothing is written through it.
func TestTheLeaderOfAFollower(t *testing.T) {
	w := newWorld(t)
	r := w.route("writer", route.Leader, w.listen)
	r.Follows = true
	w.putRoute(r)
	w.elect("m3")
	w.run(nil)
	w.leadsTo("writer", "m3")
	if s := w.switched("m3"); !s.FirstWrite.IsZero() {
		t.Errorf("a write through a replica: %+v", s)
	}
}

// One that is elected and dead keeps nobody from the next one.
func TestAnElectionIsGivenUpForTheNext(t *testing.T) {
	w := newWorld(t)
	w.putRoute(w.route("writer", route.Leader, w.listen))
	w.servers["m2"].Kill()
	w.elect("m2")
	w.run(nil)
	w.leadsTo("writer")
	w.elect("m1")
	w.leadsTo("writer", "m1")
	w.servers["m2"].Up()
	w.passed()
	if err := w.leadsNow("writer", "m1"); err != nil {
		t.Errorf("the election that was given up is settled: %v", err)
	}
}

// Readers: replicas that stream, on hosts that live; without any, the primary.
func TestReaders(t *testing.T) {
	w := newWorld(t)
	w.putRoute(w.route("writer", route.Leader, w.listen))
	w.putRoute(w.route("readers", route.Readers, "127.201.0.2:5432"))
	w.elect("m1")
	w.run(nil)
	w.leadsTo("readers", "m1")
	w.serves("m2", true, true)
	w.leadsTo("readers", "m2")
	w.serves("m3", true, true)
	w.leadsTo("readers", "m2", "m3")
	w.serves("m2", false, true)
	w.leadsTo("readers", "m3")
	w.passed()
	if slices.ContainsFunc(w.paths.lines(), func(l string) bool { return l[:3] == "cut" }) {
		t.Errorf("a reader that only lags lost its sessions: %q", w.paths.lines())
	}
	// A lost host answers nobody: its sessions are cut, but not those of the
	// primary, whose fate is an election's.
	w.serves("m3", true, false)
	w.leadsTo("readers", "m1")
	line := fmt.Sprintf("cut 127.201.0.2:5432 %s", w.servers["m3"].Addr)
	testkit.Eventually(t, soon, func() error {
		if !w.paths.seen(line) {
			return fmt.Errorf("no %q in %q", line, w.paths.lines())
		}
		return nil
	})
	w.put(state.Live("host-m1"), member.Liveness{Alive: false})
	w.passed()
	if slices.Contains(w.paths.lines(), fmt.Sprintf("cut %s %s", w.listen, w.servers["m1"].Addr)) {
		t.Error("sessions of the primary were cut without an election")
	}
}

// Endpoints come and go with their routes; a route that cannot be used harms no
// other one.
func TestRoutesComeAndGo(t *testing.T) {
	w := newWorld(t)
	w.putRoute(w.route("writer", route.Leader, w.listen))
	broken := w.route("broken", route.Leader, "nonsense")
	w.putRoute(broken)
	w.elect("m1")
	w.run(nil)
	w.leadsTo("writer", "m1")
	if _, ok := w.paths.leading("broken"); ok {
		t.Error("a route without an address has an endpoint")
	}
	broken.Listen = "127.201.0.3:5432"
	w.putRoute(broken)
	w.leadsTo("broken", "m1")
	if _, err := w.home.Store.Commit(t.Context(), state.Delete(state.Route("writer"))); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, soon, func() error {
		if _, ok := w.paths.leading("writer"); ok {
			return errors.New("the endpoint is still there")
		}
		return nil
	})
}

// An endpoint that gets another address is moved there at once, not only by the next
// full look; one that no pool of the edge has is left out, and harms no other one.
func TestAnEndpointGetsAnotherAddress(t *testing.T) {
	w := newWorld(t)
	w.putRoute(w.route("writer", route.Leader, w.listen))
	outside := w.route("outside", route.Leader, "192.0.2.1:5432")
	w.putRoute(outside)
	w.elect("m1")
	var mu sync.Mutex
	announced := []string{}
	w.run(func(c *Config) {
		c.Serves = func(a netip.Addr) bool { return a.IsLoopback() }
		c.Own = "host-m1"
		c.Announce = func(a netip.Addr) error {
			mu.Lock()
			defer mu.Unlock()
			announced = append(announced, a.String())
			return nil
		}
	})
	w.leadsTo("writer", "m1")
	if _, ok := w.paths.leading("outside"); ok {
		t.Error("an address of no pool has an endpoint")
	}
	w.putRoute(w.route("writer", route.Leader, "127.202.0.1:5432"))
	testkit.Eventually(t, soon, func() error {
		if got := w.paths.at("writer"); got != "127.202.0.1:5432" {
			return fmt.Errorf("at %s", got)
		}
		return nil
	})
	w.leadsTo("writer", "m1")
	testkit.Eventually(t, soon, func() error {
		way, err := state.Get[route.Way](t.Context(), w.home.Store, state.Way("writer", "edge"))
		if err != nil || way.Value.Listen != "127.202.0.1:5432" {
			return fmt.Errorf("told %+v, %w", way.Value, err)
		}
		return nil
	})
	mu.Lock()
	got := slices.Clone(announced)
	mu.Unlock()
	if want := []string{"127.201.0.1", "127.202.0.1"}; !slices.Equal(slices.Compact(got), want) {
		t.Errorf("announced %q, want %q", got, want)
	}
}

// Who may connect follows the route, and a failover leaves it as it is.
func TestWhoMayConnectFollowsTheRoute(t *testing.T) {
	w := newWorld(t)
	r := w.route("writer", route.Leader, w.listen)
	w.putRoute(r)
	w.elect("m1")
	w.run(nil)
	w.leadsTo("writer", "m1")
	allows := func(want string) {
		t.Helper()
		testkit.Eventually(t, soon, func() error {
			if got := w.paths.allows("writer"); got != want {
				return fmt.Errorf("allows %s, want %s", got, want)
			}
			return nil
		})
	}
	allows("[] true")
	r.Allow = []string{"10.0.0.0/8", "192.168.1.1/32"}
	w.putRoute(r)
	allows("[10.0.0.0/8 192.168.1.1/32] false")
	w.elect("m2")
	w.leadsTo("writer", "m2")
	allows("[10.0.0.0/8 192.168.1.1/32] false")
	r.Allow = []string{}
	w.putRoute(r)
	allows("[] false")
}

// Where edges share addresses, an endpoint is on the edge beside its primary, which
// announces it; while there is no primary it stays.
func TestAnOwnedEndpointMovesWithThePrimary(t *testing.T) {
	w := newWorld(t)
	w.putRoute(w.route("writer", route.Leader, w.listen))
	w.elect("m1")
	var mu sync.Mutex
	announced := 0
	w.run(func(c *Config) {
		c.Own = "host-m1"
		c.Announce = func(a netip.Addr) error {
			mu.Lock()
			defer mu.Unlock()
			announced++
			if a.String() != "127.201.0.1" {
				t.Errorf("announced %s", a)
			}
			return nil
		}
	})
	w.leadsTo("writer", "m1")
	w.elect("")
	w.leadsTo("writer")
	w.elect("m2")
	w.comesBackFromM2()
	mu.Lock()
	defer mu.Unlock()
	if announced < 2 {
		t.Errorf("announced %d times, want 2 at least", announced)
	}
}

// comesBackFromM2: the address goes while m2 leads, and comes back with m1.
func (w *world) comesBackFromM2() {
	w.Helper()
	testkit.Eventually(w.T, soon, func() error {
		if _, ok := w.paths.leading("writer"); ok {
			return errors.New("the address is still here")
		}
		return nil
	})
	w.elect("m1")
	w.leadsTo("writer", "m1")
	testkit.Eventually(w.T, soon, func() error {
		if s := w.switched("m1"); s.From != "m2" {
			return fmt.Errorf("switch %+v", s)
		}
		return nil
	})
}

// The edge of a host need not see a primary elsewhere to know that clients were led there:
// it keeps the switch when the address comes back.
func TestAnOwnedEndpointComesBackFromAPrimaryThatWasNotSeen(t *testing.T) {
	w := newWorld(t)
	w.putRoute(w.route("writer", route.Leader, w.listen))
	w.elect("m1")
	w.run(func(c *Config) { c.Own, c.Announce = "host-m1", func(netip.Addr) error { return nil } })
	w.leadsTo("writer", "m1")
	w.servers["m2"].Kill()
	w.elect("m2")
	w.comesBackFromM2()
}

// Where clients are led is written down after the fact, and the edge says who it is.
func TestWaysAreTold(t *testing.T) {
	w := newWorld(t)
	w.putRoute(w.route("writer", route.Leader, w.listen))
	w.elect("m1")
	stop := w.run(nil)
	way := func(want string) func() error {
		return func() error {
			got, err := state.Get[route.Way](t.Context(), w.home.Store, state.Way("writer", "edge"))
			if err != nil {
				return err
			}
			if text := fmt.Sprint(got.Value.Targets); text != want || got.Value.Listen != w.listen {
				return fmt.Errorf("%+v, want %s", got.Value, want)
			}
			return nil
		}
	}
	testkit.Eventually(t, soon, way("["+w.servers["m1"].Addr+"]"))
	w.elect("m2")
	testkit.Eventually(t, soon, way("["+w.servers["m2"].Addr+"]"))
	status, err := state.Get[seen.Status](t.Context(), w.home.Store, state.Edge("edge"))
	if err != nil || status.Value.Name != "edge" || status.Value.Info.Driver != "paths" || time.Since(status.Value.Started) > time.Minute {
		t.Errorf("%+v, %v", status.Value, err)
	}
	if _, err := state.Get[seen.Between](t.Context(), w.home.Store, state.Between("edge")); err != nil {
		t.Errorf("what members see: %v", err)
	}
	runs := func(want bool) func() error {
		return func() error {
			_, err := state.Get[bool](t.Context(), w.home.Store, state.Runs("edge"))
			if (err == nil) != want {
				return fmt.Errorf("runs: %w, want %v", err, want)
			}
			return nil
		}
	}
	testkit.Eventually(t, soon, runs(true))
	stop()
	// It may only be started again: nobody misses it for as long as its lease lasts.
	if err := runs(true)(); err != nil {
		t.Error(err)
	}
	testkit.Eventually(t, soon, runs(false))
	if _, err := state.Get[seen.Status](t.Context(), w.home.Store, state.Edge("edge")); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("an edge that was stopped is missed: %v", err)
	}
	if err := w.leadsNow("writer", "m2"); err != nil {
		t.Errorf("what the edge made went with it: %v", err)
	}
	// What it made works on, and members must let that in.
	if _, err := state.Get[seen.Between](t.Context(), w.home.Store, state.Between("edge")); err != nil {
		t.Errorf("what members see of a stopped edge: %v", err)
	}
	w.run(func(c *Config) { c.Info.ClientAddressVisible = true })
	testkit.Eventually(t, soon, func() error {
		if _, err := state.Get[seen.Between](t.Context(), w.home.Store, state.Between("edge")); !errors.Is(err, state.ErrNotFound) {
			return fmt.Errorf("an edge that hides nobody: %w", err)
		}
		return nil
	})
	w.leadsTo("writer", "m2")
	if _, err := w.home.Store.Commit(t.Context(), state.Delete(state.Route("writer"))); err != nil {
		t.Fatal(err)
	}
	w.run(nil)
	testkit.Eventually(t, soon, func() error {
		_, err := state.Get[route.Way](t.Context(), w.home.Store, state.Way("writer", "edge"))
		if !errors.Is(err, state.ErrNotFound) {
			return fmt.Errorf("the way of a route that is gone: %w", err)
		}
		return nil
	})
}

// An edge that runs says so again to a control plane that has started, whose etcd has
// started all leases anew.
func TestTellsAControlPlaneThatHasStarted(t *testing.T) {
	w := newWorld(t)
	w.run(nil)
	said := int64(0)
	says := func() error {
		r, err := state.Get[bool](t.Context(), w.home.Store, state.Runs("edge"))
		if err == nil && r.Revision <= said {
			err = fmt.Errorf("it said so at %d last, want later than %d", r.Revision, said)
		}
		said = max(said, r.Revision)
		return err
	}
	testkit.Eventually(t, soon, says)
	for range 3 {
		w.put(state.Control("s1"), map[string]string{"name": "s1"})
		testkit.Eventually(t, soon, says)
	}
}

// slow is a kernel that takes its time.
type slow struct{ *paths }

func (s slow) Sync(ctx context.Context, all []endpoint.Endpoint) ([]string, error) {
	select {
	case <-ctx.Done():
	case <-time.After(500 * time.Millisecond):
	}
	return s.paths.Sync(ctx, all)
}

// An edge says that it runs once the state says where it leads clients: what the state
// says of before is of another process, and perhaps of a machine that was off since.
func TestRunsOnlyWithItsWays(t *testing.T) {
	w := newWorld(t)
	w.putRoute(w.route("writer", route.Leader, w.listen))
	w.put(state.Way("writer", "edge"), route.Way{Route: "writer", Edge: "edge", Listen: w.listen, Targets: []string{"127.0.0.1:1"}})
	history := w.home.Store.Client.Watch(t.Context(), state.Root, clientv3.WithPrefix())
	w.run(func(c *Config) { c.Forwarder = slow{w.paths} })
	for told := false; ; {
		answer, open := <-history
		if !open {
			t.Fatal(answer.Err())
		}
		for _, e := range answer.Events {
			switch string(e.Kv.Key) {
			case state.Way("writer", "edge"):
				told = true
			case state.Runs("edge"):
				if !told {
					t.Error("it runs, and nobody knows where it leads clients")
				}
				return
			}
		}
	}
}
