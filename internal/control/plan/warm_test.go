package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// warming is a cluster at rest whose writer and reader shall have like caches.
func warming() Input {
	in := rebootingCluster()
	in.Want.Seats[0].Reboot = 0
	in.Want.Warm, in.Sync = true, patroni.Sync{Leader: "m1", Standbys: []string{"m2"}}
	return in
}

// third adds a reader.
func third(in *Input, tier int) {
	in.Want.Seats = append(in.Want.Seats, Seat{Key: "i3", Tier: tier})
	in.Layout.Members = append(in.Layout.Members, Placed{Name: "m3", Host: "c", Seat: "i3", Served: true})
	in.Hosts = append(in.Hosts, Host{Name: "c", Alive: true})
	in.Reports["db-1.m3"] = in.Reports["db-1.m2"]
}

func TestThePairOfLikeCaches(t *testing.T) {
	for _, tt := range []struct {
		name string
		with func(*Input)
		pair []string
		why  string
	}{
		{"the writer and its only reader", func(*Input) {}, []string{"m1", "m2"}, ""},
		{"it is not wanted", func(in *Input) { in.Want.Warm = false }, nil, ""},
		{"other readers have other tiers", func(in *Input) { third(in, 1) }, []string{"m1", "m2"}, ""},
		{"roles have changed", func(in *Input) {
			in.Leader, in.Sync = "m2", patroni.Sync{Leader: "m2", Standbys: []string{"m1"}}
			in.Reports["db-1.m1"], in.Reports["db-1.m2"] = in.Reports["db-1.m2"], in.Reports["db-1.m1"]
		}, []string{"m1", "m2"}, ""},
		{"two readers", func(in *Input) { third(in, 0) }, nil, "2 readers"},
		{"no reader of that tier", func(in *Input) { in.Want.Seats[1].Tier = 1 }, nil, "no reader"},
		{"a writer of another tier", func(in *Input) { in.Want.Seats[0].Tier = 2 }, nil, "the writer has not"},
		{"another class", func(in *Input) { in.Want.Seats[1].Limits.MemoryBytes = 1 << 30 }, nil, "another class"},
		{"a reader that is never promoted", func(in *Input) { in.Want.Seats[1].NoFailover = true }, nil, "no reader"},
		{"another one that is never promoted", func(in *Input) {
			third(in, 0)
			in.Want.Seats[2].NoFailover = true
		}, []string{"m1", "m2"}, ""},
		{"a reader that is not placed yet", func(in *Input) { in.Layout.Members = in.Layout.Members[:1] }, nil, ""},
		{"a reader that cannot", func(in *Input) {
			r := in.Reports["db-1.m2"]
			r.Cache = &member.Cache{Why: "its cache is too large", Never: true}
			in.Reports["db-1.m2"] = r
		}, []string{"m1", "m2"}, "too large"},
		{"a database that follows", func(in *Input) { in.Want.Upstream = &patroni.Upstream{} }, nil, "follows"},
		{"nobody leads for a moment", func(in *Input) { in.Leader, in.Layout.Warm = "", []string{"m1", "m2"} }, []string{"m1", "m2"}, ""},
		{"it is off while nobody leads", func(in *Input) { in.Want.Warm, in.Leader, in.Layout.Warm = false, "", []string{"m1", "m2"} }, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := warming()
			tt.with(&in)
			out := Next(in)
			if l := out.Layout; !slices.Equal(l.Warm, tt.pair) || (tt.why == "") != (l.Cold == "") || !strings.Contains(l.Cold, tt.why) {
				t.Errorf("%v, %q, %v", l.Warm, l.Cold, out.Problems)
			}
			for _, m := range out.Layout.Members {
				parameters := Assign(in.Want, out.Layout, m, 0).Parameters
				on := parameters["ccm.enabled"] == "on"
				if parameters["ccm.mirror"] != "" {
					t.Errorf("%s may serve reads, and has ccm.mirror", m.Name)
				}
				if on != slices.Contains(tt.pair, m.Name) {
					t.Errorf("%s has it on: %t", m.Name, on)
				}
			}
		})
	}
}

// TestAnInstanceHasAPair: both members of a Multi-AZ instance are alike.
func TestAnInstanceHasAPair(t *testing.T) {
	in := rebooting()
	in.Want.Reboot, in.Want.Warm = 0, true
	out := Next(in)
	if l := out.Layout; !slices.Equal(l.Warm, []string{"m1", "m2"}) {
		t.Errorf("%v, %q", l.Warm, l.Cold)
	}
	for _, m := range out.Layout.Members {
		if got := Assign(in.Want, out.Layout, m, 0).Parameters["ccm.mirror"]; got != "on" {
			t.Errorf("%s serves no reads as a standby, and has ccm.mirror %q", m.Name, got)
		}
	}
}

