package reconcile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/route"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

func TestADatabaseIsMadeAndThenLeftAlone(t *testing.T) {
	b := newBench(t)
	b.want(b.instance(true))
	b.settle()
	l := b.layout()
	if !l.Created || len(l.Members) != 2 || l.Members[0].Zone == l.Members[1].Zone {
		t.Fatalf("layout %+v", l)
	}
	for _, m := range l.Members {
		a := b.assigned(m.Host, m.Name).Value
		if a.Generation < 1 || a.Want != member.Running || a.Cluster.Sync != patroni.SyncSingle || a.Port != m.Port {
			t.Errorf("assignment %+v", a)
		}
	}
	if config, _, _ := b.cache.Raw(patroni.ConfigKey(dbID)); !strings.Contains(string(config), `"synchronous_mode":true`) {
		t.Errorf("config %s", config)
	}
	r, err := state.Load[route.Route](b.cache, state.Route(dbID))
	if err != nil || r.Value.Kind != route.Leader || r.Value.Listen != "127.9.0.1:5432" || len(r.Value.Members) != 2 {
		t.Errorf("route %+v, %v", r.Value, err)
	}
	if diff := cmp.Diff([]string{"0005"}, b.events()); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
	before := b.revision()
	if err := b.step(); err != nil || b.revision() != before {
		t.Errorf("at rest it writes: %v", err)
	}
}

// Every step is taken by a control plane that has just started. What the previous one had in memory
// is lost.
func TestACrashBetweenStepsIsOnlyAPause(t *testing.T) {
	b := newBench(t)
	story := func() {
		b.want(b.instance(true))
		b.settle()
		i := b.instance(true)
		i.Class, i.Restart, i.Change, i.ChangeEvents = "db.m5.large", 1, 1, []string{"0014"}
		b.want(i)
	}
	story()
	for range 60 {
		r := b.reconciler()
		w := look(r.Cache, b.now)
		if err := r.advance(t.Context(), w, w.databases[0]); err != nil {
			t.Fatal(err)
		}
		b.answerTasks()
		b.obey()
		b.later(time.Second)
		if b.layout().Changed == 1 {
			break
		}
	}
	if l := b.layout(); l.Changed != 1 || l.Next != 2 {
		t.Errorf("layout %+v", l)
	}
	if diff := cmp.Diff([]string{"0005", "0014"}, b.events()); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
}

// answerTasks does all tasks at once. A handover makes the other member the leader.
func (b *bench) answerTasks() {
	b.Helper()
	if err := b.cache.WaitRevision(b.Context(), b.revision()); err != nil {
		b.Fatal(err)
	}
	for _, task := range state.LoadAll[member.Task](b.cache, state.TaskRoot) {
		if _, _, done := b.cache.Raw(state.Result(task.Value.ID)); done {
			continue
		}
		if task.Value.Kind == member.Handover {
			for _, m := range b.layout().Members {
				if member.ID(dbID, m.Name) != task.Value.Member {
					b.same(patroni.LeaderKey(dbID), m.Name)
				}
			}
		}
		b.put(state.Put(state.Result(task.Value.ID), member.Result{ID: task.Value.ID, Member: task.Value.Member, Done: true}))
	}
}

func TestTwoDecidersGiveOneOutcome(t *testing.T) {
	b := newBench(t)
	b.want(b.instance(true))
	rs := []*Reconciler{b.r, b.reconciler()}
	conflicts := 0
	for round := range 40 {
		var worlds []*world
		// Both look first. Only then both act.
		for _, r := range rs {
			if err := r.Cache.WaitRevision(t.Context(), b.revision()); err != nil {
				t.Fatal(err)
			}
			worlds = append(worlds, look(r.Cache, b.now))
		}
		for _, i := range rand.Perm(len(rs)) {
			err := rs[i].advance(t.Context(), worlds[i], worlds[i].databases[0])
			if err != nil && !errors.Is(err, state.ErrConflict) {
				t.Fatalf("round %d: %v", round, err)
			}
			if err != nil {
				conflicts++
			}
		}
		b.answerTasks()
		b.obey()
	}
	l := b.layout()
	if !l.Created || len(l.Members) != 2 || l.Next != 2 {
		t.Errorf("layout %+v", l)
	}
	if conflicts == 0 {
		t.Error("they never met: this test proves nothing")
	}
	if diff := cmp.Diff([]string{"0005"}, b.events()); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
}

