package etcdgate

import (
	"errors"
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
)

// bareDoor returns a door that decides, and listens nowhere.
func bareDoor(cfg DoorConfig) *Door {
	return &Door{DoorConfig: cfg, gate: &Gate{budget: budget{limits: ofHost}}}
}

// These are the rights of an agent on h1, which runs m1 of db-A and m2 of db-B, and of an edge
// there.
func TestRightsOfHosts(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	etcdtest.Put(t, store, cache,
		state.Put(state.Assign("h1", "db-A.m1"), member.Assignment{}), state.Put(state.Assign("h1", "db-B.m2"), member.Assignment{}),
		state.Put(state.Assign("h2", "db-A.m2"), member.Assignment{}), state.Put(state.Assign("h2", "db-C.m1"), member.Assignment{}),
		state.Put(state.Job("h1", "copy-1/fill"), member.Job{}), state.Put(state.Job("h2", "copy-3/fill"), member.Job{}),
		state.Put(state.Task("h1", "db-A/restart/1"), member.Task{}), state.Put(state.Task("h2", "db-C/restart/1"), member.Task{}),
	)
	d := bareDoor(DoorConfig{Cache: cache, CatchUp: caughtUp})
	an, ok1 := d.callerBy("agent:h1")
	edge, ok2 := d.callerBy("edge:h1")
	if !ok1 || !ok2 {
		t.Fatal("they are nobody")
	}
	for _, c := range []struct {
		who  caller
		key  string
		to   string // the end of the range
		deed deed
		want bool
	}{
		// What its host is to run, and what no other host is.
		{an, "/howdah/assign/h1/", "/howdah/assign/h10", reads, true},
		{an, "/howdah/assign/h1/db-A.m1", "", writes, false},
		{an, "/howdah/assign/h2/", "/howdah/assign/h20", reads, false},
		{an, "/howdah/assign/", "/howdah/assign0", reads, false},
		{an, "/howdah/task/h1/", "/howdah/task/h10", reads, true},
		{an, "/howdah/task/h2/", "/howdah/task/h20", reads, false},
		{an, "/howdah/task/h1/db-A/restart/1", "", deletes, false},
		{an, "/howdah/result/db-A/restart/1", "", writes, true},
		{an, "/howdah/result/db-A/restart/1", "", reads, true},
		{an, "/howdah/result/db-C/restart/1", "", writes, false},
		{an, "/howdah/result/db-A/restart/2", "", writes, false},
		{an, "/howdah/result/", "/howdah/result0", reads, false},
		// What it says of itself.
		{an, "/howdah/host/h1", "", writes, true},
		{an, "/howdah/host/h2", "", writes, false},
		{an, "/howdah/host/h1/x", "", writes, false},
		{an, "/howdah/report/h1/db-A.m1", "", writes, true},
		{an, "/howdah/report/h1/db-A.m1", "", deletes, true},
		{an, "/howdah/report/h2/db-A.m2", "", writes, false},
		{an, "/howdah/report/h1/a/b", "", writes, false},
		{an, "/howdah/report/", "/howdah/report0", reads, false},
		{an, "/howdah/holding/h1", "", writes, true},
		{an, "/howdah/holding/h1/db-X.m1", "", deletes, true},
		{an, "/howdah/holding/h2", "", writes, false},
		{an, "/howdah/attempt/h1", "", writes, true},
		{an, "/howdah/attempt/h2", "", writes, false},
		// Fences.
		{an, "/howdah/fence/", "/howdah/fence0", reads, true},
		{an, "/howdah/fence/db-A/m2", "", writes, false},
		{an, "/howdah/fence/db-A/m2", "", deletes, false},
		{an, "/howdah/witness/db-A-0123456789abcdef/h1", "", writes, true},
		{an, "/howdah/witness/db-C-0123456789abcdef/h1", "", writes, false},
		{an, "/howdah/witness/db-A-0123456789abcdef/h2", "", writes, false},
		{an, "/howdah/witness/db-A-0123456789abcdef/x/h1", "", writes, false},
		{an, "/howdah/cut/db-A-0123456789abcdef/m1", "", writes, true},
		{an, "/howdah/cut/db-A-0123456789abcdef/m2", "", writes, false},
		{an, "/howdah/cut/db-C-0123456789abcdef/m1", "", writes, false},
		{an, "/howdah/cut/db-A-0123456789abcdef/m1/x", "", writes, false},
		{an, "/howdah/death/db-A/m1", "", writes, true},
		{an, "/howdah/death/db-A/m2", "", writes, false},
		{an, "/howdah/incident/db-A/0123456789abcdef", "", writes, true},
		{an, "/howdah/incident/db-C/0123456789abcdef", "", writes, false},
		{an, "/howdah/sworn/h1", "", writes, false},
		{an, "/howdah/live/", "/howdah/live0", reads, true},
		{an, "/howdah/live/h1", "", writes, false},
		// Jobs that its host is asked for, and no other host's. It writes none, and reports only on
		// those that are asked for. A report outlives its job for a moment.
		{an, "/howdah/job/h1/", "/howdah/job/h10", reads, true},
		{an, "/howdah/job/h1/copy-1/fill", "", reads, true},
		{an, "/howdah/job/h1/copy-1/fill", "", writes, false},
		{an, "/howdah/job/h1/copy-1/fill", "", deletes, false},
		{an, "/howdah/job/h2/", "/howdah/job/h20", reads, false},
		{an, "/howdah/job/", "/howdah/job0", reads, false},
		{an, "/howdah/job-report/h1/", "/howdah/job-report/h10", reads, true},
		{an, "/howdah/job-report/h2/", "/howdah/job-report/h20", reads, false},
		{an, "/howdah/job-report/", "/howdah/job-report0", reads, false},
		{an, "/howdah/job-report/h1/copy-1/fill", "", writes, true},
		{an, "/howdah/job-report/h1/copy-2/fill", "", writes, false},
		{an, "/howdah/job-report/h1/copy-1", "", writes, false},
		{an, "/howdah/job-report/h1/copy-1/fill/x", "", writes, false},
		{an, "/howdah/job-report/h2/copy-3/fill", "", writes, false},
		{an, "/howdah/job-report/h1/copy-2/fill", "", deletes, true},
		{an, "/howdah/job-report/h1/", "", deletes, false},
		{an, "/howdah/job-report/h1/", "/howdah/job-report/h10", deletes, false},
		{an, "/howdah/job-report/h2/copy-3/fill", "", deletes, false},
		// Operations are not for hosts.
		{an, "/howdah/operation/copy-1", "", writes, false},
		{an, "/howdah/operation/", "/howdah/operation0", reads, false},
		{an, "/howdah/operation-cancel/copy-1", "", writes, false},
		{an, "/howdah/operation-cancel/copy-1", "", deletes, false},
		// Patroni's keys, of members that are there.
		{an, "/service/db-A/leader", "", writes, true},
		{an, "/service/db-A/leader", "", deletes, true},
		{an, "/service/db-A/sync", "", writes, true},
		{an, "/service/db-A/members/m1", "", writes, true},
		{an, "/service/db-A/members/db-A.m1", "", deletes, true},
		{an, "/service/db-A/members/m2", "", writes, false},
		{an, "/service/db-A/", "/service/db-A0", reads, true},
		{an, "/service/db-C/leader", "", writes, false},
		{an, "/service/db-C/leader", "", deletes, false},
		{an, "/service/db-C/leader", "", reads, true},
		{an, "/service/db-C/members/m1", "", reads, true},
		{an, "/service/db-C/config", "", reads, false},
		{an, "/service/db-C/", "/service/db-C0", reads, false},
		{an, "/service/", "/service0", reads, false},
		{an, "/service/db-A/members/m1", "", keeps, true},
		{an, "/service/db-A/members/m2", "", keeps, false},
		{an, "/service/db-C/leader", "", keeps, false},
		{an, "/howdah/layout/db-A", "", reads, true},
		{an, "/howdah/layout/db-C", "", reads, false},
		{an, "/howdah/layout/db-A", "", writes, false},
		// What belongs to all, and secrets.
		{an, "/howdah/control/", "/howdah/control0", reads, true},
		{an, "/howdah/control/s1", "", writes, false},
		{an, "/howdah/host/", "/howdah/host0", reads, false},
		{an, "/howdah/catalogue/15.18", "", reads, true},
		{an, "/howdah/catalogue/15.18", "", writes, false},
		{an, "/howdah/catalogue/15.18", "", deletes, false},
		{an, "/howdah/secret/db-A", "", reads, false},
		{an, "/howdah/storage-key/db-A", "", reads, false},
		{an, "/howdah/members-authority", "", reads, false},
		{an, "/howdah/key/AKIA", "", reads, false},
		{an, "/howdah/spec/instance/1/r/orders", "", reads, false},
		{an, "/howdah/way/db-A/h1", "", writes, false},
		{an, "/howdah/", "/howdah0", reads, false},
		{an, "", "\x00", reads, false},
		{an, "\x00", "\x00", deletes, false},
		{an, "/howdah/fence/", "\x00", reads, false},
		// An edge's keys.
		{edge, "/service/", "/service0", reads, true},
		{edge, "/service/db-A/leader", "", writes, false},
		{edge, "/service/db-A/leader", "", deletes, false},
		{edge, "/howdah/report/", "/howdah/report0", reads, true},
		{edge, "/howdah/report/h1/db-A.m1", "", writes, false},
		{edge, "/howdah/route/", "/howdah/route0", reads, true},
		{edge, "/howdah/route/db-A", "", writes, false},
		{edge, "/howdah/way/db-A/h1", "", writes, true},
		{edge, "/howdah/way/db-A/h1", "", deletes, true},
		{edge, "/howdah/way/db-A/h2", "", writes, false},
		{edge, "/howdah/way/h1", "", writes, false},
		{edge, "/howdah/switch/h1/db-A", "", writes, true},
		{edge, "/howdah/switch/h2/db-A", "", writes, false},
		{edge, "/howdah/edge/h1", "", deletes, true},
		{edge, "/howdah/edge/h2", "", writes, false},
		{edge, "/howdah/runs/h1", "", writes, true},
		{edge, "/howdah/runs/h1", "", keeps, true},
		{edge, "/howdah/runs/h2", "", keeps, false},
		{edge, "/howdah/between/h1", "", writes, true},
		{edge, "/howdah/meta/", "", reads, true},
		{edge, "/howdah/assign/", "/howdah/assign0", reads, false},
		{edge, "/howdah/secret/", "/howdah/secret0", reads, false},
		{edge, "/howdah/", "/howdah0", reads, false},
	} {
		err := c.who.may(t.Context(), need{keys: keys{Key: []byte(c.key), RangeEnd: []byte(c.to)}, deed: c.deed})
		if err != nil && !errors.Is(err, errScope) || (err == nil) != c.want {
			t.Errorf("%s: %s %q to %q: %v", c.who, c.deed, c.key, c.to, err)
		}
	}
	all := keys{Key: []byte("/howdah/host/"), RangeEnd: []byte("/howdah/host0")}
	if err := an.may(t.Context(), need{keys: all, names: true}); err != nil {
		t.Errorf("which hosts there are: %v", err)
	}
	if err := an.may(t.Context(), need{keys: keys{Key: []byte("/howdah/catalogue/19.1")}, deed: writes, fresh: true}); err != nil {
		t.Errorf("a version that nobody has told of: %v", err)
	}
}

// A caller that is neither an agent nor an edge has the rights of neither.
func TestNamesWithoutRights(t *testing.T) {
	d := &Door{}
	for _, name := range []string{"", "agent", "agent:", ":h1", "member:db-A.m1", "agent:h1/x", "agent:a:b", "Agent:h1", "howdah-serve", "edge:", "agent:.."} {
		if who, ok := d.callerBy(name); ok {
			t.Errorf("%q is %s", name, who)
		}
	}
}
