package plan

import (
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// TestStandbysThatWaitRestartFirst: with more connections on the primary than on its
// standby, the standby stops to replay.
func TestStandbysThatWaitRestartFirst(t *testing.T) {
	in := rebooting()
	in.PendingRestart = map[string]bool{"db-1.m1": true, "db-1.m2": true}
	if out := Next(in); asked(out) != "db-1.m1" {
		t.Errorf("a standby that gets less is restarted in vain: %+v", out.Tasks)
	}
	in.Growing = in.PendingRestart
	out := Next(in)
	if asked(out) != "db-1.m2" {
		t.Fatalf("asked for %+v", out.Tasks)
	}
	in.Layout = out.Layout
	if out := Next(in); len(out.Tasks) != 0 {
		t.Errorf("while the standby restarts: %+v", out.Tasks)
	}
	id := out.Tasks[0].ID
	in.Results[id] = member.Result{ID: id, Member: "db-1.m2", Done: true}
	if out := Next(in); asked(out) != "db-1.m1" {
		t.Errorf("after the standby: %+v", out.Tasks)
	}
}

// TestStandbysThatStillWaitRestartLast: a standby starts with as many connections as
// its primary has, so it has fewer only after its primary.
func TestStandbysThatStillWaitRestartLast(t *testing.T) {
	in := rebooting()
	request := "db-1/reboot/1"
	in.Layout.Asked = &Asked{Request: request, Attempt: 1, Member: "m1", At: in.Now}
	in.Results[in.Layout.Asked.ID()] = member.Result{ID: in.Layout.Asked.ID(), Member: "db-1.m1", Done: true}
	in.PendingRestart = map[string]bool{"db-1.m2": true}
	if out := Next(in); asked(out) != "db-1.m2" || out.Layout.Rebooted != 0 {
		t.Errorf("asked for %+v", out.Tasks)
	}
	in.Reports["db-1.m2"] = member.Report{}
	out := Next(in)
	if asked(out) != "" || out.Layout.Rebooted != 0 {
		t.Errorf("before the standby is back: %+v", out.Tasks)
	}
	in.Layout, in.Now = out.Layout, in.Now.Add(lastWithin)
	if out := Next(in); out.Layout.Rebooted != 1 {
		t.Error("a standby that does not return holds the reboot up for ever")
	}
	in.PendingRestart = nil
	if out := Next(rebooting()); asked(out) != "db-1.m1" {
		t.Errorf("nobody waits: %+v", out.Tasks)
	}
}

// TestAPrimaryThatStartedAsAStandbyRestartsAgain: it has not taken fewer connections over, and
// waits for another restart.
func TestAPrimaryThatStartedAsAStandbyRestartsAgain(t *testing.T) {
	for name, begin := range map[string]struct {
		in   Input
		done func(Layout) bool
	}{
		"an instance":             {rebooting(), func(l Layout) bool { return l.Rebooted == 1 }},
		"the writer of a cluster": {rebootingCluster(), func(l Layout) bool { return l.Members[0].Rebooted == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			in := begin.in
			in = ended(in, Next(in))
			if out := Next(in); !begin.done(out.Layout) {
				t.Error("nothing waits, and the reboot is not done")
			}
			in.PendingRestart = map[string]bool{"db-1.m1": true}
			if out := Next(in); !begin.done(out.Layout) {
				t.Error("it waits for another setting, and the reboot is not done")
			}
			in.Shrinking = in.PendingRestart
			out := Next(in)
			if asked(out) != "" || begin.done(out.Layout) {
				t.Fatalf("what Patroni said before the restart counts: %+v", out.Tasks)
			}
			in.Layout, in.Now = out.Layout, in.Now.Add(saidWithin)
			if out = Next(in); asked(out) != "db-1.m1" || begin.done(out.Layout) {
				t.Fatalf("asked for %+v", out.Tasks)
			}
			in = ended(in, out)
			if out = Next(in); asked(out) != "" || !begin.done(out.Layout) {
				t.Errorf("it is restarted a third time: %+v", out.Tasks)
			}
		})
	}
	in := rebooting()
	in.Want.Upstream, in.Shrinking = &patroni.Upstream{}, map[string]bool{"db-1.m1": true}
	in = ended(in, Next(in))
	if out := Next(in); out.Layout.Rebooted != 1 {
		t.Errorf("what follows has as many connections as its source: %+v", out.Tasks)
	}
}

// TestANewStandbyTakesLessOver: it was made of a backup from before its primary had fewer
// connections.
func TestANewStandbyTakesLessOver(t *testing.T) {
	atRest := func(of func() Input) Input {
		in := of()
		in.Want.Reboot, in.Sync = 0, patroni.Sync{Leader: "m1", Standbys: []string{"m2"}}
		for n := range in.Want.Seats {
			in.Want.Seats[n].Reboot = 0
		}
		in.PendingRestart, in.Shrinking = map[string]bool{"db-1.m2": true}, map[string]bool{"db-1.m2": true}
		return in
	}
	for _, tt := range []struct {
		name string
		of   func() Input
		with func(*Input)
		want string
	}{
		{"a standby", rebooting, func(*Input) {}, "db-1.m2"},
		{"it waits for something else", rebooting, func(in *Input) { in.Shrinking = nil }, ""},
		{"its primary waits, too", rebooting, func(in *Input) { in.PendingRestart["db-1.m1"] = true }, ""},
		{"a user's reboot is open", rebooting, func(in *Input) { in.Want.Reboot, in.Leader, in.Sync.Leader = 1, "m1", "m1" }, "db-1.m1"},
		{"it has not taken its settings over", rebooting, func(in *Input) { in.Assigned["db-1.m2"] = 5 }, ""},
		{"what follows another database", rebooting, func(in *Input) { in.Want.Upstream = &patroni.Upstream{} }, ""},
		{"a reader, which serves", rebootingCluster, func(*Input) {}, ""},
		{"in place of a member of its cluster", rebootingCluster, func(in *Input) {
			in.Want.Seats = in.Want.Seats[:1]
			in.Layout.Members[0].Going, in.Layout.Members[1].Seat = Replaced, "i1"
			in.Hosts[0].Draining = true
		}, "db-1.m2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := atRest(tt.of)
			tt.with(&in)
			out := Next(in)
			if got := asked(out); got != tt.want || got != "" && out.Tasks[0].Kind != member.Restart {
				t.Fatalf("asked for %+v", out.Tasks)
			}
			if tt.want == "" {
				return
			}
			in = ended(in, out)
			in.Layout = Next(in).Layout
			clear(in.Results) // they are swept
			in.Layout.Members[1].Boost = true
			in.Assigned["db-1.m2"], in.Applied["db-1.m2"] = 9, 9
			if out = Next(in); len(out.Tasks) > 0 && out.Tasks[0].Kind == member.Restart {
				t.Errorf("it is restarted again, for the same values: %+v", out.Tasks)
			}
			in.Want.Parameters = map[string]string{"max_connections": "50"}
			if tt.name == "a standby" && asked(Next(in)) != tt.want {
				t.Error("other values: it is not restarted")
			}
		})
	}
}