// TestAPlannedFailoverWaitsForWarmth, but not for ever, and not for a cache manager that does not
// work.
func TestAPlannedFailoverWaitsForWarmth(t *testing.T) {
	in := failingOver()
	in.Want.Warm, in.Layout.Warm = true, []string{"m1", "m2"}
	cache := func(c member.Cache) {
		r := in.Reports["db-1.m2"]
		r.Cache = &c
		in.Reports["db-1.m2"] = r
	}
	out := Next(in)
	if out.Layout.Members[1].Boost {
		t.Fatalf("nothing is known of its cache, and it takes over: %+v", out.Layout)
	}
	cache(member.Cache{State: "working", Percent: 40, Known: true})
	out = Next(in)
	if out.Layout.Members[1].Boost || len(out.Layout.Steps) == 0 || !strings.Contains(out.Layout.Steps[len(out.Layout.Steps)-1].Name, "to be warm") {
		t.Fatalf("with a cold standby: %+v", out.Layout)
	}
	in.Layout = out.Layout
	for name, c := range map[string]member.Cache{"warm": {Percent: 99, Known: true}, "hopeless": {State: "error", Why: "other version", Never: true}} {
		cache(c)
		if out := Next(in); !out.Layout.Members[1].Boost {
			t.Errorf("%s: it does not go on: %+v", name, out.Layout.Steps)
		}
	}
	for name, c := range map[string]member.Cache{"not streaming": {State: "paused", Why: "not streaming"}, "old figures": {State: "error", Why: "connection", Percent: 99}} {
		cache(c)
		if out := Next(in); out.Layout.Members[1].Boost {
			t.Errorf("%s: it takes over cold", name)
		}
	}
	late := in
	late.Now = in.Now.Add(-time.Hour) // the control plane that leads now has another time
	if out := Next(late); !out.Layout.Members[1].Boost {
		t.Errorf("it waits for an hour: %+v", out.Layout.Steps)
	}
	cache(member.Cache{State: "working", Percent: 40, Known: true})
	in.Now = in.Now.Add(warmWithin)
	handedOver := false
	for range 3 {
		out = Next(in)
		handedOver = handedOver || asked(out) == "db-1.m1" && out.Tasks[0].Kind == member.Handover
		if !out.Layout.Members[1].Boost {
			t.Fatalf("it waits again: %+v", out.Layout.Steps)
		}
		in.Layout, in.Now = out.Layout, in.Now.Add(time.Second)
	}
	if !handedOver {
		t.Errorf("a standby that stays cold holds the failover up: %+v", out.Layout.Steps)
	}
}

// TestTheTimeForWarmthIsTheRequests: whatever else the planner says it waits for meanwhile.
func TestTheTimeForWarmthIsTheRequests(t *testing.T) {
	in := failingOver()
	in.Want.Warm, in.Layout.Warm = true, []string{"m1", "m2"}
	r := in.Reports["db-1.m2"]
	r.Cache = &member.Cache{State: "working"}
	in.Reports["db-1.m2"] = r
	in.Layout = Next(in).Layout
	in.Layout.Steps = []Step{{Name: "something else", Began: in.Now}}
	in.Now = in.Now.Add(warmWithin)
	if out := Next(in); !out.Layout.Members[1].Boost {
		t.Errorf("it begins to wait anew: %+v", out.Layout.Steps)
	}
}

// TestWhoLeavesWarmsItsSuccessor: while a member of the pair is drained, rebuilt or deleted, the other
// one stays its partner, and a handover waits for it.
func TestWhoLeavesWarmsItsSuccessor(t *testing.T) {
	for _, tt := range []struct {
		name string
		with func(*Input)
		pair []string
	}{
		{"the primary is drained", func(in *Input) { in.Layout.Members[0].Going = Replaced }, []string{"m1", "m2"}},
		{"the standby is drained", func(in *Input) { in.Layout.Members[1].Going = Replaced }, []string{"m1", "m2"}},
		{"the standby is gone", func(in *Input) {
			in.Layout.Members[1].Going = Replaced
			in.Reports["db-1.m2"] = member.Report{}
		}, []string{"m1", "m3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := rebooting()
			in.Want.Reboot, in.Want.Warm, in.Layout.Warm = 0, true, []string{"m1", "m2"}
			in.Layout.Members = append(in.Layout.Members, Placed{Name: "m3", Host: "c", Served: true})
			in.Layout.Next = 4
			in.Hosts = append(in.Hosts, Host{Name: "c", Alive: true})
			in.Reports["db-1.m3"] = in.Reports["db-1.m2"]
			in.Sync = patroni.Sync{Leader: "m1", Standbys: []string{"m2", "m3"}}
			tt.with(&in)
			if l := Next(in).Layout; !slices.Equal(l.Warm, tt.pair) || l.Cold != "" {
				t.Errorf("%v, %q", l.Warm, l.Cold)
			}
		})
	}
}
