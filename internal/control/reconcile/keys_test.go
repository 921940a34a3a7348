package reconcile

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/authority"
	"howdah/internal/identity/certs"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// upgrade makes all hosts, and the control plane, be of the release that knows members' keys.
func (b *bench) upgrade() {
	b.Helper()
	ca, err := certs.New("members")
	if err != nil {
		b.Fatal(err)
	}
	b.put(state.Put(state.MembersAuthority, authority.Record{ID: "members", Cert: ca.CertPEM, Created: b.now}),
		state.Put(state.Control("s1"), hostapi.ControlMember{Name: "s1", OwnNames: true, Gate: "127.0.0.1:2378"}))
	for _, zone := range []string{"a", "b", "c"} {
		h, err := state.Get[member.Host](b.Context(), b.store, state.Host(zone))
		if err != nil {
			b.Fatal(err)
		}
		h.Value.OwnKeys = true
		b.put(state.Put(state.Host(zone), h.Value))
	}
}

// opens compares all members with each other: which member each has to copy, and whether that one
// lets it in, both as it runs and as it was told.
func (b *bench) opens(done map[string]member.Assignment, upstream map[string]string) {
	b.Helper()
	for id, m := range done {
		for source := m.Scope; source != ""; source = upstream[source] {
			for other, o := range done {
				if o.Scope != source || other == id {
					continue
				}
				lets := o.Keys == nil || !o.Keys.Only
				if m.OwnKey() {
					lets = o.Keys != nil && slices.Contains(o.Keys.Admits, m.Scope)
				}
				if !lets {
					b.Errorf("%s does not let %s in: %+v, %+v", other, id, o.Keys, m.Keys)
				}
			}
		}
	}
}

// A home of an older release, with a chain of read replicas, is moved over. At no moment is a
// member shut out that another one has to let in, in whatever order hosts do what they are told. In
// the end hosts' keys open nothing.
func TestAHomeIsMovedOverToMembersKeys(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { movedOver(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

func movedOver(t *testing.T, order *rand.Rand) {
	b := newBench(t)
	b.want(b.instance(true))
	upstream := map[string]string{}
	for n, id := range []string{"db-2", "db-3"} {
		i := b.instance(n == 0)
		i.Name, i.ResourceID, i.Address = "read-"+id, id, fmt.Sprintf("127.9.0.%d", n+2)
		i.Source = []string{dbID, "db-2"}[n]
		upstream[id] = i.Source
		b.want(i)
	}
	serve := func() {
		b.obeyAll(func(string) bool { return true })
		if err := b.step(); err != nil {
			b.Fatal(err)
		}
	}
	for range 12 {
		serve()
	}
	done := b.assignments()
	for id, a := range done {
		if a.Keys != nil {
			t.Fatalf("%s has keys in a home of an older release: %+v", id, a.Keys)
		}
	}
	if len(done) != 5 {
		t.Fatalf("%d members", len(done))
	}
	b.upgrade()
	for range 80 {
		b.now = b.now.Add(time.Second)
		if err := b.step(); err != nil {
			b.Fatal(err)
		}
		all := b.assignments()
		for _, id := range slices.Sorted(maps.Keys(all)) { // some do what they are told
			if order.IntN(4) == 0 {
				done[id] = all[id]
			}
		}
		b.opens(done, upstream)
		b.obeyAll(func(id string) bool { return done[id].Generation == b.assignments()[id].Generation })
	}
	for id, a := range done {
		if a.Keys == nil || !a.Keys.Own || !a.Keys.Only {
			t.Errorf("%s in the end: %+v", id, a.Keys)
		}
	}
	if want := []string{dbID, "db-2", "db-3"}; !slices.Equal(done["db-1.m1"].Keys.Admits, want) {
		t.Errorf("the first lets in %v, want %v", done["db-1.m1"].Keys.Admits, want)
	}
	if want := []string{"db-3"}; !slices.Equal(done["db-3.m1"].Keys.Admits, want) {
		t.Errorf("the last lets in %v, want %v", done["db-3.m1"].Keys.Admits, want)
	}
}

// assignments returns the last assignments of all members, by id.
func (b *bench) assignments() map[string]member.Assignment {
	all := map[string]member.Assignment{}
	for _, a := range state.LoadAll[member.Assignment](b.cache, state.AssignRoot) {
		all[a.Value.ID] = a.Value
	}
	return all
}

// obeyAll is obey for several databases. The first member of each leads it. Members for which does
// returns true do what they were told. The others go on as they are.
func (b *bench) obeyAll(does func(id string) bool) {
	b.Helper()
	for _, a := range state.LoadAll[member.Assignment](b.cache, state.AssignRoot) {
		id, name := a.Value.Scope, a.Value.Name
		if !does(a.Value.ID) {
			continue
		}
		leads := name == "m1"
		if leads {
			b.same(patroni.LeaderKey(id), a.Value.PatroniName())
			b.same(patroni.SyncKey(id), fmt.Sprintf(`{"leader":%q,"sync_standby":%q}`, a.Value.PatroniName(), patroni.OwnName(id, "m2")))
		}
		follows := a.Value.Cluster.Upstream != nil
		b.same(patroni.MemberKey(id, a.Value.PatroniName()), fmt.Sprintf(`{"state":"running","role":"replica","tags":{"generation":%d}}`, a.Value.Generation))
		host := b.hostOf(a.Value.ID)
		b.report(member.Report{
			ID: a.Value.ID, Host: host, Generation: a.Value.Generation, Timeline: 2, At: b.now, Patroni: true, Postgres: true, Ready: true,
			InRecovery: !leads || follows, Streaming: !leads || follows, OwnerSerial: a.Value.Owner.Serial, OwnKey: a.Value.OwnKey(),
		})
	}
	b.lead("m1")
}

func (b *bench) hostOf(id string) string {
	for _, l := range state.LoadAll[plan.Layout](b.cache, state.LayoutRoot) {
		for _, m := range l.Value.Members {
			if member.ID(l.Value.ID, m.Name) == id {
				return m.Host
			}
		}
	}
	return ""
}
