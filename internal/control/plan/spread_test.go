package plan

import (
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// trio is a cluster of three at rest: m1 leads on a, m2 and m3 are in sync on b and c.
func trio() Input {
	in := Input{
		Want:    Database{ID: "db-1", Major: 15, State: member.Running},
		Layout:  Layout{Created: true, Next: 3},
		Reports: map[string]member.Report{}, Applied: map[string]int64{}, Assigned: map[string]int64{},
		Positions: map[string]int64{}, Leader: "m1",
		Sync: patroni.Sync{Leader: "m1", Standbys: []string{"m2", "m3"}, Quorum: 1},
	}
	for i, host := range []string{"a", "b", "c"} {
		name, key := "m"+string(rune('1'+i)), "i"+string(rune('1'+i))
		in.Hosts = append(in.Hosts, Host{Name: host, Zone: host, Alive: true, Majors: []int{15}})
		in.Want.Seats = append(in.Want.Seats, Seat{Key: key})
		in.Layout.Members = append(in.Layout.Members, Placed{Name: name, Seat: key, Host: host, Zone: host, Votes: true, Served: true})
		id := member.ID("db-1", name)
		in.Reports[id] = member.Report{Patroni: true, Postgres: true, Ready: true, InRecovery: i > 0, Streaming: i > 0}
		in.Applied[id], in.Assigned[id], in.Positions[id] = 1, 1, 1<<40
	}
	return in
}

func (in *Input) move(name, host string) { find(in.Layout, name).Host = host }

func (in *Input) behind(name string, bytes int64) {
	in.Positions[member.ID("db-1", name)] = 1<<40 - bytes
}

func (in *Input) unsync(name string) {
	in.Sync.Standbys = []string{map[string]string{"m2": "m3", "m3": "m2"}[name]}
	in.Sync.Quorum = 0
}

func TestWhoConfirmsCommits(t *testing.T) {
	cases := []struct {
		name   string
		change func(*Input)
		nosync bool // m2
	}{
		{"all apart", func(*Input) {}, false},
		{"beside the primary", func(in *Input) { in.move("m2", "a") }, true},
		{"all beside the primary", func(in *Input) { in.move("m2", "a"); in.move("m3", "a") }, false},
		{"the other one is not in sync", func(in *Input) { in.move("m2", "a"); in.unsync("m3") }, false},
		{"the other one lags", func(in *Input) { in.move("m2", "a"); in.behind("m3", nearBytes+1) }, false},
		{"the other one lags a little", func(in *Input) { in.move("m2", "a"); in.behind("m3", nearBytes) }, true},
		{"nobody knows whether it lags", func(in *Input) { in.move("m2", "a"); delete(in.Positions, "db-1.m3") }, false},
		{"the other one lags, and confirmed alone before", func(in *Input) {
			in.move("m2", "a")
			find(in.Layout, "m2").NoSync = true
			in.behind("m3", 1<<30)
		}, true},
		{"the other one lags, and confirms alone as yet", func(in *Input) {
			in.move("m2", "a")
			in.unsync("m2")
			in.behind("m3", 1<<30)
		}, true},
		{"the other one's host is lost", func(in *Input) { in.move("m2", "a"); in.Hosts[2].Alive = false }, false},
		{"the other one is barred", func(in *Input) {
			in.move("m2", "a")
			in.Want.Seats[2].NoFailover = true
		}, false},
		{"it shall take over", func(in *Input) {
			in.move("m2", "a")
			in.Want.Failover, in.Want.FailoverSeat = 1, "i2"
		}, false},
		{"the other one shall take over", func(in *Input) {
			in.move("m2", "a")
			in.Want.Failover, in.Want.FailoverSeat = 1, "i3"
		}, false}, // it stays beside the old primary, and that is down for a moment
		{"the other one is restarted", func(in *Input) { in.move("m2", "a"); in.Want.Seats[2].Reboot = 1 }, false},
		{"the primary is elsewhere now", func(in *Input) {
			find(in.Layout, "m2").NoSync = true
			in.move("m1", "a")
		}, false},
		{"an election", func(in *Input) {
			in.move("m2", "a")
			in.Leader = ""
		}, false},
		{"its seat is gone", func(in *Input) { in.Want.Seats = append(in.Want.Seats[:1:1], in.Want.Seats[2]) }, true},
		{"its seat is gone, and the other one lags", func(in *Input) {
			in.Want.Seats = append(in.Want.Seats[:1:1], in.Want.Seats[2])
			in.behind("m3", 1<<30)
		}, false},
		{"its seat is gone, and the other one is not in sync yet", func(in *Input) {
			in.Want.Seats = append(in.Want.Seats[:1:1], in.Want.Seats[2])
			in.unsync("m3")
		}, false},
		{"its seat is gone, and the other one copies", func(in *Input) {
			in.Want.Seats = append(in.Want.Seats[:1:1], in.Want.Seats[2])
			in.unsync("m3")
			in.Reports["db-1.m3"] = member.Report{Patroni: true}
		}, true},
		{"its seat must not be promoted any more", func(in *Input) { in.Want.Seats[1].NoFailover = true }, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := trio()
			c.change(&in)
			out := Next(in)
			m := find(out.Layout, "m2")
			if m.NoSync != c.nosync || !m.Votes || m.Barred {
				t.Errorf("nosync %v, votes %v, barred %v", m.NoSync, m.Votes, m.Barred)
			}
			if SyncMode(in.Want, out.Layout) != patroni.SyncQuorum {
				t.Errorf("the mode is %s", SyncMode(in.Want, out.Layout))
			}
		})
	}
}

