package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/admin/client/testserver"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/fleet"
)

const (
	hosts     = 10
	instances = 100
	standbys  = 10
)

// watch counts what hosts are told.
type watch struct {
	mu   sync.Mutex
	told map[string]member.Assignment // by host and member
	news int
}

func (w *watch) assigned(host string, a member.Assignment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told[host+"/"+a.ID] = a
	w.news++
}

func (w *watch) since() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.news
	w.news = 0
	return n
}

// world is a control plane with a fleet, and instances that serve.
type world struct {
	*testing.T
	*testserver.Server
	fleet *fleet.Fleet
	watch *watch
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, Server: testserver.Start(t, testserver.Options{NoHosts: true, Detection: 3 * time.Second, ReplaceAfter: time.Hour}), watch: &watch{told: map[string]member.Assignment{}}}
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	w.fleet, err = fleet.Start(ctx, fleet.Config{
		Home: w.Home, Hosts: hosts, Zones: []string{"a", "b", "c"}, Beat: 100 * time.Millisecond, Assigned: w.watch.assigned,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); w.fleet.Wait() })
	w.eventuallyAlive(hosts)
	for n := range instances {
		var out rds.CreateDBInstanceResult
		w.call("CreateDBInstance", &rds.CreateDBInstanceMessage{
			DBInstanceIdentifier: new(name(n)), DBInstanceClass: new("db.t3.micro"), Engine: new("postgres"), MasterUsername: new("master"),
			MasterUserPassword: new("long-enough"), AllocatedStorage: new(int32(20)), MultiAZ: new(n < standbys),
		}, &out)
	}
	testkit.Eventually(t, 60*time.Second, func() error {
		for _, i := range w.all() {
			if *i.DBInstanceStatus != "available" {
				return fmt.Errorf("%s is %s", *i.DBInstanceIdentifier, *i.DBInstanceStatus)
			}
		}
		return nil
	})
	return w
}

func name(n int) string { return fmt.Sprintf("db-%03d", n) }

func (w *world) call(action string, in, out any) {
	w.Helper()
	if err := w.Client.RDS(w.Context(), action, in, out); err != nil {
		w.Fatalf("%s: %v", action, err)
	}
}

// all returns all instances, page by page.
func (w *world) all() []rds.DBInstance {
	w.Helper()
	var all []rds.DBInstance
	for in := (&rds.DescribeDBInstancesMessage{MaxRecords: new(int32(20))}); ; {
		var out rds.DBInstanceMessage
		w.call("DescribeDBInstances", in, &out)
		all = append(all, out.DBInstances...)
		if in.Marker = out.Marker; in.Marker == nil {
			return all
		}
	}
}

func (w *world) eventuallyAlive(n int) {
	w.Helper()
	testkit.Eventually(w, 20*time.Second, func() error {
		lives, err := state.List[member.Liveness](w.Context(), w.Store, state.LiveRoot)
		alive := len(slices.DeleteFunc(lives, func(l state.Record[member.Liveness]) bool { return !l.Value.Alive }))
		if err == nil && alive != n {
			err = fmt.Errorf("%d hosts are alive", alive)
		}
		return err
	})
}

// eventuallyQuiet waits until hosts are told nothing more.
func (w *world) eventuallyQuiet() {
	w.Helper()
	last := time.Now()
	testkit.Eventually(w, 20*time.Second, func() error {
		if w.watch.since() > 0 {
			last = time.Now()
		}
		if time.Since(last) < 1500*time.Millisecond {
			return errors.New("hosts are told something all the time")
		}
		return nil
	})
}

