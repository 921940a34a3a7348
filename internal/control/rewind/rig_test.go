package rewind

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	step "howdah/internal/control/operation"
	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/patroni"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/etcdtest"
)

var shop = spec.Scope{Account: "123456789012", Region: "us-east-1"}

const (
	oldID, newID = "db-OLD", "db-NEW"
	opID         = "rewind-orders-1"
	publicIP     = "127.31.8.1"
	hiddenIP     = "127.31.8.9"
)

var until = time.Date(2026, 11, 24, 11, 59, 0, 0, time.UTC)

// site is a home's state with a database that goes back. What hosts do is played.
type site struct {
	t      *testing.T
	store  *state.Store
	cache  *state.Cache
	runner *step.Runner
}

// newSite has the operation begun as the API begins it.
func newSite(t *testing.T, change func(old, inside *spec.Instance)) *site {
	t.Helper()
	s := &site{t: t, store: etcdtest.Store(t)}
	s.cache = etcdtest.Cache(t, s.store, func(c *state.Cache) {
		log := slog.New(slog.DiscardHandler)
		s.runner = step.New(step.Config{
			Store: s.store, Cache: c, Name: "s1", Log: log,
			Definitions: []*step.Definition{Definition(Config{Store: s.store, Cache: c, Look: time.Millisecond, Log: log})},
		})
	})
	old := spec.Instance{Class: "db.t3.micro", Storage: 20, Common: spec.Common{
		Scope: shop, Name: "orders", ResourceID: oldID, Address: publicIP, Port: 5432, Generation: 7, Change: 3, Reboot: 2, Tags: []spec.Tag{{Key: "team", Value: "blue"}},
		MasterUser: "boss", Verifier: "SCRAM-SHA-256$now", PasswordSerial: 4, BackupRetention: 7, StorageKey: "key-1", DeletionProtection: true,
	}}
	inside := old
	inside.Name, inside.ResourceID, inside.Address, inside.Expects, inside.MadeBy = "orders-rewind-abc", newID, hiddenIP, publicIP, opID
	inside.Origin = &spec.Origin{Database: oldID, Repository: "main", Label: "20261124-000000F", Until: until, From: "orders"}
	inside.Generation, inside.Change, inside.Reboot, inside.DeletionProtection = 1, 0, 0, false
	if change != nil {
		change(&old, &inside)
	}
	about := operation.About{Scope: shop, Type: event.Instance, Name: "orders", Database: oldID}
	r, err := operation.New(opID, backup.Rewind, about, backup.RewindArgs{
		Snapshot: s.shotKey(), Key: keyOf(inside), Database: newID, To: "2026-11-24 11:59:00Z",
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.put(state.Put(keyOf(old), old), state.Put(keyOf(inside), inside), state.Put(state.Address(publicIP), oldID), state.Put(state.Address(hiddenIP), newID),
		state.Put(state.Route(oldID), route.Route{ID: oldID, Database: oldID, Listen: publicIP + ":5432"}),
		state.Put(state.Automated(oldID), backup.Automated{Scope: shop, Name: "orders", Database: oldID, Repository: "main", Second: "far", SecondRegion: "eu-west-1", SecondKey: "key-2", Retention: 7}),
		state.Put(s.shotKey(), backup.Snapshot{Scope: shop, Name: "kept", State: backup.Creating, Instance: &old, Database: oldID, Operation: "snap-kept"}),
		state.Put(state.Operation(opID), r))
	for _, host := range []string{"zone-a", "zone-b"} {
		s.put(state.Put(state.Host(host), member.Host{Name: host}), state.Put(state.Live(host), member.Liveness{Alive: true}))
	}
	s.serve(oldID)
	return s
}

func keyOf(i spec.Instance) string { return state.Instance(i.Account, i.Region, i.Name) }

func (s *site) shotKey() string { return state.Snapshot(shop.Account, shop.Region, "kept") }

func (s *site) put(ops ...state.Op) {
	s.t.Helper()
	etcdtest.Put(s.t, s.store, s.cache, ops...)
}

// run has operations carried out until the answer is called. Whoever led before leads no more.
func (s *site) run() (stop func()) {
	s.t.Helper()
	key := state.ElectionRoot + "leader"
	s.put(state.Delete(key))
	revision, err := s.store.Commit(s.t.Context(), state.Put(key, "s1"))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := s.runner.Run(ctx, state.Held(key, revision)); err != nil {
			s.t.Errorf("run: %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	s.t.Cleanup(stop)
	return stop
}

// serve has the members of a database on two hosts, and the primary on the first.
func (s *site) serve(id string) {
	s.t.Helper()
	layout := plan.Layout{ID: id, Created: true}
	var ops []state.Op
	for n, host := range []string{"zone-a", "zone-b"} {
		m := plan.Placed{Name: fmt.Sprintf("m%d", n+1), Host: host}
		layout.Members = append(layout.Members, m)
		r := member.Report{Generation: 5, Patroni: true, Postgres: true, Ready: true, InRecovery: n > 0}
		if n == 0 {
			r.Archived = &member.Archived{Restorable: member.Mark{At: until.Add(time.Hour)}}
		}
		ops = append(ops, state.Put(state.Report(host, member.ID(id, m.Name)), r), state.Put(state.Assign(host, member.ID(id, m.Name)), member.Assignment{Generation: 5, Want: member.Running}))
	}
	s.lead(id, "m1")
	s.put(append(ops, state.Put(state.Layout(id), layout))...)
}

// lead has a member hold the leader key. Patroni's value is no JSON.
func (s *site) lead(id, name string) {
	s.t.Helper()
	if _, err := s.store.Client.Put(s.t.Context(), patroni.LeaderKey(id), name); err != nil {
		s.t.Fatal(err)
	}
	s.put(state.Put(state.ElectionRoot+"other", time.Now().String())) // the cache has what came before
}

// told has the hosts of a database told that it is closed. ended: they say that its processes ended.
func (s *site) told(id string, ended bool) {
	s.t.Helper()
	for n, host := range []string{"zone-a", "zone-b"} {
		name := member.ID(id, fmt.Sprintf("m%d", n+1))
		ops := []state.Op{state.Put(state.Assign(host, name), member.Assignment{Generation: 6, Want: member.Stopped})}
		if ended {
			ops = append(ops, state.Put(state.Report(host, name), member.Report{Generation: 6}))
		}
		s.put(ops...)
	}
}

// cloned has a clone of the database asked for.
func (s *site) cloned(name string, layout plan.Layout) {
	s.t.Helper()
	i := spec.Instance{Common: spec.Common{Scope: shop, Name: name, ResourceID: layout.ID, Origin: &spec.Origin{Live: true, Database: oldID}}}
	s.put(state.Put(keyOf(i), i), state.Put(state.Layout(layout.ID), layout))
}

// shot has the snapshot made.
func (s *site) shot(as backup.SnapshotState, reason string) {
	s.t.Helper()
	s.put(state.Put(s.shotKey(), backup.Snapshot{Scope: shop, Name: "kept", State: as, Reason: reason, Database: oldID}))
}

func (s *site) operation() operation.Record {
	r, err := state.Load[operation.Record](s.cache, state.Operation(opID))
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Value
}

// reaches waits until the operation is at a step, and waits for something with this word.
func (s *site) reaches(at, word string) {
	s.t.Helper()
	testkit.Eventually(s.t, 20*time.Second, func() error {
		if r := s.operation(); r.Step != at || !strings.Contains(r.Trouble, word) {
			return fmt.Errorf("it is %+v", r)
		}
		return nil
	})
}

// ends waits until the operation has ended so.
func (s *site) ends(as operation.State) operation.Record {
	s.t.Helper()
	testkit.Eventually(s.t, 20*time.Second, func() error {
		if r := s.operation(); r.State != as {
			return fmt.Errorf("it is %+v", r)
		}
		return nil
	})
	return s.operation()
}

func (s *site) cancel() {
	s.t.Helper()
	s.put(state.Put(state.OperationCancel(opID), operation.Wish{By: "me"}))
}

// instance is the record of a name.
func (s *site) instance(name string) spec.Instance {
	s.t.Helper()
	r, err := state.Get[spec.Instance](s.t.Context(), s.store, state.Instance(shop.Account, shop.Region, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Value
}

// owner is who has an address.
func (s *site) owner(address string) string {
	s.t.Helper()
	r, err := state.Get[string](s.t.Context(), s.store, state.Address(address))
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Value
}

// events are the messages of events of the database.
func (s *site) events() string {
	var all []string
	for _, e := range state.LoadAll[event.Event](s.cache, state.EventRoot) {
		all = append(all, e.Value.Source+": "+e.Value.Message)
	}
	return strings.Join(all, "\n")
}

// untouched: the database is as it was, and serves, and the hidden one goes.
func (s *site) untouched(why string) {
	s.t.Helper()
	old, inside := s.instance("orders"), s.instance("orders-rewind-abc")
	if old.ResourceID != oldID || old.ClosedBy != "" || old.Deleting || old.Address != publicIP || s.owner(publicIP) != oldID {
		s.t.Errorf("the database is %+v", old)
	}
	if inside.ResourceID != newID || !inside.Deleting || inside.MadeBy != opID || s.owner(hiddenIP) != newID {
		s.t.Errorf("the hidden one is %+v", inside)
	}
	if told := s.events(); !strings.Contains(told, why) || strings.Count(told, "does not go back") != 1 {
		s.t.Errorf("the events say:\n%s", told)
	}
}

// exchanged: clients are led to the data of then by all that they know.
func (s *site) exchanged() {
	s.t.Helper()
	next, gone := s.instance("orders"), s.instance("orders-rewind-abc")
	if next.ResourceID != newID || next.MadeBy+next.ClosedBy+next.Expects != "" || next.Deleting || next.Address != publicIP || s.owner(publicIP) != newID || next.Origin == nil || next.Change != 1 {
		s.t.Errorf("the database is %+v", next)
	}
	if gone.ResourceID != oldID || !gone.Deleting || gone.MadeBy != opID || gone.Address != hiddenIP || s.owner(hiddenIP) != oldID {
		s.t.Errorf("the old one is %+v", gone)
	}
	if _, _, there := s.cache.Raw(state.Route(oldID)); there {
		s.t.Error("the old one has a route")
	}
	if told := s.events(); strings.Count(told, "orders: The DB instance has gone back to 2026-11-24 11:59:00Z") != 1 {
		s.t.Errorf("the events say:\n%s", told)
	}
}