func TestADamagedAssignmentIsWrittenAgain(t *testing.T) {
	b := newBench(t)
	b.want(b.instance(true))
	b.settle()
	standby := b.layout().Members[1]
	key := state.Assign(standby.Host, member.ID(dbID, standby.Name))
	good := b.assigned(standby.Host, standby.Name).Value
	for name, damage := range map[string]func(){
		"it does not decode": func() { b.same(key, `{"id": "db-1.m2", "gener`) },
		"it is of another type": func() {
			b.same(key, `[]`)
		},
		"it is older than what the agent has": func() {
			old := good
			old.Generation = 0
			b.put(state.Put(key, old))
		},
		"it is gone": func() { b.put(state.Delete(key)) },
	} {
		t.Run(name, func(t *testing.T) {
			before, err := state.Load[member.Report](b.cache, state.Report(standby.Host, member.ID(dbID, standby.Name)))
			if err != nil {
				t.Fatal(err)
			}
			damage()
			if err := b.step(); err != nil {
				t.Fatal(err)
			}
			now := b.assigned(standby.Host, standby.Name).Value
			if now.Generation <= before.Value.Generation {
				t.Errorf("generation %d, which the agent refuses: it has %d", now.Generation, before.Value.Generation)
			}
			want := good
			want.Generation = now.Generation
			if diff := cmp.Diff(want.Unsealed(), now.Unsealed()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			b.settle()
			if again := b.assigned(standby.Host, standby.Name).Value; again.Generation != now.Generation {
				t.Errorf("it was written a second time: generation %d", again.Generation)
			}
		})
	}
}

func TestADamagedAssignmentHoldsNothingElseUp(t *testing.T) {
	b := newBench(t)
	b.want(b.instance(false))
	b.settle()
	m := b.layout().Members[0]
	b.same(state.Assign(m.Host, member.ID(dbID, m.Name)), "torn")
	i := b.instance(false)
	i.PasswordSerial, i.Change = 2, 1
	b.want(i)
	b.settle()
	if l := b.layout(); l.Changed != 1 {
		t.Errorf("layout %+v", l)
	}
}

func TestNothingIsLeftOfADeletedDatabase(t *testing.T) {
	b := newBench(t)
	b.want(b.instance(true))
	b.put(state.Put(state.Address("127.9.0.1"), dbID), state.Put(state.StorageKey(dbID), "sealed"), state.Put(state.Drill(dbID), "worked"))
	// Its backups outlive it.
	outlives := []string{state.Automated(dbID), state.Backup(dbID, "main", "B1"), state.BackupPart(dbID, "main"), state.Snapshot("1", "local", "s")}
	for _, key := range outlives {
		b.put(state.Put(key, map[string]string{}))
	}
	b.settle()
	b.later(time.Second)
	i := b.instance(true)
	i.Deleting = true
	b.want(i)
	b.settle()
	w := b.look()
	if err := b.r.sweep(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	var left []string
	answer, err := state.List[any](t.Context(), b.store, state.Root)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range answer {
		if n := slices.Index(outlives, r.Key); n >= 0 {
			outlives = slices.Delete(outlives, n, n+1)
			continue
		}
		kept := []string{state.HostRoot, state.LiveRoot, state.EventRoot, state.RunsRoot}
		if !slices.ContainsFunc(kept, func(root string) bool { return strings.HasPrefix(r.Key, root) }) {
			left = append(left, r.Key)
		}
	}
	scopes, err := state.List[any](t.Context(), b.store, patroni.Namespace)
	if err != nil || len(scopes) > 0 || len(left) > 0 || len(outlives) > 0 {
		t.Errorf("left are %q, %+v, and not %q, %v", left, scopes, outlives, err)
	}
	if diff := cmp.Diff([]string{"0005", "0003"}, b.events()); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
}

// What a deleted database leaves in repositories is known afterwards, also if nobody had noted it.
func TestPartsOfRepositoriesOutliveTheirDatabase(t *testing.T) {
	b := newBench(t)
	b.want(b.instance(false))
	b.put(state.Put(state.BackupPart(dbID, "far"), backup.Part{Repository: "far"}))
	b.settle()
	w := b.look()
	d := w.database(dbID)
	if ops := w.partsStay(d); len(ops) > 0 {
		t.Errorf("of one that archives nothing: %v", ops)
	}
	d.Want.Archive = &member.Archive{Repositories: []string{"main", "far"}}
	ops := w.partsStay(d)
	if len(ops) != 1 {
		t.Fatalf("%d changes: %v", len(ops), ops)
	}
	b.put(ops...)
	part, err := state.Get[backup.Part](t.Context(), b.store, state.BackupPart(dbID, "main"))
	if p := part.Value; err != nil || p.Repository != "main" || p.Operation != "" || p.About.Database != dbID || p.About.Type != event.Instance || p.About.Name != b.instance(false).Name || p.About.Scope != b.instance(false).Scope {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestTwoDatabasesOfOnePassGetPortsAndMemoryOfTheirOwn(t *testing.T) {
	b := newBench(t)
	for _, zone := range []string{"b", "c"} {
		b.put(state.Delete(state.Host(zone)))
	}
	b.r.Policy.Overcommit = false
	for n := range 3 {
		i := b.instance(false)
		i.Name, i.ResourceID, i.Address = fmt.Sprintf("orders%d", n), fmt.Sprintf("db-%d", n), fmt.Sprintf("127.9.0.%d", n+1)
		i.Class = "db.m5.large" // 8 GiB: all that the host has
		if n < 2 {
			i.Class = "db.t3.medium" // 4 GiB
		}
		b.want(i)
	}
	b.r.pass(t.Context(), atStart)
	ports := map[int]bool{}
	for _, l := range state.LoadAll[plan.Layout](b.cache, state.LayoutRoot) {
		for _, m := range l.Value.Members {
			if ports[m.Port] {
				t.Errorf("port %d is given twice", m.Port)
			}
			ports[m.Port] = true
		}
	}
	if len(ports) != 2 {
		t.Errorf("%d members were placed, and two fit", len(ports))
	}
}

func TestRunWakesUpForWhatChanges(t *testing.T) {
	b := newBench(t)
	background(t, b.r.Run)
	b.want(b.instance(false))
	testkit.Eventually(t, 5*time.Second, func() error {
		_, err := state.Load[plan.Layout](b.cache, state.Layout(dbID))
		return err
	})
}

func TestDatabaseOf(t *testing.T) {
	for key, want := range map[string]string{
		patroni.LeaderKey("db-1"):             "db-1",
		patroni.MemberKey("db-1", "m1"):       "db-1",
		"/service/db-1/status":                "none",
		state.Instance("1", "r", "x"):         "",
		state.Cluster("1", "r", "x"):          "",
		state.Live("a"):                       "",
		state.Drain("a"):                      "",
		state.SecurityGroup("1", "r", "sg-1"): "",
		state.Between("e"):                    "",
		state.Report("a", "db-1.m1"):          "db-1",
		state.Result("db-1/reboot/1#1@m1"):    "db-1",
		state.Layout("db-1"):                  "db-1",
		state.Event("1", "r", "x"):            "none",
		state.Host("a"):                       "none",
		state.Assign("a", "db-1.m1"):          "db-1",
		state.Incident("db-1", "1"):           "none",
		state.Task("a", "db-1/reboot/1#1@m"):  "none",
	} {
		id, ok := databaseOf(key)
		if !ok {
			id = "none"
		}
		if id != want {
			t.Errorf("%s: %q, want %q", key, id, want)
		}
	}
}
