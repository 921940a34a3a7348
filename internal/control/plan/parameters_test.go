package plan

import (
	"slices"
	"testing"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/model/param"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
)

var here = spec.Scope{Account: "1", Region: "r"}

// aGroup has values that are all in force, save for what change adds.
func aGroup(kind param.Kind, name string, change func(*spec.ParameterGroup), values ...string) spec.ParameterGroup {
	g := spec.ParameterGroup{Scope: here, Kind: kind, Name: name, Serial: 1}
	for i := 0; i < len(values); i += 2 {
		static := slices.Contains([]string{"max_connections", "shared_buffers", "rds.logical_replication"}, values[i])
		g.Values = g.Values.Set(values[i], param.Version{Serial: 1, Value: &values[i+1], Static: static, Waits: static})
	}
	if change != nil {
		change(&g)
	}
	return g
}

func groupsOf(all ...spec.ParameterGroup) Groups {
	g := Groups{}
	for _, group := range all {
		g.Add(group)
	}
	return g
}

func anInstance(group string) spec.Instance {
	i := spec.Instance{Class: "db.t3.small", Storage: 20}
	i.Scope, i.ResourceID, i.Engine, i.Major, i.Port, i.ParameterGroup = here, "db-1", spec.Postgres, 15, 5432, group
	i.Taken = spec.Taken{Group: group, Serial: 1}
	return i
}

// told is what a member of a database is told.
func told(want Database) member.Assignment {
	return Assign(want, Layout{}, Placed{Name: "m1", Seat: want.Seats[0].Key}, 0)
}

func TestAGroupDrivesAnInstance(t *testing.T) {
	g := groupsOf(aGroup(param.Instance, "mine", nil,
		"work_mem", "64MB", "shared_buffers", "{DBInstanceClassMemory/65536}", "max_connections", "{DBInstanceVCPU}", "rds.force_ssl", "0", "rds.logical_replication", "1"))
	i := anInstance("mine")
	i.MultiAZ = true
	want := ForInstance(i, Links{Groups: g})
	a := told(want)
	if a.Parameters["work_mem"] != "64MB" || a.Parameters["shared_buffers"] != "32768" || a.Parameters["effective_cache_size"] != "1048576kB" {
		t.Errorf("of the member: %v", a.Parameters)
	}
	if _, there := a.Parameters["max_connections"]; there {
		t.Error("a setting that Patroni takes for all members only is among those of one")
	}
	if a.RequireTLS || a.Cluster.Parameters["max_connections"] != "2" || a.Cluster.Parameters["wal_level"] != "logical" || !a.Cluster.LogicalSlots {
		t.Errorf("of the database: %+v, TLS %v", a.Cluster, a.RequireTLS)
	}
	plain := told(ForInstance(anInstance("default.postgres15"), Links{Groups: g}))
	if !plain.RequireTLS || plain.Cluster.Parameters["wal_level"] != "replica" || plain.Cluster.LogicalSlots || plain.Parameters["shared_buffers"] != "524288kB" {
		t.Errorf("without a group: %+v", plain)
	}
}

func TestAGroupOverAGroup(t *testing.T) {
	g := groupsOf(
		aGroup(param.Cluster, "both", nil, "work_mem", "1MB", "jit", "0", "max_connections", "300", "rds.force_ssl", "0"),
		aGroup(param.Instance, "own", nil, "work_mem", "2MB", "max_connections", "900"),
	)
	var c spec.Cluster
	c.Scope, c.ResourceID, c.Engine, c.Major, c.ParameterGroup = here, "cluster-1", spec.Aurora, 15, "both"
	i := anInstance("own")
	i.Engine, i.Cluster, i.ClusterTaken = spec.Aurora, c.ResourceID, spec.Taken{Group: "both", Serial: 1}
	want := ForCluster(c, []spec.Instance{i}, Links{Groups: g})
	a := told(want)
	if a.Parameters["work_mem"] != "2MB" || a.Parameters["jit"] != "0" || want.Parameters["max_connections"] != "300" || a.RequireTLS {
		t.Errorf("%v, %v, TLS %v", a.Parameters, want.Parameters["max_connections"], a.RequireTLS)
	}
}

