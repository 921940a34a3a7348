package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/control/plan"
	"howdah/internal/failover/fence"
	"howdah/internal/model/event"
	"howdah/internal/model/extension"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/view"
)

// told returns the events since the database was made, and empties the list.
func (b *bench) told() []string {
	b.Helper()
	all := b.events()
	b.put(state.DeletePrefix(state.EventRoot))
	return all
}

func (b *bench) expect(what string, want ...string) {
	b.Helper()
	if err := b.step(); err != nil {
		b.Fatalf("%s: %v", what, err)
	}
	// A second look says nothing new, also that of a control plane that has just started.
	r := b.reconciler()
	w := look(r.Cache, b.now)
	if err := r.advance(b.Context(), w, w.databases[0]); err != nil {
		b.Fatalf("%s: %v", what, err)
	}
	if err := b.cache.WaitRevision(b.Context(), b.revision()); err != nil {
		b.Fatal(err)
	}
	if diff := cmp.Diff(want, b.told()); diff != "" {
		b.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

func made(t *testing.T, multiAZ bool) *bench {
	t.Helper()
	b := newBench(t)
	b.want(b.instance(multiAZ))
	b.settle()
	b.told()
	return b
}

func TestEventsOfAStandbyThatIsNotInSync(t *testing.T) {
	b := made(t, true)
	const alone, together = `{"leader":"m1","sync_standby":""}`, `{"leader":"m1","sync_standby":"m2"}`
	b.same(patroni.SyncKey(dbID), alone)
	b.expect("just now")
	b.later(9 * time.Second)
	b.expect("for nine seconds")
	b.same(patroni.SyncKey(dbID), together)
	b.expect("again before anyone was told")
	b.same(patroni.SyncKey(dbID), alone)
	b.later(9 * time.Second)
	b.expect("alone again")
	b.later(10 * time.Second)
	b.expect("for ten seconds", "H001")
	b.later(time.Minute)
	b.expect("for more than a minute")
	b.lose("a", true)
	b.expect("the primary is lost: nothing is known")
	b.lose("a", false)
	b.same(patroni.SyncKey(dbID), together)
	b.expect("in sync again", "H002")
	b.later(time.Minute)
	b.expect("still in sync")
}

func TestEventsOfAStandbyThatIsNotWantedAnyMore(t *testing.T) {
	b := made(t, true)
	b.same(patroni.SyncKey(dbID), `{"leader":"m1","sync_standby":""}`)
	b.expect("just now")
	b.later(11 * time.Second)
	b.expect("alone", "H001")
	b.want(b.instance(false))
	b.settle()
	b.told()
	b.expect("single")
	n, err := state.Load[Notice](b.cache, state.Notice(dbID))
	if err != nil || n.Value.AloneTold {
		t.Errorf("notice %+v, %v", n.Value, err)
	}
}

func TestEventsOfAPromotionThatWaits(t *testing.T) {
	b := made(t, true)
	plea := fence.Plea{Database: dbID, Member: "m2", Why: "m1 may still acknowledge writes that m3 confirms"}
	b.put(state.Put(state.Plea(dbID), plea))
	b.expect("just now")
	b.later(9 * time.Second)
	b.expect("for nine seconds")
	b.put(state.Delete(state.Plea(dbID)))
	b.expect("over before anyone was told")
	waits := fence.Case{ID: "c", Phase: fence.Cutting, Waiting: "host c does not answer"}
	b.put(state.Put(state.Fence(dbID, "c"), waits))
	b.expect("a case without a proof")
	b.later(10 * time.Second)
	b.expect("for ten seconds", "H012")
	b.put(state.Put(state.Plea(dbID), plea))
	b.later(time.Minute)
	b.expect("for another reason too")
	b.put(state.Delete(state.Plea(dbID)), state.Delete(state.Fence(dbID, "c")))
	b.expect("over")
}

func TestEventsOfProblemsAreToldOnce(t *testing.T) {
	b := made(t, true)
	const gib = int64(1) << 30
	low := func(r *member.Report) { r.StorageBytes = 19 * gib }
	b.problem("a", "m1", member.StorageLow, low)
	b.expect("low", "0089")
	b.problem("a", "m1", member.StartFails, nil)
	b.expect("hidden by another problem")
	b.problem("a", "m1", member.StorageLow, low)
	b.expect("still low")
	b.problem("a", "m1", member.StorageFull, nil)
	b.expect("full", "0007")
	b.problem("a", "m1", member.None, nil)
	b.expect("over")
	b.problem("a", "m1", member.StorageFull, nil)
	b.expect("full again", "0007")
	b.problem("b", "m2", member.StorageFull, nil)
	b.expect("the standby's storage is the primary's")
	b.problem("b", "m2", member.DiskFull, nil)
	b.expect("the disk of the standby's host", "H007")
	b.problem("a", "m1", member.SlotLost, func(r *member.Report) { r.Detail = "follow_x" })
	b.expect("a slot", "H003")
	b.problem("a", "m1", member.Hangs, func(r *member.Report) { r.Detail = "a small write has waited 8s for its disk" })
	b.expect("a disk that hangs", "H011")
	b.problem("a", "m1", member.Hangs, func(r *member.Report) { r.Detail = "a small write has waited 9s for its disk" })
	b.expect("it hangs on")
	b.lose("b", true)
	b.expect("a host is lost: nothing is known of it")
	b.lose("b", false)
	b.expect("it is back as it was")
}

func TestTheEventOfLowStorageSaysHowMuch(t *testing.T) {
	b := made(t, false)
	b.problem("a", "m1", member.StorageLow, func(r *member.Report) { r.StorageBytes = 19 << 30 })
	if err := b.step(); err != nil {
		t.Fatal(err)
	}
	for _, e := range state.LoadAll[event.Event](b.cache, state.EventRoot) {
		for _, part := range []string{"orders is low at 5.00%", "Provisioned Storage: 20.00 GB", "Free Storage: 1.00 GB"} {
			if !strings.Contains(e.Value.Message, part) {
				t.Errorf("%q has no %q", e.Value.Message, part)
			}
		}
	}
	if n := len(b.events()); n != 1 {
		t.Errorf("%d events", n)
	}
}

func TestAFullDiskMovesThePrimary(t *testing.T) {
	b := made(t, true)
	h, err := state.Load[member.Host](b.cache, state.Host("c"))
	if err != nil {
		t.Fatal(err)
	}
	full := h.Value
	full.DiskFree = 1 << 30 / 2 // of 100 GiB
	b.put(state.Put(state.Host("c"), full))
	for _, host := range b.look().hosts {
		if host.DiskFull != (host.Name == "c") {
			t.Errorf("host %s is full: %v", host.Name, host.DiskFull)
		}
	}
	b.problem("a", "m1", member.DiskFull, nil)
	b.expect("the disk of the primary's host", "H007")
	for range 10 {
		if err := b.step(); err != nil {
			t.Fatal(err)
		}
		b.obey()
		b.answerTasks()
		b.later(time.Second)
	}
	l := b.layout()
	if l.Fled != 1 || view.Leader(b.cache, dbID) != "m2" || l.Asked == nil || l.Asked.Member != "m1" {
		t.Errorf("layout %+v, led by %s", l, view.Leader(b.cache, dbID))
	}
}

// Packages are upgraded host by host: one event says that it began, and another problem is told beside it.
func TestEventsOfExtensionsThatDiffer(t *testing.T) {
	b := made(t, true)
	has := func(host, version string) {
		t.Helper()
		h, err := state.Load[member.Host](b.cache, state.Host(host))
		if err != nil {
			t.Fatal(err)
		}
		h.Value.Extensions = map[int]extension.Installed{15: {"citext": "1.6"}}
		if version != "" {
			h.Value.Extensions[15]["postgis"] = version
		}
		b.put(state.Put(state.Host(host), h.Value))
	}
	has("a", "3.3.2")
	has("b", "3.3.2")
	b.expect("alike")
	has("a", "3.5.0")
	b.expect("one is newer", "H023")
	b.problem("a", "m1", member.StorageFull, nil)
	b.expect("another problem", "0007")
	has("b", "")
	b.expect("one has none", "H023")
	has("b", "3.4.0")
	b.expect("versions differ again", "H023")
	has("b", "3.5.0")
	b.expect("alike again")
	has("b", "3.3.2")
	b.expect("a package went back", "H023")
}

// What a promoted replica disabled is told once, whoever is the primary afterwards.
func TestEventsOfSubscriptionsThatWereDisabled(t *testing.T) {
	b := made(t, true)
	disabled := func(host, name string, n int) {
		b.problem(host, name, member.None, func(r *member.Report) { r.DisabledSubscriptions = n })
	}
	b.expect("none")
	disabled("b", "m2", 3)
	b.expect("what a standby says does not count")
	disabled("a", "m1", 2)
	b.expect("two", "H024")
	disabled("a", "m1", 0)
	b.expect("an agent that has just started")
	disabled("a", "m1", 2)
	b.expect("the same two")
}

func TestADamagedNoticeIsBegunAnew(t *testing.T) {
	b := made(t, false)
	b.same(state.Notice(dbID), "{")
	b.problem("a", "m1", member.StorageFull, nil)
	b.expect("full", "0007")
}

func TestUrgencyCoversAllThatIsTold(t *testing.T) {
	for i, p := range told {
		if urgency(p) != i {
			t.Errorf("%s: %d", p, urgency(p))
		}
	}
	if urgency(member.None) <= urgency(member.StorageLow) || urgency(member.PortTaken) >= 0 {
		t.Error("none is the least urgent, and others hide all")
	}
	for _, p := range []member.Problem{member.NotReplicating, member.NoModule} {
		if urgency(p) != urgency(member.None) {
			t.Errorf("%s hides others: %d", p, urgency(p))
		}
	}
	if problemKey(member.StorageFull, plan.Placed{Name: "m1", Seat: "i1"}) == problemKey(member.StorageFull, plan.Placed{Name: "m2", Seat: "i2"}) {
		t.Error("two seats share a key")
	}
}

// An event says which slots of users a failover lost: those that the new primary has no copies of.
func TestSlotsThatAFailoverLost(t *testing.T) {
	b := made(t, true)
	slots := func(host, name string, slots ...string) {
		t.Helper()
		b.report(member.Report{
			ID: member.ID(dbID, name), Host: host, Generation: b.assigned(host, name).Value.Generation, Timeline: 2, At: b.now,
			Patroni: true, Postgres: true, Ready: true, OwnerSerial: b.assigned(host, name).Value.Owner.Serial, Slots: strings.Join(slots, " "),
		})
		b.gather()
	}
	messages := func() []string { return b.messages("-022") }
	b.gather()
	slots("a", "m1", "debezium", "moved", "survives")
	slots("a", "m1", "debezium", "survives")
	if got := messages(); len(got) != 0 {
		t.Fatalf("without a failover: %q", got)
	}
	// What the old primary says as a standby does not matter.
	b.same(patroni.LeaderKey(dbID), "m2")
	b.obey()
	slots("b", "m2", "survives")
	want := []string{"orders: Logical replication slots were lost in the failover: debezium. Make them anew, and copy what their readers may have missed."}
	if diff := cmp.Diff(want, messages()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	slots("b", "m2")
	if got := messages(); len(got) != 1 {
		t.Errorf("who drops a slot is told: %q", got)
	}
	if n, err := state.Load[Notice](b.cache, state.Notice(dbID)); err != nil || n.Value.Slots.Names != nil {
		t.Errorf("kept %+v, %v", n.Value.Slots, err)
	}
}