// TestTheCountWaitsForTheSyncKey: as long as it names two, one who leaves counts.
func TestTheCountWaitsForTheSyncKey(t *testing.T) {
	leaving := func() Input {
		in := trio()
		in.Want.Seats = in.Want.Seats[:2]
		find(in.Layout, "m3").NoSync = true
		return in
	}
	in := leaving()
	if m := find(Next(in).Layout, "m3"); m.Barred || !m.Votes {
		t.Errorf("named by the sync key: barred %v, votes %v", m.Barred, m.Votes)
	}
	in.unsync("m3")
	in.Assigned["db-1.m3"] = 2 // not heard yet
	if m := find(Next(in).Layout, "m3"); !m.Barred || !m.Votes {
		t.Errorf("out of the sync key: barred %v, votes %v", m.Barred, m.Votes)
	}
	find(in.Layout, "m3").Barred = true
	in.Applied["db-1.m3"] = 2
	for _, leader := range []string{"m1", "m2"} { // also of the leader before
		in.Sync = patroni.Sync{Leader: leader, Standbys: []string{"m2", "m3"}, Quorum: 1}
		if m := find(Next(in).Layout, "m3"); !m.Votes || m.Leaving {
			t.Errorf("named under %s: votes %v, leaving %v", leader, m.Votes, m.Leaving)
		}
	}
	in.Sync = patroni.Sync{Leader: "m1", Standbys: []string{"m2"}}
	out := Next(in)
	if m := find(out.Layout, "m3"); m.Votes || m.Leaving || SyncMode(in.Want, out.Layout) != patroni.SyncSingle {
		t.Errorf("heard: votes %v, leaving %v, mode %s", m.Votes, m.Leaving, SyncMode(in.Want, out.Layout))
	}
	in.Layout = out.Layout
	in.Assigned["db-1.m1"] = 2 // the primary has not heard of the new mode
	if find(Next(in).Layout, "m3").Leaving {
		t.Error("removed before the primary knows how commits are confirmed")
	}
	in.Applied["db-1.m1"] = 2
	in.Sync.Standbys = nil
	if find(Next(in).Layout, "m3").Leaving {
		t.Error("removed before another one is in sync by the new mode")
	}
	in.Sync.Standbys = []string{"m2"}
	if !find(Next(in).Layout, "m3").Leaving {
		t.Error("not removed")
	}
}

// TestALostMemberLeavesTheSyncKeyFirst: one that is gone for good counts until the
// primary gave it up: with one fewer, each that the key names could win alone.
func TestALostMemberLeavesTheSyncKeyFirst(t *testing.T) {
	in := trio()
	in.Want.Seats = in.Want.Seats[:2]
	in.Hosts[2].Alive = false
	delete(in.Applied, "db-1.m3")
	if find(Next(in).Layout, "m3").Leaving {
		t.Error("removed while the sync key names it")
	}
	in.unsync("m3")
	if !find(Next(in).Layout, "m3").Leaving {
		t.Error("not removed")
	}
}
