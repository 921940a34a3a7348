package server

import (
	"testing"

	"howdah/internal/model/backup"
	"howdah/internal/state"
)

const (
	fromSnap   = "RestoreDBInstanceFromDBSnapshot?DBInstanceIdentifier=again&DBSnapshotIdentifier=snap"
	shownAgain = "DescribeDBInstances?DBInstanceIdentifier=again"
	badRestore = "InvalidRestoreFault"
	withALot   = "&Tags.Tag.1.Key=team&Tags.Tag.1.Value=blue&BackupRetentionPeriod=5&PreferredBackupWindow=03:00-04:00&PreferredMaintenanceWindow=mon:05:00-mon:06:00" +
		"&EnableIAMDatabaseAuthentication=true&DBName=shop&Port=6000&MultiAZ=true&MaxAllocatedStorage=100"
)

var restoreScenarios = append([]scenario{
	{
		name: "a snapshot", setup: having(newDB+withALot, newSnap), call: fromSnap,
		want: []string{
			"DBInstance/DBInstanceIdentifier=again", "DBInstance/DBInstanceStatus=creating", "DBInstance/MasterUsername=boss", "DBInstance/DBName=shop", "DBInstance/MultiAZ=false",
			"DBInstance/DBInstanceClass=db.t3.micro", "DBInstance/AllocatedStorage=20", "DBInstance/MaxAllocatedStorage=100", "DBInstance/TagList/Tag/Value=blue", "DBInstance/BackupRetentionPeriod=5",
			"DBInstance/PreferredBackupWindow=03:00-04:00", "DBInstance/PreferredMaintenanceWindow=mon:05:00-mon:06:00", "DBInstance/IAMDatabaseAuthenticationEnabled=true",
			"DBInstance/DBParameterGroups/DBParameterGroup/DBParameterGroupName=default.postgres15", "DBInstance/DeletionProtection=false", "!DBInstance/Endpoint",
		},
		after: func(u *user) {
			s, i := u.snapshotRecord("snap"), u.instanceRecord("again")
			if i.Origin == nil || i.Origin.Database != s.Database || i.Origin.Repository != "main" || i.Origin.Label != s.Label || !i.Origin.Snapshot || i.Origin.From != "snap" || !i.Origin.Until.IsZero() {
				u.Errorf("origin %+v of %+v", i.Origin, s)
			}
			if i.Verifier != s.Instance.Verifier || i.PasswordSerial != s.Instance.PasswordSerial || i.Address == u.instanceRecord("db").Address {
				u.Errorf("%+v", i)
			}
			u.settle()
			u.do(shownAgain).has("DBInstances/DBInstance/DBInstanceStatus=available", "DBInstances/DBInstance/Endpoint/Port=6000")
			u.do(with(modifyDB, "DBInstanceIdentifier=again", "MasterUserPassword=second."+marked))
		},
	},
	{
		name: "everything that can be changed", setup: func(u *user) {
			u.securityGroup("sg-1")
			having(newDB+withALot, newSnap, newSubnets, newGroup)(u)
		},
		call: fromSnap + "&DBInstanceClass=db.m5.large&Port=5433&AllocatedStorage=200&StorageType=gp3&MultiAZ=true&Tags.Tag.1.Key=a&Tags.Tag.1.Value=b&DBSubnetGroupName=nets" +
			"&DBParameterGroupName=mine&VpcSecurityGroupIds.VpcSecurityGroupId.1=sg-1&DeletionProtection=true&CopyTagsToSnapshot=true&BackupRetentionPeriod=0" +
			"&PreferredBackupWindow=07:00-07:30&EnableIAMDatabaseAuthentication=false&AutoMinorVersionUpgrade=false&Engine=postgres&ManageMasterUserPassword=true",
		want: []string{
			"DBInstance/DBInstanceClass=db.m5.large", "DBInstance/AllocatedStorage=200", "DBInstance/StorageType=gp3", "DBInstance/MultiAZ=true", "DBInstance/TagList/Tag/Key=a",
			"DBInstance/DBParameterGroups/DBParameterGroup/DBParameterGroupName=mine", "DBInstance/VpcSecurityGroups/VpcSecurityGroupMembership/VpcSecurityGroupId=sg-1",
			"DBInstance/DeletionProtection=true", "DBInstance/CopyTagsToSnapshot=true", "DBInstance/BackupRetentionPeriod=0", "DBInstance/PreferredBackupWindow=07:00-07:30",
			"DBInstance/IAMDatabaseAuthenticationEnabled=false", "DBInstance/AutoMinorVersionUpgrade=false", "DBInstance/MasterUserSecret/SecretArn#1", "!DBInstance/MaxAllocatedStorage",
		},
	},
	{
		name: "an encrypted one is encrypted again", setup: func(u *user) {
			u.encrypts("a", "b", "c")
			having(with(newDB, "StorageEncrypted=true"), newSnap)(u)
		}, call: fromSnap, want: []string{"DBInstance/StorageEncrypted=true", "DBInstance/KmsKeyId#1"},
		after: func(u *user) {
			if db, again := u.instanceRecord("db"), u.instanceRecord("again"); db.StorageKey != again.StorageKey {
				u.Errorf("%s, %s", db.StorageKey, again.StorageKey)
			}
			if _, _, there := u.server.Cache.Raw(state.StorageKey(u.instanceRecord("again").ResourceID)); !there {
				u.Error("it has no key of its own")
			}
		},
	},
	{
		name: "of a database that is gone", setup: having(newDB, newSnap, dropDB), call: with(fromSnap, "DBInstanceIdentifier=db"),
		want: []string{"DBInstance/DBInstanceIdentifier=db"},
	},
	{
		name: "of another account", setup: having(newDB, newSnap), call: showSnap,
		after: func(u *user) {
			friend, arn := u.world.user(u.T), "arn:aws:rds:us-east-1:"+u.account+":snapshot:snap"
			theirs := with(fromSnap, "DBSnapshotIdentifier="+arn)
			friend.try(theirs).is(noSnapshot, "snap")
			u.do(shareSnap + "&ValuesToAdd.AttributeValue.1=" + friend.account)
			friend.do(theirs).has("DBInstance/DBInstanceArn=arn:aws:rds:us-east-1:" + friend.account + ":db:again")
		},
	},
	{
		name: "a snapshot of a Multi-AZ cluster", setup: having(newTrio, "CreateDBClusterSnapshot?DBClusterSnapshotIdentifier=tsnap&DBClusterIdentifier=trio"),
		call: with(fromSnap, "-DBSnapshotIdentifier", "DBClusterSnapshotIdentifier=tsnap"),
		want: []string{"DBInstance/DBInstanceClass=db.m5.large", "DBInstance/AllocatedStorage=100", "DBInstance/Iops=1000"},
	},
	{
		name: "a snapshot that is being made", setup: func(u *user) {
			having(newDB)(u)
			u.do(newSnap)
		}, call: fromSnap, code: badSnapshot, message: "creating",
	},
	{
		name: "a snapshot whose backup is damaged", setup: func(u *user) {
			having(newDB, newSnap)(u)
			s := u.snapshotRecord("snap")
			key := state.Backup(s.Database, s.Repository, s.Label)
			r, err := state.Load[backup.Backup](u.server.Cache, key)
			if err != nil {
				u.Fatal(err)
			}
			r.Value.Damaged = "a bit of base/5/1259 is not as it was"
			u.put(state.Put(key, r.Value))
		}, call: fromSnap, code: badRestore, message: "a bit of base/5/1259",
	},
	{
		name: "a snapshot of an Aurora cluster", setup: having(newCluster, newMember, newAuraSnap), call: with(fromSnap, "-DBSnapshotIdentifier", "DBClusterSnapshotIdentifier=asnap"),
		code: badRestore, message: "RestoreDBClusterFromSnapshot",
	},
}, refusals(having(newDB, newSnap), fromSnap, []refusal{
	{"DBInstanceIdentifier=db", "DBInstanceAlreadyExists", ""},
	{"DBInstanceIdentifier=1", badValue, "DBInstanceIdentifier"},
	{"-DBInstanceIdentifier", missing, "DBInstanceIdentifier"},
	{"DBSnapshotIdentifier=none", noSnapshot, "none"},
	{"-DBSnapshotIdentifier", badMix, "DBClusterSnapshotIdentifier"},
	{"DBInstanceClass=db.none", badValue, "db.none"},
	{"AllocatedStorage=10", badMix, "at least the storage of its source"},
	{"StorageType=io1", badValue, "AllocatedStorage"},
	{"Engine=mysql", badMix, "mysql"},
	{"DBName=x", badMix, "DBName"},
	{"DBSubnetGroupName=none", "DBSubnetGroupNotFoundFault", "none"},
	{"DBParameterGroupName=none", "DBParameterGroupNotFound", "none"},
	{"OptionGroupName=none", "OptionGroupNotFoundFault", "none"},
	{"AvailabilityZone=us-east-1z", badValue, "us-east-1z"},
	{"BackupRetentionPeriod=36", badValue, "36"},
	{"Port=80", badValue, "80"},
	{"Domain=x", badMix, "Domain"},
	{"EnableCloudwatchLogsExports.member.1=postgresql", badMix, "EnableCloudwatchLogsExports"},
})...)

// A home with a part of an older release would begin a restored database empty.
func TestRestoresNeedAHomeOfThisRelease(t *testing.T) {
	u := newWorld(t).user(t)
	u.backups()
	having(newDB, newSnap)(u)
	u.put(state.Delete(state.Control("c1")))
	u.try(fromSnap).is(badRestore, "every part of this home runs this release")
}
