package look

import (
	"context"
	"errors"
	"testing"
	"time"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/route"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
)

// hearing are the agents that are heard, by host.
type hearing map[string]string

func (h hearing) Heard(host string) bool {
	_, heard := h[host]
	return heard
}

func (h hearing) Vouches(host, agent string) bool {
	now, heard := h[host]
	return heard && now == agent
}

// What agents and edges said before they were started again makes nothing available.
func TestAStatusIsOfTheProcessesThatRun(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	const id, listen, target = "db-1", "127.77.0.9:5432", "127.0.0.1:6000"
	want := plan.Database{ID: id, State: member.Running, Seats: []plan.Seat{{Key: id}}}
	layout := plan.Layout{ID: id, Created: true, Members: []plan.Placed{{Name: "m1", Seat: id, Host: "host-a", Address: "127.0.0.1", Port: 6000}}}
	report := member.Report{ID: id + ".m1", Host: "host-a", Agent: "now", Postgres: true, Ready: true}
	way := route.Way{Route: id, Edge: "edge", Listen: listen, Targets: []string{target}}
	if _, err := store.Client.Put(t.Context(), patroni.LeaderKey(id), "m1"); err != nil {
		t.Fatal(err)
	}
	etcdtest.Put(t, store, cache,
		state.Put(state.Live("host-a"), member.Liveness{Alive: true}), state.Put(state.Layout(id), layout), state.Put(state.Report("host-a", report.ID), report),
		state.Put(state.Route(id), route.Route{ID: id, Database: id, Kind: route.Leader, Listen: listen}),
		state.Put(state.Way(id, "edge"), way), state.Put(state.Runs("edge"), true),
	)
	_, runs, _ := cache.Raw(state.Runs("edge"))
	for _, c := range []struct {
		name  string
		heard Hearing
		began int64
		since time.Duration // the control plane was started
		want  string
	}{
		{"nobody asks", nil, 0, 0, plan.Available},
		{"the agent of the report is heard", hearing{"host-a": "now"}, runs - 1, 0, plan.Available},
		{"nobody is heard", hearing{}, runs - 1, 0, plan.Rebooting},
		{"an agent is heard that was started again", hearing{"host-a": "next"}, runs - 1, 0, plan.Rebooting},
		{"an older agent took its place", hearing{"host-a": ""}, runs - 1, 0, plan.Rebooting},
		{"another host is heard", hearing{"host-b": "now"}, runs - 1, 0, plan.Rebooting},
		{"the edge has not said that it runs", hearing{"host-a": "now"}, runs, 0, plan.Rebooting},
		{"its lease would have ended", hearing{"host-a": "now"}, runs, edgeKeyLasts + time.Second, plan.Available},
	} {
		looks := &Source{Cache: cache, Hearing: c.heard, Began: c.began, Started: time.Now().Add(-c.since)}
		if got := looks.Facts(want).DatabaseStatus(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	report.Agent = "" // of the release before
	etcdtest.Put(t, store, cache, state.Put(state.Report("host-a", report.ID), report))
	looks := &Source{Cache: cache, Hearing: hearing{"host-a": ""}, Began: runs - 1, Started: time.Now()}
	if got := looks.Facts(want).DatabaseStatus(); got != plan.Available {
		t.Errorf("an agent of the release before: %s", got)
	}
}

// The first answers wait for those who were there, and not for long.
func TestTheFirstAnswersWait(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	etcdtest.Put(t, store, cache,
		state.Put(state.Runs("edge"), true), state.Put(state.Live("host-a"), member.Liveness{Alive: true}),
		state.Put(state.Live("host-b"), member.Liveness{Alive: true}), state.Put(state.Live("host-c"), member.Liveness{}),
	)
	_, runs, _ := cache.Raw(state.Runs("edge"))
	all := hearing{"host-a": "", "host-b": ""}
	for _, c := range []struct {
		name  string
		heard Hearing
		began int64
		since time.Duration
		waits bool
	}{
		{"all are heard that were there", all, runs - 1, 0, false},
		{"a host is not", hearing{"host-a": ""}, runs - 1, 0, true},
		{"an edge is not", all, runs, 0, true},
		{"nobody is, for long enough", hearing{}, runs, settleWithin + time.Second, false},
	} {
		looks := &Source{Cache: cache, Hearing: c.heard, Began: c.began, Started: time.Now().Add(-c.since)}
		ctx, cancel := context.WithTimeout(t.Context(), 10*settleEvery)
		if err := looks.Settle(ctx); errors.Is(err, context.DeadlineExceeded) != c.waits {
			t.Errorf("%s: %v", c.name, err)
		}
		cancel()
	}
	looks := &Source{Cache: cache, Hearing: all, Began: runs - 1, Started: time.Now()}
	if err := looks.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	looks.Hearing = hearing{}
	if err := looks.Settle(t.Context()); err != nil {
		t.Errorf("one that has heard everyone waits again: %v", err)
	}
}