func TestWhatWaitsForAReboot(t *testing.T) {
	later := func(g *spec.ParameterGroup) {
		g.Serial = 2
		value := "9MB"
		g.Values = g.Values.Set("work_mem", param.Version{Serial: 2, Value: &value, Waits: true})
	}
	g := groupsOf(
		aGroup(param.Instance, "old", later, "work_mem", "1MB", "max_connections", "100"),
		aGroup(param.Instance, "new", nil, "jit", "0", "max_connections", "200"),
	)
	i := anInstance("old")
	if a := told(ForInstance(i, Links{Groups: g})); a.Parameters["work_mem"] != "1MB" || !g.Waiting(param.Instance, here, "old", i.Taken) {
		t.Errorf("before the reboot: %v", a.Parameters)
	}
	i.Taken.Serial = 2
	if a := told(ForInstance(i, Links{Groups: g})); a.Parameters["work_mem"] != "9MB" || g.Waiting(param.Instance, here, "old", i.Taken) {
		t.Errorf("after the reboot: %v", a.Parameters)
	}
	i.ParameterGroup = "new"
	want := ForInstance(i, Links{Groups: g})
	if a := told(want); a.Parameters["work_mem"] != "9MB" || a.Parameters["jit"] != "" || want.Parameters["max_connections"] != "200" {
		t.Errorf("with another group, before the reboot: %v", a.Parameters)
	}
	if !g.Waiting(param.Instance, here, "new", i.Taken) {
		t.Error("another group takes a reboot")
	}
	i.Taken = spec.Taken{Group: "new", Serial: 1}
	if a := told(ForInstance(i, Links{Groups: g})); a.Parameters["work_mem"] != "" || a.Parameters["jit"] != "0" {
		t.Errorf("with another group, after the reboot: %v", a.Parameters)
	}
	i.Taken = spec.Taken{}
	if a := told(ForInstance(i, Links{Groups: g})); a.Parameters["jit"] != "" && g.Waiting(param.Instance, here, "new", i.Taken) {
		t.Errorf("a record of an older version: %v", a.Parameters)
	}
}

// TestTheFirstRebootCountsForAll: what instances of a cluster share changes when the
// first of them takes the new group over.
func TestTheFirstRebootCountsForAll(t *testing.T) {
	g := groupsOf(aGroup(param.Cluster, "new", nil, "rds.force_ssl", "0"))
	var c spec.Cluster
	c.Scope, c.ResourceID, c.Engine, c.Major, c.ParameterGroup, c.Taken = here, "cluster-1", spec.Aurora, 15, "new", spec.Taken{Group: "old"}
	a, b := anInstance("default.aurora-postgresql15"), anInstance("default.aurora-postgresql15")
	a.ClusterTaken, b.ClusterTaken = c.Taken, c.Taken
	if !ForCluster(c, []spec.Instance{a, b}, Links{Groups: g}).RequireTLS {
		t.Error("nobody was rebooted")
	}
	b.ClusterTaken = spec.Taken{Group: "new", Serial: 1}
	if ForCluster(c, []spec.Instance{a, b}, Links{Groups: g}).RequireTLS {
		t.Error("one was rebooted")
	}
}

func TestRaise(t *testing.T) {
	d := Database{Parameters: map[string]string{"max_connections": "100", "max_wal_senders": "35", "work_mem": "1"}}
	d.Raise(Database{Parameters: map[string]string{"max_connections": "400", "max_wal_senders": "20", "work_mem": "9"}})
	if d.Parameters["max_connections"] != "400" || d.Parameters["max_wal_senders"] != "35" || d.Parameters["work_mem"] != "1" {
		t.Error(d.Parameters)
	}
	for _, text := range []string{"0x200", "512.0", "5.12e2"} {
		d := Database{Parameters: map[string]string{"max_connections": "100"}}
		if d.Raise(Database{Parameters: map[string]string{"max_connections": text}}); d.Parameters["max_connections"] != text {
			t.Errorf("not raised to %s: %v", text, d.Parameters)
		}
	}
}