func TestGrows(t *testing.T) {
	for _, tt := range []struct {
		name          string
		setting       string
		before, after string
		want          bool
	}{
		{"more connections", "max_connections", "120", "140", true},
		{"fewer", "max_connections", "140", "120", false},
		{"more locks", "max_locks_per_transaction", "64", "128", true},
		{"in another base", "max_wal_senders", "0x20", "35", true},
		{"what a standby may have less of", "shared_buffers", "128", "256", false},
		{"not known", "max_connections", "", "140", false},
		{"no number", "max_connections", "120", "many", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Grows(map[string]patroni.Difference{tt.setting: {Old: tt.before, New: tt.after}}); got != tt.want {
				t.Errorf("Grows = %t", got)
			}
			if got := Shrinks(map[string]patroni.Difference{tt.setting: {Old: tt.after, New: tt.before}}); got != tt.want {
				t.Errorf("Shrinks the other way = %t", got)
			}
		})
	}
	if Grows(nil) || Shrinks(nil) {
		t.Error("no differences")
	}
}

// ended has what was asked for last succeed.
func ended(in Input, out Output) Input {
	in.Layout = out.Layout
	a := out.Layout.Asked
	in.Results[a.ID()] = member.Result{ID: a.ID(), Member: member.ID(in.Want.ID, a.Member), Done: true}
	return in
}

// rebootingCluster is a cluster of a writer and a reader; the writer's reboot was
// asked for.
func rebootingCluster() Input {
	in := rebooting()
	in.Want.Reboot = 0
	in.Want.Seats = []Seat{{Key: "i1", Reboot: 1}, {Key: "i2"}}
	in.Layout.Members[0].Seat, in.Layout.Members[1].Seat = "i1", "i2"
	return in
}

