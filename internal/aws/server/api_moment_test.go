package server

import (
	"testing"
	"time"

	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

const (
	toLatest = "RestoreDBInstanceToPointInTime?SourceDBInstanceIdentifier=db&TargetDBInstanceIdentifier=again&UseLatestRestorableTime=true"
	backed   = "BackupRetentionPeriod=7"
	hour     = time.Hour
)

// toMoment is a restore to so long ago.
func (u *user) toMoment(ago time.Duration) string {
	return with(toLatest, "-UseLatestRestorableTime", "RestoreTime="+u.now().UTC().Add(-ago).Format(time.RFC3339Nano))
}

// backedUpDB is an instance with backups of three, two and one hours ago.
func backedUpDB(u *user) {
	u.Helper()
	having(with(newDB, backed))(u)
	u.backedUp("db", 3*hour, 2*hour, hour)
}

var momentScenarios = []scenario{
	{
		name: "the newest moment", setup: backedUpDB, call: toLatest, want: []string{"DBInstance/DBInstanceStatus=creating", "DBInstance/BackupRetentionPeriod=7"},
		after: func(u *user) {
			db, o := u.instanceRecord("db"), u.instanceRecord("again").Origin
			if o == nil || !o.Newest || o.Snapshot || o.From != "db" || o.Database != db.ResourceID || o.Label != u.now().UTC().Add(-hour).Truncate(time.Second).Format("20060102-1504")+o.Label[13:] {
				u.Errorf("origin %+v", o)
			}
			u.do(showDB).has("DBInstances/DBInstance/LatestRestorableTime#1")
		},
	},
	{
		name: "a moment begins with the newest backup before it", setup: backedUpDB, call: showDB,
		after: func(u *user) {
			for name, c := range map[string]struct{ ago, base time.Duration }{"a": {90 * time.Minute, 2 * hour}, "b": {150 * time.Minute, 3 * hour}, "c": {2 * time.Minute, hour}} {
				u.do(with(u.toMoment(c.ago), "TargetDBInstanceIdentifier="+name))
				o := u.instanceRecord(name).Origin
				if got := u.now().UTC().Sub(o.Until); got < c.ago || got > c.ago+time.Minute || o.Newest {
					u.Errorf("%s: until %s ago", name, got)
				}
				r, err := state.Load[backup.Backup](u.server.Cache, state.Backup(o.Database, o.Repository, o.Label))
				if err != nil || u.now().UTC().Sub(r.Value.Stop).Round(time.Minute) != c.base {
					u.Errorf("%s: begins with %+v: %v", name, r.Value, err)
				}
			}
		},
	},
	{
		name: "a damaged backup is no beginning", setup: func(u *user) {
			backedUpDB(u)
			for _, r := range state.LoadAll[backup.Backup](u.server.Cache, state.BackupPrefix(u.database("db").ID)) {
				if u.now().UTC().Sub(r.Value.Stop).Round(time.Minute) == 2*hour {
					r.Value.Damaged = "a bit"
					u.put(state.Put(r.Key, r.Value))
				}
			}
		}, call: showDB, after: func(u *user) {
			u.do(u.toMoment(90 * time.Minute))
			o := u.instanceRecord("again").Origin
			r, err := state.Load[backup.Backup](u.server.Cache, state.Backup(o.Database, o.Repository, o.Label))
			if err != nil || u.now().UTC().Sub(r.Value.Stop).Round(time.Minute) != 3*hour {
				u.Errorf("begins with %+v: %v", r.Value, err)
			}
		},
	},
	{
		name: "a backup in doubt promises nothing, and may be tried", setup: func(u *user) {
			backedUpDB(u)
			u.automatedOf("db")
			all := state.LoadAll[backup.Backup](u.server.Cache, state.BackupPrefix(u.database("db").ID))
			var needs []string
			for _, r := range all {
				if u.now().UTC().Sub(r.Value.Stop).Round(time.Minute) == hour {
					r.Value.Damaged, r.Value.Needs = "a bit", needs
					u.put(state.Put(r.Key, r.Value))
				}
				needs = append(needs, r.Value.Label)
			}
		}, call: showDB, want: []string{"!DBInstances/DBInstance/LatestRestorableTime"}, after: func(u *user) {
			u.do("DescribeDBInstanceAutomatedBackups").has(oneBackup+"#1", "!"+oneBackup+"/RestoreWindow")
			u.do(toLatest)
		},
	},
	{
		name: "WAL that was given up", setup: func(u *user) {
			backedUpDB(u)
			for _, r := range state.LoadAll[backup.Backup](u.server.Cache, state.BackupPrefix(u.database("db").ID)) {
				if u.now().UTC().Sub(r.Value.Stop).Round(time.Minute) == hour {
					r.Value.Heals, r.Value.Gap = true, u.now().UTC().Add(-100*time.Minute)
					u.put(state.Put(r.Key, r.Value))
				}
			}
		}, call: showDB, after: func(u *user) {
			u.try(u.toMoment(70*time.Minute)).is(badRestore, "was given up")
			u.do(u.toMoment(110 * time.Minute))
		},
	},
	{
		name: "what can be changed", setup: backedUpDB, call: toLatest + "&MaxAllocatedStorage=500&DBInstanceClass=db.m5.large&BackupRetentionPeriod=0&AllocatedStorage=30&Port=6000&MultiAZ=true",
		want: []string{
			"DBInstance/MaxAllocatedStorage=500", "DBInstance/DBInstanceClass=db.m5.large", "DBInstance/BackupRetentionPeriod=0", "DBInstance/AllocatedStorage=30", "DBInstance/MultiAZ=true",
		},
	},
	{
		name: "after a failover, what others said is the newest", setup: backedUpDB, call: showDB,
		after: func(u *user) {
			u.see("db", func(s *scene) {
				s.each(func(r *member.Report) { r.Archived = nil })
			})
			u.do(showDB).has("!DBInstances/DBInstance/LatestRestorableTime")
			u.try(toLatest).is(badRestore, "cannot be restored to a point in time yet")
		},
	},
}

var momentRefusals = append([]scenario{
	{name: "to the future", setup: backedUpDB, call: showDB, after: func(u *user) { u.try(u.toMoment(-hour)).is(badValue, "to a time later than") }},
	{name: "to what is not archived yet", setup: backedUpDB, call: showDB, after: func(u *user) { u.try(u.toMoment(30*time.Second)).is(badValue, "to a time later than") }},
	{name: "to before the first backup", setup: backedUpDB, call: showDB, after: func(u *user) { u.try(u.toMoment(4*hour)).is(badValue, "to a time earlier than") }},
	{name: "without backups", setup: having(with(newDB, "BackupRetentionPeriod=0")), call: toLatest, code: "PointInTimeRestoreNotEnabled", message: "BackupRetentionPeriod is 0"},
	{name: "before the first backup is done", setup: having(with(newDB, backed)), call: toLatest, code: badRestore, message: "first automated backup"},
	{name: "of a replica", setup: having(newDB, newReplica), call: with(toLatest, "SourceDBInstanceIdentifier=copy"), code: badState, message: "restore its source"},
	{name: "of a member", setup: having(newCluster, newMember), call: with(toLatest, "SourceDBInstanceIdentifier=aura-1"), code: badState, message: "RestoreDBClusterToPointInTime"},
}, refusals(backedUpDB, toLatest, []refusal{
	{"RestoreTime=2026-11-24T10:00:00Z", badMix, "both"},
	{"-UseLatestRestorableTime", badMix, "either"},
	{"-SourceDBInstanceIdentifier", badMix, "Exactly one"},
	{"SourceDbiResourceId=x", badMix, "Exactly one"},
	{"SourceDBInstanceIdentifier=none", "DBInstanceNotFound", "none"},
	{"-SourceDBInstanceIdentifier&SourceDbiResourceId=db-NONE", "DBInstanceAutomatedBackupNotFound", "db-NONE"},
	{"-SourceDBInstanceIdentifier&SourceDBInstanceAutomatedBackupsArn=x", "DBInstanceAutomatedBackupNotFound", "x"},
	{"TargetDBInstanceIdentifier=db", "DBInstanceAlreadyExists", ""},
	{"TargetDBInstanceIdentifier=1", badValue, "TargetDBInstanceIdentifier"},
	{"AllocatedStorage=10", badMix, "at least"},
	{"MaxAllocatedStorage=10", badMix, "Max storage size"},
})...)

const (
	aurasSnapshot = "RestoreDBClusterFromSnapshot?DBClusterIdentifier=again&SnapshotIdentifier=asnap&Engine=aurora-postgresql"
	aurasLatest   = "RestoreDBClusterToPointInTime?DBClusterIdentifier=again&SourceDBClusterIdentifier=aura&UseLatestRestorableTime=true"
	newTrioSnap   = "CreateDBClusterSnapshot?DBClusterSnapshotIdentifier=tsnap&DBClusterIdentifier=trio"
)

var restoreClusterScenarios = append(append([]scenario{
	{
		name: "a snapshot of an Aurora cluster", setup: having(with(newCluster, "Port=6000", "DatabaseName=shop", "StorageType=aurora-iopt1"), newMember, newAuraSnap), call: aurasSnapshot,
		want: []string{"DBCluster/Status=creating", "DBCluster/Port=6000", "DBCluster/DatabaseName=shop", "DBCluster/MasterUsername=boss", "DBCluster/StorageType=aurora-iopt1", "DBCluster/EngineVersion=15.18"},
		after: func(u *user) {
			c := u.clusterRecord("again")
			if c.Origin == nil || !c.Origin.Snapshot || c.Origin.From != "asnap" || c.Verifier != u.clusterRecord("aura").Verifier {
				u.Errorf("%+v", c.Origin)
			}
			having(with(newMember, "DBInstanceIdentifier=again-1", "DBClusterIdentifier=again"))(u)
			u.do("DescribeDBClusters?DBClusterIdentifier=again").has("DBClusters/DBCluster/Status=available")
		},
	},
	{
		name: "a snapshot of an instance makes a cluster", setup: having(newDB, newSnap), call: with(aurasSnapshot, "SnapshotIdentifier=arn:aws:rds:us-east-1:{account}:snapshot:snap"),
		want: []string{"DBCluster/Engine=aurora-postgresql", "DBCluster/MasterUsername=boss"},
		after: func(u *user) {
			u.try(with(aurasSnapshot, "SnapshotIdentifier=snap", "DBClusterIdentifier=other")).is(noAuraSnapshot, "snap")
		},
	},
	{
		name: "a snapshot of a Multi-AZ cluster", setup: having(newTrio, newTrioSnap), call: with(aurasSnapshot, "SnapshotIdentifier=tsnap", "Engine=postgres"),
		want: []string{"DBCluster/DBClusterInstanceClass=db.m5.large", "DBCluster/AllocatedStorage=100", "DBCluster/Iops=1000", "DBCluster/DBClusterMembers/DBClusterMember#3"},
	},
	{
		name: "everything that can be changed", setup: func(u *user) {
			u.encrypts("a", "b", "c")
			u.securityGroup("sg-1")
			having(newCluster, newMember, newAuraSnap, newShared)(u)
		},
		call: aurasSnapshot + "&Port=6001&DBClusterParameterGroupName=ours&VpcSecurityGroupIds.VpcSecurityGroupId.1=sg-1&DeletionProtection=true&CopyTagsToSnapshot=true" +
			"&BackupRetentionPeriod=9&PreferredBackupWindow=03:00-03:30&EnableIAMDatabaseAuthentication=true&Tags.Tag.1.Key=a&EngineVersion=15&AvailabilityZones.AvailabilityZone.1=us-east-1a",
		want: []string{
			"DBCluster/Port=6001", "DBCluster/DBClusterParameterGroup=ours", "DBCluster/DeletionProtection=true", "DBCluster/BackupRetentionPeriod=9", "DBCluster/PreferredBackupWindow=03:00-03:30",
			"DBCluster/IAMDatabaseAuthenticationEnabled=true", "DBCluster/TagList/Tag/Key=a", "DBCluster/AvailabilityZones/AvailabilityZone#1", "DBCluster/StorageEncrypted=false",
		},
		after: func(u *user) {
			mine := u.customerKey(u.region, nil)
			u.do(with(aurasSnapshot, "DBClusterIdentifier=sealed", "KmsKeyId="+mine.ARN())).has("DBCluster/StorageEncrypted=true", "DBCluster/KmsKeyId="+mine.ARN())
		},
	},
	{
		name: "the newest moment", setup: func(u *user) {
			having(newCluster, newMember)(u)
			u.backedUp("aura", 2*hour)
		}, call: aurasLatest, want: []string{"DBCluster/Status=creating", "!DBCluster/LatestRestorableTime"},
		after: func(u *user) {
			u.do("DescribeDBClusters?DBClusterIdentifier=aura").has("DBClusters/DBCluster/LatestRestorableTime#1", "DBClusters/DBCluster/EarliestRestorableTime#1")
			if o := u.clusterRecord("again").Origin; o == nil || !o.Newest || o.From != "aura" {
				u.Errorf("%+v", o)
			}
			then := with(aurasLatest, "-UseLatestRestorableTime", "DBClusterIdentifier=then", "RestoreType=full-copy", "RestoreToTime="+u.now().UTC().Add(-hour).Format(time.RFC3339))
			u.do(then)
			if o := u.clusterRecord("then").Origin; o == nil || o.Until.IsZero() {
				u.Errorf("%+v", o)
			}
			u.try(with(aurasLatest, "DBClusterIdentifier=thin", "RestoreType=soon")).is(badValue, "soon")
			u.try(with(then, "DBClusterIdentifier=early", "RestoreToTime=2020-01-01T00:00:00Z")).is(badValue, "earlier")
			u.do(with(aurasLatest, "DBClusterIdentifier=by-id", "-SourceDBClusterIdentifier", "SourceDbClusterResourceId="+u.clusterRecord("aura").ResourceID))
		},
	},
	{name: "a moment of no cluster", call: aurasLatest, code: noCluster, message: "aura"},
	{name: "a moment before the first backup", setup: having(newCluster, newMember), call: aurasLatest, code: badRestore, message: "first automated backup"},
}, refusals(having(newCluster, newMember, newAuraSnap), aurasSnapshot, []refusal{
	{"DBClusterIdentifier=aura", "DBClusterAlreadyExistsFault", ""},
	{"DBClusterIdentifier=1", badValue, "DBClusterIdentifier"},
	{"SnapshotIdentifier=none", noAuraSnapshot, "none"},
	{"Engine=mysql", badValue, "mysql"},
	{"EngineVersion=16", badMix, "EngineVersion"},
	{"Engine=postgres", missing, "DBClusterInstanceClass"},
	{"EngineMode=serverless", badMix, "EngineMode"},
	{"BackupRetentionPeriod=0", badValue, "0"},
	{"DBClusterParameterGroupName=none", "DBClusterParameterGroupNotFound", "none"},
	{"DBSubnetGroupName=none", "DBSubnetGroupNotFoundFault", "none"},
	{"KmsKeyId=none", "KMSKeyNotAccessibleFault", "none"},
	{"DatabaseName=x", badMix, "DatabaseName"},
})...), scenario{
	name: "a snapshot that is being made", setup: func(u *user) {
		having(newCluster, newMember)(u)
		u.do(newAuraSnap)
	}, call: aurasSnapshot, code: "InvalidDBClusterSnapshotStateFault", message: "creating",
})

// Nobody restores what is being taken away: the record of the backup must be as it was.
func TestARestoreHoldsItsBackup(t *testing.T) {
	u := newWorld(t).user(t)
	u.backups()
	backedUpDB(u)
	for _, r := range state.LoadAll[backup.Backup](u.server.Cache, state.BackupPrefix(u.database("db").ID)) {
		u.put(state.Delete(r.Key))
	}
	u.try(toLatest).is(badRestore, "first automated backup")
	having(newSnap)(u)
	s := u.snapshotRecord("snap")
	u.put(state.Delete(state.Backup(s.Database, s.Repository, s.Label)))
	u.try(fromSnap).is(badRestore, "not in the repository main any more")
}