// rebooting is a database of two with a reboot that was asked for.
func rebooting() Input {
	in := Input{
		Now: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), Leader: "m1",
		Want:   Database{ID: "db-1", State: member.Running, Seats: []Seat{{}, {}}, Reboot: 1},
		Layout: Layout{ID: "db-1", Created: true, Next: 3, Members: []Placed{{Name: "m1", Host: "a", Served: true}, {Name: "m2", Host: "b", Served: true}}},
		Hosts:  []Host{{Name: "a", Alive: true}, {Name: "b", Alive: true}},
		Reports: map[string]member.Report{
			"db-1.m1": {Ready: true, Patroni: true, Postgres: true}, "db-1.m2": {Ready: true, Patroni: true, Postgres: true, InRecovery: true, Streaming: true},
		},
		Applied: map[string]int64{"db-1.m1": 4, "db-1.m2": 4}, Assigned: map[string]int64{"db-1.m1": 4, "db-1.m2": 4},
		PendingRestart: map[string]bool{}, Results: map[string]member.Result{},
	}
	return in
}

func asked(out Output) string {
	if len(out.Tasks) != 1 {
		return ""
	}
	return out.Tasks[0].Member
}

func TestARebootFindsTheNewestSettings(t *testing.T) {
	in := rebooting()
	in.Assigned["db-1.m1"] = 5
	if out := Next(in); asked(out) != "" {
		t.Errorf("restarted before it took its settings over: %+v", out.Tasks)
	}
	in.Applied["db-1.m1"] = 5
	if out := Next(in); asked(out) != "db-1.m1" {
		t.Errorf("asked for %+v", out.Tasks)
	}
	in.Behind = map[string]bool{"db-1.m1": true}
	if out := Next(in); asked(out) != "" {
		t.Errorf("restarted before it read what all members share: %+v", out.Tasks)
	}
	in.Behind = nil
	in.Assigned["db-1.m1"] = 6
	r := in.Reports["db-1.m1"]
	r.Ready = false
	in.Reports["db-1.m1"] = r
	out := Next(in)
	if asked(out) != "" {
		t.Errorf("restarted in the middle of its restart: %+v", out.Tasks)
	}
	in.Layout, in.Now = out.Layout, in.Now.Add(settingsWithin)
	if out := Next(in); asked(out) != "db-1.m1" {
		t.Errorf("one that hangs is what a reboot is for: %+v", out.Tasks)
	}
}

// Standbys have copies of users' slots where the version can do that, whatever a group says of
// hot_standby_feedback. A read replica has no copies of its source's.
func TestSlotsSurviveFailovers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		want Database
		on   bool
	}{
		"off":       {Database{Major: 17}, false},
		"16":        {Database{Major: 16, LogicalSlots: true}, false},
		"17":        {Database{Major: 17, LogicalSlots: true}, true},
		"18":        {Database{Major: 18, LogicalSlots: true}, true},
		"a replica": {Database{Major: 18, LogicalSlots: true, Upstream: &patroni.Upstream{}}, false},
	} {
		seat := Seat{Values: map[string]string{"hot_standby_feedback": "off"}}
		got := memberParameters(c.want, seat, 8<<30)
		feedback, synced := got["hot_standby_feedback"] == "on", got["sync_replication_slots"] == "on"
		if feedback != c.on || synced != c.on {
			t.Errorf("%s: hot_standby_feedback %q, sync_replication_slots %q", name, got["hot_standby_feedback"], got["sync_replication_slots"])
		}
	}
}
