package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
)

// lastLead is who is written down as who served last.
func (b *bench) lastLead() string {
	b.Helper()
	lead, err := state.Get[member.Lead](b.Context(), b.store, state.Lead(dbID))
	if err != nil {
		b.Fatal(err)
	}
	return lead.Value.Member
}

// takesWrites has a member's agent say that it takes writes.
func (b *bench) takesWrites(name, host string, at time.Time) {
	b.Helper()
	id := member.ID(dbID, name)
	b.put(state.Put(state.Report(host, id), member.Report{ID: id, Host: host, Patroni: true, Postgres: true, Ready: true, At: at}))
}

// A member that has the leader key may be at its gate still, which refuses. That it took writes
// before, of which its host has told, says nothing.
func TestWhoIsAtItsGateDoesNotServe(t *testing.T) {
	b := made(t, true)
	b.gather()
	b.takesWrites("m2", "b", b.now)
	b.same(patroni.LeaderKey(dbID), "m2")
	b.gather()
	if last := b.lastLead(); last != "m1" {
		t.Errorf("%s served last, by a report from before it had the key", last)
	}
	b.takesWrites("m2", "b", b.now.Add(time.Second))
	b.gather()
	if last := b.lastLead(); last != "m2" {
		t.Errorf("%s served last, although m2 has said that it serves since", last)
	}
}

// One that its gate let through serves, or nobody does.
func TestWhoWasLetThroughServesByAnyReport(t *testing.T) {
	b := made(t, true)
	b.gather()
	b.takesWrites("m2", "b", b.now)
	b.same(patroni.LeaderKey(dbID), "m2")
	b.put(state.Put(state.Passed(dbID), fence.Passed{Database: dbID, Member: "m2", Old: "m1"}))
	b.gather()
	if last := b.lastLead(); last != "m2" {
		t.Errorf("%s served last", last)
	}
}

// A control plane that stood still does not write down who served when it last looked.
func TestWhoServedIsNotWrittenDownLate(t *testing.T) {
	b := made(t, true)
	b.gather()
	b.same(patroni.LeaderKey(dbID), "m2")
	b.takesWrites("m2", "b", b.now)
	ctx, stop := context.WithCancel(t.Context())
	still := state.NewCache(b.store.Client, slog.New(slog.DiscardHandler), state.Root, patroni.Namespace)
	var done sync.WaitGroup
	done.Go(func() { _ = still.Run(ctx) })
	if err := still.Loaded(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	done.Wait()
	b.same(patroni.LeaderKey(dbID), "m1")
	w := look(still, b.now)
	if err := b.r.followLeader(t.Context(), w, w.databases[0]); !errors.Is(err, state.ErrConflict) {
		t.Errorf("%v, want a conflict", err)
	}
	if last := b.lastLead(); last != "m1" {
		t.Errorf("%s served last", last)
	}
}