// TestReadersThatGrowRestartWithTheirWriter: all else they take over with a reboot of
// their own.
func TestReadersThatGrowRestartWithTheirWriter(t *testing.T) {
	in := rebootingCluster()
	in.PendingRestart = map[string]bool{"db-1.m1": true, "db-1.m2": true}
	out := Next(in)
	if asked(out) != "db-1.m1" {
		t.Fatalf("asked for %+v", out.Tasks)
	}
	in = ended(in, out)
	in.PendingRestart = map[string]bool{"db-1.m2": true}
	if out = Next(in); asked(out) != "" || out.Layout.Members[0].Rebooted != 1 {
		t.Errorf("the reader is not rebooted with its writer: %+v", out.Tasks)
	}
	in = rebootingCluster()
	in.PendingRestart = map[string]bool{"db-1.m1": true, "db-1.m2": true}
	in.Growing = in.PendingRestart
	if out = Next(in); asked(out) != "db-1.m2" {
		t.Fatalf("asked for %+v", out.Tasks)
	}
	if out = Next(ended(in, out)); asked(out) != "db-1.m1" || out.Layout.Members[1].Rebooted != 0 {
		t.Errorf("after the reader: %+v", out.Tasks)
	}
	in = rebootingCluster()
	in.Want.Seats[0].Reboot, in.Want.Seats[1].Reboot = 0, 1
	in.PendingRestart = map[string]bool{"db-1.m1": true, "db-1.m2": true}
	in.Growing = in.PendingRestart
	if out = Next(in); asked(out) != "db-1.m2" {
		t.Fatalf("asked for %+v", out.Tasks)
	}
	if out = Next(ended(in, out)); asked(out) != "" {
		t.Errorf("a reader's reboot is its own: %+v", out.Tasks)
	}
}

// failingOver is a database of two with a reboot with failover that was asked for.
func failingOver() Input {
	in := rebooting()
	in.Want.Reboot, in.Want.Failover = 0, 1
	in.Sync = patroni.Sync{Leader: "m1", Standbys: []string{"m2"}}
	for i := range in.Layout.Members {
		in.Layout.Members[i].Votes = true
	}
	return in
}

// handedOver is after the standby took over, and the old primary is not back.
func handedOver() Input {
	in := failingOver()
	a := Asked{Request: "db-1/failover/1", Attempt: 1, Member: "m1", At: in.Now}
	in.Layout.Asked, in.Leader, in.Sync = &a, "m2", patroni.Sync{Leader: "m2"}
	in.Results[a.ID()] = member.Result{ID: a.ID(), Member: "db-1.m1", Done: true}
	in.Reports["db-1.m2"] = member.Report{Ready: true, Patroni: true, Postgres: true}
	in.Reports["db-1.m1"] = member.Report{Patroni: true}
	return in
}

func TestTheNextPrimaryTakesItsSettingsOverBefore(t *testing.T) {
	in := failingOver()
	in.PendingRestart = map[string]bool{"db-1.m1": true, "db-1.m2": true}
	out := Next(in)
	if asked(out) != "db-1.m2" || out.Tasks[0].Kind != member.Restart {
		t.Fatalf("asked for %+v", out.Tasks)
	}
	in = ended(in, out)
	in.PendingRestart = map[string]bool{"db-1.m1": true}
	out = Next(in)
	if !out.Layout.Members[1].Boost || out.Layout.FailedOver != 0 {
		t.Fatalf("after the standby was restarted: %+v", out.Layout)
	}
	in.Layout = out.Layout
	if out = Next(in); asked(out) != "db-1.m1" || out.Tasks[0].Kind != member.Handover {
		t.Errorf("asked for %+v", out.Tasks)
	}
}

func TestAFailoverOfAClusterIsNoReboot(t *testing.T) {
	in := failingOver()
	in.Want.Seats = []Seat{{Key: "i1"}, {Key: "i2"}}
	in.Layout.Members[0].Seat, in.Layout.Members[1].Seat = "i1", "i2"
	in.PendingRestart = map[string]bool{"db-1.m1": true, "db-1.m2": true}
	if out := Next(in); asked(out) != "" || !out.Layout.Members[1].Boost {
		t.Errorf("asked for %+v", out.Tasks)
	}
	in = handedOver()
	in.Want.Seats = []Seat{{Key: "i1"}, {Key: "i2"}}
	in.Layout.Members[0].Seat, in.Layout.Members[1].Seat = "i1", "i2"
	in.PendingRestart = map[string]bool{"db-1.m2": true}
	if out := Next(in); out.Layout.FailedOver != 1 || asked(out) != "" {
		t.Errorf("asked for %+v", out.Tasks)
	}
}

