package reconcile

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/control/plan"
	"howdah/internal/edge/seen"
	"howdah/internal/failover/fence"
	"howdah/internal/failover/postmortem"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// takeOver makes another member the leader, as Patroni does, and lets reconcile see it.
func (b *bench) takeOver(name string) {
	b.Helper()
	b.same(patroni.LeaderKey(dbID), name)
	b.obey()
	if err := b.step(); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) records() []postmortem.Record {
	var all []postmortem.Record
	for _, r := range state.LoadAll[postmortem.Record](b.cache, state.FailoverRoot+dbID+"/") {
		all = append(all, r.Value)
	}
	return all
}

// gather takes a step, and waits until what it wrote can be read.
func (b *bench) gather() {
	b.Helper()
	if err := b.step(); err != nil {
		b.Fatal(err)
	}
	if err := b.cache.WaitRevision(b.Context(), b.revision()); err != nil {
		b.Fatal(err)
	}
}

func TestAFailoverIsToldOnceAndItsRecordGrows(t *testing.T) {
	b := made(t, true)
	b.gather()
	b.later(time.Minute)
	b.takeOver("m2")
	if diff := cmp.Diff([]string{"0013", "0049"}, b.told()); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
	all := b.records()
	if len(all) != 1 || all[0].From != "m1" || all[0].FromHost != "a" || all[0].To != "m2" || all[0].ToHost != "b" || all[0].Discarded != -1 {
		t.Fatalf("records %+v", all)
	}
	revoked := b.now.Add(-time.Second).UTC()
	b.put(state.Put(state.Incident(dbID, "1"), fence.Incident{
		Kind: fence.Failover, Member: "m1", Host: "a", Cause: "host a was lost", Detected: b.now.Add(-2 * time.Second).UTC(), Revoked: revoked,
		Proof: fence.Proof{Method: "quorum"},
	}), state.Put(state.Switch("edge", dbID), seen.Switch{Database: dbID, From: "m1", To: "m2", Elected: b.now, FirstWrite: b.now, Sessions: 3}))
	b.gather()
	if r := b.records()[0]; r.Cause != "host a was lost" || r.Sessions != 3 {
		t.Errorf("record %+v", r)
	}
	before := b.revision()
	b.gather()
	if b.revision() != before {
		t.Error("a record that did not change is written again")
	}
}

// Its host comes back after hours, when another failover has already happened.
func TestARecordLearnsLateWhatWasDiscarded(t *testing.T) {
	b := made(t, true)
	b.gather()
	b.takeOver("m2")
	revoked := b.now.Add(-time.Second).UTC()
	b.put(state.Put(state.Incident(dbID, "1"), fence.Incident{
		Kind: fence.Failover, Member: "m1", Host: "a", Cause: "host a was lost", Detected: b.now.Add(-2 * time.Second).UTC(), Revoked: revoked,
	}))
	b.same(patroni.HistoryKey(dbID), `[[1,83886080,"x"]]`)
	b.gather()
	b.later(3 * time.Hour)
	b.takeOver("m1")
	b.put(state.Put(state.Incident(dbID, "2"), fence.Incident{Kind: fence.WALEnd, Member: "m1", Host: "a", Detected: b.now.UTC(), Revoked: revoked, OldEnd: 0x5000100, Timeline: 1}))
	b.gather()
	all := b.records()
	if len(all) != 2 || all[0].OldEnd != 0x5000100 || all[0].Discarded != 0x100 || all[1].OldEnd != 0 {
		t.Errorf("records %+v", all)
	}
}

func TestAHangIsToldAndForgotten(t *testing.T) {
	b := made(t, false)
	b.put(state.Put(state.Incident(dbID, "1"), fence.Incident{Kind: fence.Hang, Member: "m1", Cause: "it hung", Detected: b.now}),
		state.Put(state.Incident(dbID, "2"), fence.Incident{Kind: fence.Failover, Member: "m1", Detected: b.now.Add(-25 * time.Hour)}),
		state.Put(state.Incident(dbID, "3"), fence.Incident{Kind: fence.Failover, Member: "m1", Detected: b.now.Add(-23 * time.Hour)}),
		state.Put(state.Incident("db-gone", "4"), fence.Incident{Kind: fence.Failover, Detected: b.now}))
	for range 2 {
		if err := b.r.hangs(t.Context(), b.look()); err != nil {
			t.Fatal(err)
		}
		if err := b.cache.WaitRevision(t.Context(), b.revision()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"H005"}, b.told()); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
	if left := b.cache.Keys(state.IncidentRoot); !slices.Equal(left, []string{state.Incident(dbID, "3")}) {
		t.Errorf("left are %q", left)
	}
}

func TestRoutesOfACluster(t *testing.T) {
	b := newBench(t)
	scope := spec.Scope{Account: account, Region: region}
	b.put(state.Put(state.Cluster(account, region, "c"), spec.Cluster{
		Common:        spec.Common{Scope: scope, Name: "c", ResourceID: "cl-1", Engine: spec.Aurora, Major: 15, Port: 5432, Address: "127.9.0.1", MasterUser: "u"},
		ReaderAddress: "127.9.0.2",
	}))
	for i, name := range []string{"w", "r"} {
		b.put(state.Put(state.Instance(account, region, name), spec.Instance{
			Common: spec.Common{Scope: scope, Name: name, ResourceID: "db-" + name, Created: b.now.Add(time.Duration(i)), Engine: spec.Aurora, Major: 15, Address: "127.9.1." + string(rune('1'+i))},
			Class:  "db.t3.micro", Cluster: "cl-1",
		}))
	}
	b.put(state.Put(state.Endpoint(account, region, "e"), spec.Endpoint{Scope: scope, Name: "e", ResourceID: "ep-1", Cluster: "cl-1", Type: "READER", Address: "127.9.2.1"}))
	w := b.look()
	d := w.database("cl-1")
	layout := plan.Layout{ID: "cl-1", Members: []plan.Placed{
		{Name: "m1", Seat: "db-w", Address: "10.0.0.1", Port: 1}, {Name: "m2", Seat: "db-r", Address: "10.0.0.2", Port: 1}, {Name: "m3", Leaving: true},
	}}
	got := map[string]string{}
	for _, r := range w.basis(d).Routes(layout) {
		got[r.ID] = string(r.Kind) + " " + r.Listen
		if len(r.Members) != 2 {
			t.Errorf("%s leads to %+v", r.ID, r.Members)
		}
	}
	want := map[string]string{
		"cl-1-writer": "leader 127.9.0.1:5432", "cl-1-reader": "readers 127.9.0.2:5432",
		"db-w": "seats 127.9.1.1:5432", "db-r": "seats 127.9.1.2:5432", "ep-1": "seats 127.9.2.1:5432",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// Clients may verify the address that they came to, whichever it is.
	names := []string{"127.9.0.1", "127.9.0.2", "127.9.1.1", "127.9.1.2", "127.9.2.1"}
	if diff := cmp.Diff(names, d.Want.ServerIPs); diff != "" {
		t.Errorf("addresses of the servers' certificates (-want +got)\n%s", diff)
	}
}
