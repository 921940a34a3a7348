package server

import (
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/model/member"
)

const (
	rebootDB = "RebootDBInstance?DBInstanceIdentifier=db"
	stopDB   = "StopDBInstance?DBInstanceIdentifier=db"
	startDB  = "StartDBInstance?DBInstanceIdentifier=db"
	minute   = time.Minute
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func full(s *scene) {
	s.each(func(r *member.Report) { r.Problem = member.StorageFull })
}

// told: the last hour's events have these texts.
func (u *user) told(texts ...string) {
	u.Helper()
	found := u.do("DescribeEvents").result().texts("Events/Event/Message")
	for _, text := range texts {
		if !slices.ContainsFunc(found, func(m string) bool { return strings.Contains(m, text) }) {
			u.Errorf("no event says %q: %q", text, found)
		}
	}
}

// makeOnly makes calls whose work is not done yet.
func makeOnly(calls ...string) func(*user) {
	return func(u *user) {
		u.Helper()
		for _, call := range calls {
			u.do(call)
		}
	}
}

var stateScenarios = []scenario{
	{
		name: "a reboot", setup: having(newDB), call: rebootDB, want: []string{"DBInstance/DBInstanceStatus=rebooting"},
		after: func(u *user) {
			u.try(rebootDB).is(badState, "in-progress")
			u.try(with(modifyDB, "MultiAZ=true")).is(badState, "")
			u.settle()
			u.do(showDB).has("DBInstances/DBInstance/DBInstanceStatus=available")
		},
	},
	{
		name: "a reboot with failover", setup: having(with(newDB, "MultiAZ=true")), call: rebootDB + "&ForceFailover=true",
		want: []string{"DBInstance/DBInstanceStatus=rebooting"},
	},
	{
		name: "a failover of a single instance", setup: having(newDB), call: rebootDB + "&ForceFailover=true", code: badMix, message: "not a Multi-AZ",
	},
	{
		name: "a failover just before the standby is in sync",
		setup: func(u *user) {
			u.do(with(newDB, "MultiAZ=true"))
			u.settle()
			u.see("db", func(s *scene) { s.sync = nil })
			u.do(showDB).has("DBInstances/DBInstance/DBInstanceStatus=available")
		},
		call: rebootDB + "&ForceFailover=true", want: []string{"DBInstance/DBInstanceStatus=rebooting"},
	},
	{
		name: "a failover without a standby that receives",
		setup: func(u *user) {
			u.do(with(newDB, "MultiAZ=true"))
			u.settle()
			u.see("db", func(s *scene) {
				s.sync = nil
				s.each(func(r *member.Report) { r.Streaming = false })
			})
		},
		call: rebootDB + "&ForceFailover=true", code: badState, message: "not in sync",
	},
	{name: "a reboot while creating", setup: makeOnly(newDB), call: rebootDB, code: badState},
	{name: "a reboot of nothing", call: rebootDB, code: "DBInstanceNotFound"},
	{name: "a reboot without a name", call: "RebootDBInstance", code: missing},
	{
		name: "stop and start", setup: having(newDB), call: stopDB, want: []string{"DBInstance/DBInstanceStatus=stopping"},
		after: func(u *user) {
			u.try(stopDB).is(badState, "not in available state")
			u.try(startDB).is(badState, "not stopped")
			u.settle()
			u.do(showDB).has("DBInstances/DBInstance/DBInstanceStatus=stopped")
			u.try(rebootDB).is(badState, "")
			u.do(startDB).has("DBInstance/DBInstanceStatus=starting")
			u.settle()
			u.try(startDB).is(badState, "not stopped")
		},
	},
	{name: "stop with a snapshot", setup: having(newDB), call: stopDB + "&DBSnapshotIdentifier=s", code: badMix, message: "howdah repository add"},
	{name: "stop while creating", setup: makeOnly(newDB), call: stopDB, code: badState},
	{name: "start what is deleted", setup: having(newDB, dropDB), call: startDB, code: "DBInstanceNotFound"},
	{name: "stop a member", setup: having(newCluster, newMember), call: "StopDBInstance?DBInstanceIdentifier=aura-1", code: "InvalidDBClusterStateFault"},
	{name: "stop a source", setup: having(newDB, newReplica), call: stopDB, code: badState, message: "read replicas"},
	{name: "stop a replica", setup: having(newDB, newReplica), call: "StopDBInstance?DBInstanceIdentifier=copy", code: badState, message: "read replica"},
	{
		name: "delete", setup: having(newDB), call: dropDB, want: []string{"DBInstance/DBInstanceStatus=deleting", "!DBInstance/Endpoint"},
		after: func(u *user) {
			u.try(dropDB).is(badState, "already being deleted")
			u.try(newDB).is("DBInstanceAlreadyExists", "")
			u.settle()
			u.try(showDB).is("DBInstanceNotFound", "")
			u.do(newDB)
		},
	},
	{name: "delete while creating", setup: makeOnly(newDB), call: dropDB, want: []string{"DBInstance/DBInstanceStatus=deleting"}},
	{name: "delete while stopped", setup: having(newDB, stopDB), call: dropDB, want: []string{"DBInstance/DBInstanceStatus=deleting"}},
	{name: "delete without a word on snapshots", setup: having(newDB), call: with(dropDB, "-SkipFinalSnapshot"), code: badMix, message: "SkipFinalSnapshot"},
	{name: "delete with a snapshot", setup: having(newDB), call: with(dropDB, "-SkipFinalSnapshot", "FinalDBSnapshotIdentifier=s"), code: badMix, message: "howdah repository add"},
	{name: "delete with both", setup: having(newDB), call: with(dropDB, "FinalDBSnapshotIdentifier=s"), code: badMix, message: "can not be specified"},
	{name: "delete what is protected", setup: having(with(newDB, "DeletionProtection=true")), call: dropDB, code: badMix, message: "protected"},
	{name: "delete nothing", call: dropDB, code: "DBInstanceNotFound"},
	{
		name: "nobody to place it with", setup: func(u *user) {
			u.do(newDB)
			u.layOut(u.database("db"), func(s *scene) {
				s.layout.Created, s.layout.Members = false, nil
				s.layout.Steps = append(s.layout.Steps, waitsForHost...)
			})
		}, call: showDB, want: []string{"DBInstances/DBInstance/DBInstanceStatus=insufficient-capacity"},
	},
}
