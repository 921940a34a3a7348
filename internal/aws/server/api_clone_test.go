package server

import (
	"slices"
	"testing"

	"howdah/internal/admin"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

const (
	cloneAura = "RestoreDBClusterToPointInTime?DBClusterIdentifier=thin&SourceDBClusterIdentifier=aura&UseLatestRestorableTime=true&RestoreType=copy-on-write"
	cloneTrio = "RestoreDBClusterToPointInTime?DBClusterIdentifier=thin&SourceDBClusterIdentifier=trio&UseLatestRestorableTime=true&RestoreType=copy-on-write"
	showThin  = "DescribeDBClusters?DBClusterIdentifier=thin"
)

func (u *user) layoutOf(name string) plan.Layout {
	u.Helper()
	r, err := state.Load[plan.Layout](u.server.Cache, state.Layout(u.database(name).ID))
	if err != nil {
		u.Fatal(err)
	}
	return r.Value
}

// inOneGroup checks that a cluster and its clones have one clone group.
func (u *user) inOneGroup(names ...string) {
	u.Helper()
	group := u.clusterRecord(names[0]).CloneGroup
	for _, name := range names {
		if c := u.clusterRecord(name); c.CloneGroup != group || group == "" {
			u.Errorf("%s is in the clone group %q, want %q", name, c.CloneGroup, group)
		}
		u.do("DescribeDBClusters?DBClusterIdentifier=" + name).has("DBClusters/DBCluster/CloneGroupId=" + group)
	}
}

var cloneScenarios = append([]scenario{
	{
		name: "a clone of a Multi-AZ cluster", setup: having(newTrio), call: cloneTrio,
		want: []string{"DBCluster/Status=creating", "DBCluster/DBClusterInstanceClass=db.m5.large", "DBCluster/AllocatedStorage=100", "DBCluster/DBClusterMembers/DBClusterMember#3", "DBCluster/CloneGroupId#1"},
		after: func(u *user) {
			trio, o := u.clusterRecord("trio"), u.clusterRecord("thin").Origin
			if o == nil || !o.Live || o.Database != trio.ResourceID || o.From != "trio" || o.Label != "" || o.Repository != "" {
				u.Errorf("origin %+v", o)
			}
			u.do(with(cloneTrio, "DBClusterIdentifier=again", "-SourceDBClusterIdentifier", "SourceDbClusterResourceId="+trio.ResourceID))
			u.inOneGroup("trio", "thin", "again")
			u.try(with(cloneTrio, "DBClusterIdentifier=more", "-SourceDBClusterIdentifier", "SourceDbClusterResourceId=cluster-NONE")).is(noCluster, "not deleted")
		},
	},
	{
		name: "a clone of an Aurora cluster", setup: having(with(newCluster, "DatabaseName=shop"), newMember), call: cloneAura,
		want: []string{"DBCluster/Status=creating", "DBCluster/DatabaseName=shop", "DBCluster/MasterUsername=boss", "DBCluster/DBClusterMembers/DBClusterMember#0"},
		after: func(u *user) {
			having(with(newMember, "DBInstanceIdentifier=thin-1", "DBClusterIdentifier=thin"))(u)
			u.do(showThin).has("DBClusters/DBCluster/Status=available")
			u.do(with(cloneAura, "SourceDBClusterIdentifier=thin", "DBClusterIdentifier=thinner"))
			u.inOneGroup("aura", "thin", "thinner")
		},
	},
	{
		name: "a full copy has no clone group", setup: func(u *user) {
			having(newCluster, newMember)(u)
			u.backedUp("aura", 2*hour)
		}, call: with(cloneAura, "RestoreType=full-copy"), want: []string{"!DBCluster/CloneGroupId"},
	},
	{
		name: "what was encrypted is encrypted again", setup: func(u *user) {
			u.encrypts("a", "b", "c")
			having(newTrio + "&StorageEncrypted=true")(u)
		}, call: cloneTrio, want: []string{"DBCluster/StorageEncrypted=true"},
		after: func(u *user) {
			if thin, trio := u.clusterRecord("thin"), u.clusterRecord("trio"); thin.StorageKey != trio.StorageKey || thin.StorageKey == "" {
				u.Errorf("the key %q, want %q", thin.StorageKey, trio.StorageKey)
			}
			mine := u.customerKey(u.region, nil)
			u.do(with(cloneTrio, "DBClusterIdentifier=mine", "KmsKeyId="+mine.ARN())).has("DBCluster/KmsKeyId=" + mine.ARN())
		},
	},
	{name: "of no cluster", call: cloneAura, code: noCluster, message: "aura"},
	{name: "of one without instances", setup: having(newCluster), call: cloneAura, code: badCluster, message: "no DB instance"},
	{name: "of one that is stopped", setup: having(newCluster, newMember, stopAura), call: cloneAura, code: badCluster, message: "stopped"},
}, refusals(having(newCluster, newMember), cloneAura, []refusal{
	{"DBClusterIdentifier=aura", "DBClusterAlreadyExistsFault", ""},
	{"RestoreToTime=2026-01-01T00:00:00Z", badMix, "RestoreToTime"},
	{"UseLatestRestorableTime=false", badMix, "UseLatestRestorableTime"},
	{"SourceDbClusterResourceId=cluster-X", badMix, "Exactly one"},
	{"KmsKeyId=none", "KMSKeyNotAccessibleFault", "none"},
	{"DBClusterParameterGroupName=none", "DBClusterParameterGroupNotFound", "none"},
})...)

// TestClonesByTheCommandLine: instances are cloned, too. A dry run says where, and whether it takes room.
func TestClonesByTheCommandLine(t *testing.T) {
	u := newWorld(t).user(t)
	u.backups()
	having(with(newDB, "MultiAZ=true", "BackupRetentionPeriod=0"))(u)
	live := admin.RestorePoint{Live: true}
	members := u.layoutOf("db").Members
	home := members[slices.IndexFunc(members, func(m plan.Placed) bool { return m.Name == "m1" })].Host // it leads
	for _, shares := range []bool{false, true} {
		host, err := state.Load[member.Host](u.server.Cache, state.Host(home))
		if err != nil {
			t.Fatal(err)
		}
		host.Value.Shares = shares
		u.put(state.Put(host.Key, host.Value))
		p, err := u.restore(admin.RestoreRequest{Name: "thin", From: "db", RestorePoint: live, DryRun: true})
		if err != nil || !p.Live || p.Thin != shares || len(p.Hosts) != 1 || p.Hosts[0] != home || p.MultiAZ || p.Label != "" {
			t.Errorf("a dry run: %+v, %v", p, err)
		}
	}
	if p, err := u.restore(admin.RestoreRequest{Name: "thin", From: "db", RestorePoint: live, MultiAZ: new(true), Class: "db.m5.large"}); err != nil || len(p.Hosts) != 2 || p.Hosts[0] != home {
		t.Errorf("%+v, %v", p, err)
	}
	thin, db := u.instanceRecord("thin"), u.instanceRecord("db")
	if o := thin.Origin; o == nil || !o.Live || o.Database != db.ResourceID || thin.Verifier != db.Verifier || thin.Class != "db.m5.large" {
		t.Errorf("%+v of %+v", thin, o)
	}
	having(newCluster, newMember)(u)
	if p, err := u.restore(admin.RestoreRequest{Name: "aura-thin", From: "cluster/aura", RestorePoint: live}); err != nil || p.Kind != admin.KindCluster || len(p.Hosts) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	for name, c := range map[string]struct {
		in   admin.RestoreRequest
		want string
	}{
		"nobody":              {admin.RestoreRequest{From: "nobody"}, "nobody"},
		"of a clone's moment": {admin.RestoreRequest{From: "db", RestorePoint: admin.RestorePoint{Latest: true}}, "Exactly one moment"},
		"of a snapshot":       {admin.RestoreRequest{RestorePoint: admin.RestorePoint{Snapshot: "snap"}}, "one moment"},
		"of a member":         {admin.RestoreRequest{From: "aura-1"}, "clone the cluster"},
		"with less room":      {admin.RestoreRequest{From: "db", StorageGiB: 5}, "at least"},
	} {
		c.in.Name, c.in.Live = "new", true
		if _, err := u.restore(c.in); err == nil {
			t.Errorf("%s: done", name)
		} else {
			u.says(name, err, c.want)
		}
	}
}