func TestAHundredInstancesOnTenHosts(t *testing.T) {
	w := newWorld(t)
	t.Run("all are listed once, in order", func(t *testing.T) {
		var names, want []string
		for _, i := range w.all() {
			names = append(names, *i.DBInstanceIdentifier)
		}
		for n := range instances {
			want = append(want, name(n))
		}
		if !slices.Equal(names, want) {
			t.Errorf("listed are %q", names)
		}
	})
	t.Run("they are spread, and each has ports of its own", w.spread)
	w.eventuallyQuiet()
	t.Run("a change reaches its host and no other", func(*testing.T) {
		w.call("ModifyDBInstance", &rds.ModifyDBInstanceMessage{DBInstanceIdentifier: new(name(50)), MasterUserPassword: new("another-one")}, &rds.ModifyDBInstanceResult{})
		testkit.Eventually(w, 10*time.Second, func() error {
			if w.number(func(a member.Assignment) bool { return a.Owner.Serial == 2 }) == 0 {
				return errors.New("nobody was told")
			}
			return nil
		})
		w.eventuallyQuiet()
		if n := w.number(func(a member.Assignment) bool { return a.Owner.Serial == 2 }); n != 1 {
			t.Errorf("%d members have the new password", n)
		}
		if n := w.number(func(a member.Assignment) bool { return a.Generation > 1 && a.Cluster.Sync == patroni.SyncOff }); n != 1 {
			t.Errorf("%d members without a standby were told anything", n)
		}
	})
	t.Run("a planned failover takes the standby", func(*testing.T) { w.failOver(name(0)) })
	t.Run("hosts that fall silent are lost, and no others", func(*testing.T) {
		w.fleet.Silence(true, fleet.Name(1), fleet.Name(4), fleet.Name(7))
		w.eventuallyAlive(hosts - 3)
		w.fleet.Silence(false, fleet.Name(1), fleet.Name(4), fleet.Name(7))
		w.eventuallyAlive(hosts)
	})
	t.Run("nothing is left of those that are deleted", func(*testing.T) { w.delete(20) })
}

// number counts the members whose newest assignment is such.
func (w *world) number(such func(member.Assignment) bool) int {
	w.watch.mu.Lock()
	defer w.watch.mu.Unlock()
	n := 0
	for _, a := range w.watch.told {
		if such(a) {
			n++
		}
	}
	return n
}

func (w *world) spread(t *testing.T) {
	layouts, err := state.List[plan.Layout](t.Context(), w.Store, state.LayoutRoot)
	if err != nil {
		t.Fatal(err)
	}
	members, ports := map[string]int{}, map[string]bool{}
	for _, l := range layouts {
		for _, m := range l.Value.Members {
			members[m.Host]++
			for _, port := range []int{m.Port, m.RESTPort} {
				place := fmt.Sprintf("%s:%d", m.Host, port)
				if ports[place] {
					t.Errorf("%s is given twice", place)
				}
				ports[place] = true
			}
		}
	}
	for n := range hosts {
		if got := members[fleet.Name(n)]; got < 5 || got > 20 {
			t.Errorf("%s has %d of %d members", fleet.Name(n), got, instances+standbys)
		}
	}
}

func (w *world) failOver(name string) {
	zone := func() string {
		var out rds.DBInstanceMessage
		w.call("DescribeDBInstances", &rds.DescribeDBInstancesMessage{DBInstanceIdentifier: &name}, &out)
		if *out.DBInstances[0].DBInstanceStatus != "available" || out.DBInstances[0].AvailabilityZone == nil {
			return ""
		}
		return *out.DBInstances[0].AvailabilityZone
	}
	before := zone()
	w.call("RebootDBInstance", &rds.RebootDBInstanceMessage{DBInstanceIdentifier: &name, ForceFailover: new(true)}, &rds.RebootDBInstanceResult{})
	testkit.Eventually(w, 20*time.Second, func() error {
		if now := zone(); now == "" || now == before {
			return fmt.Errorf("it is in %q", now)
		}
		return nil
	})
}

func (w *world) delete(n int) {
	for i := range n {
		w.call("DeleteDBInstance", &rds.DeleteDBInstanceMessage{DBInstanceIdentifier: new(name(i)), SkipFinalSnapshot: new(true)}, &rds.DeleteDBInstanceResult{})
	}
	testkit.Eventually(w, 60*time.Second, func() error {
		var errs []error
		for root, want := range map[string]int{
			state.InstanceRoot: instances - n, state.LayoutRoot: instances - n, state.AddressRoot: instances - n, state.RouteRoot: instances - n,
			state.WayRoot: instances - n, state.AssignRoot: instances - n, state.ReportRoot: instances - n,
		} {
			left, err := state.List[any](w.Context(), w.Store, root)
			if err == nil && len(left) != want {
				err = fmt.Errorf("%d keys below %s, want %d", len(left), root, want)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}