// TestTheNewPrimaryThatStillWaitsIsRestarted: it started as a standby with as much as
// its primary had.
func TestTheNewPrimaryThatStillWaitsIsRestarted(t *testing.T) {
	in := handedOver()
	if out := Next(in); out.Layout.FailedOver != 1 {
		t.Error("nobody waits, and the failover is not done")
	}
	in.PendingRestart = map[string]bool{"db-1.m2": true}
	out := Next(in)
	if asked(out) != "" || out.Layout.FailedOver != 0 {
		t.Fatalf("before the old primary is back: %+v", out.Tasks)
	}
	in.Layout = out.Layout
	late := in
	late.Now = in.Now.Add(lastWithin)
	if asked(Next(late)) != "db-1.m2" {
		t.Error("an old primary that does not return holds it up for ever")
	}
	in.Reports["db-1.m1"] = member.Report{Ready: true, Patroni: true, Postgres: true, InRecovery: true, Streaming: true}
	if out = Next(in); asked(out) != "db-1.m2" {
		t.Fatalf("asked for %+v", out.Tasks)
	}
	in.Layout = out.Layout
	in.Reports["db-1.m2"] = member.Report{Patroni: true}
	if out = Next(in); len(out.Tasks) != 0 || out.Layout.FailedOver != 0 {
		t.Fatalf("while the new primary restarts: %+v", out.Tasks)
	}
	in = ended(in, out)
	in.Reports["db-1.m2"] = member.Report{Ready: true, Patroni: true, Postgres: true}
	in.PendingRestart = map[string]bool{"db-1.m1": true}
	if out = Next(in); asked(out) != "db-1.m1" || out.Layout.FailedOver != 0 {
		t.Fatalf("the standby takes less over last: %+v", out.Tasks)
	}
	in = ended(in, out)
	in.PendingRestart = nil
	if out = Next(in); asked(out) != "" || out.Layout.FailedOver != 1 {
		t.Errorf("in the end: %+v", out.Tasks)
	}
}

// TestTheOldPrimaryLeadsAgainMeanwhile: there is no second failover.
func TestTheOldPrimaryLeadsAgainMeanwhile(t *testing.T) {
	in := handedOver()
	in.PendingRestart = map[string]bool{"db-1.m2": true}
	in.Reports["db-1.m1"] = member.Report{Ready: true, Patroni: true, Postgres: true, InRecovery: true, Streaming: true}
	out := Next(in)
	in = ended(in, out)
	in.Leader, in.Sync = "m1", patroni.Sync{Leader: "m1", Standbys: []string{"m2"}}
	in.Reports["db-1.m1"], in.Reports["db-1.m2"] = in.Reports["db-1.m2"], in.Reports["db-1.m1"]
	in.PendingRestart = nil
	if out = Next(in); asked(out) != "" || out.Layout.FailedOver != 1 {
		t.Errorf("asked for %+v", out.Tasks)
	}
}

// TestAStandbyThatStoppedToReplayIsRestarted: its primary came by more connections
// without anybody's reboot.
func TestAStandbyThatStoppedToReplayIsRestarted(t *testing.T) {
	paused := member.Report{Ready: true, Patroni: true, Postgres: true, InRecovery: true, Streaming: true, Paused: true, Timeline: 2}
	in := rebooting()
	in.Want.Reboot = 0
	if out := Next(in); asked(out) != "" {
		t.Fatalf("nobody is paused: %+v", out.Tasks)
	}
	in.Reports["db-1.m2"] = paused
	out := Next(in)
	if asked(out) != "db-1.m2" || out.Tasks[0].Kind != member.Restart {
		t.Fatalf("asked for %+v", out.Tasks)
	}
	in = ended(in, out)
	if out = Next(in); asked(out) != "" || len(out.Layout.Steps) == 0 {
		t.Errorf("it is restarted once, and awaited: %+v", out.Tasks)
	}
	paused.Timeline++
	in.Reports["db-1.m2"] = paused
	if out = Next(in); asked(out) != "db-1.m2" {
		t.Errorf("paused by the next primary: %+v", out.Tasks)
	}
	paused.Paused = false
	in.Reports["db-1.m2"] = paused
	if out = Next(in); asked(out) != "" {
		t.Errorf("it replays: %+v", out.Tasks)
	}
	paused.Paused = true
	in.Reports["db-1.m1"], in.Reports["db-1.m2"] = paused, member.Report{}
	if out = Next(in); asked(out) != "" {
		t.Errorf("one that is being promoted is left alone: %+v", out.Tasks)
	}
	in.Want.Upstream = &patroni.Upstream{}
	if out = Next(in); asked(out) != "db-1.m1" {
		t.Errorf("a read replica that stopped to replay: %+v", out.Tasks)
	}
}
