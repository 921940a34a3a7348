package server

import (
	"howdah/internal/aws/rds/look"
	"howdah/internal/model/member"
)

const promote = "PromoteReadReplica?DBInstanceIdentifier=copy"

var replicaScenarios = append([]scenario{
	{
		name: "a replica has what its source has", setup: having(with(newDB, "AllocatedStorage=50", "DBName=shop", "Port=6000")), call: newReplica,
		want: []string{
			"DBInstance/DBInstanceStatus=creating", "DBInstance/ReadReplicaSourceDBInstanceIdentifier=db", "DBInstance/AllocatedStorage=50",
			"DBInstance/MasterUsername=boss", "DBInstance/DBName=shop", "DBInstance/DBInstanceClass=db.t3.micro", "DBInstance/BackupRetentionPeriod=0",
			"!DBInstance/StatusInfos",
		},
		after: func(u *user) {
			u.settle()
			u.do(showDB).has("DBInstances/DBInstance/ReadReplicaDBInstanceIdentifiers/ReadReplicaDBInstanceIdentifier=copy")
			u.do(with(showDB, "DBInstanceIdentifier=copy")).has("DBInstances/DBInstance/StatusInfos/DBInstanceStatusInfo/Status=replicating",
				"DBInstances/DBInstance/Endpoint/Port=6000")
			u.see("copy", func(s *scene) { s.each(func(r *member.Report) { r.Streaming = false }) })
			u.do(with(showDB, "DBInstanceIdentifier=copy")).has("DBInstances/DBInstance/StatusInfos/DBInstanceStatusInfo/Status=error",
				"DBInstances/DBInstance/StatusInfos/DBInstanceStatusInfo/Normal=false")
		},
	},
	{
		name: "a replica of a replica, in another region by ARN", setup: having(newDB, newReplica),
		call: with(newReplica, "DBInstanceIdentifier=third", "SourceDBInstanceIdentifier=copy"),
		want: []string{"DBInstance/ReadReplicaSourceDBInstanceIdentifier=copy"},
		after: func(u *user) {
			u.settle()
			u.region = "eu-west-1"
			u.do(with(newReplica, "SourceDBInstanceIdentifier=arn:aws:rds:us-east-1:"+u.account+":db:db")).
				has("DBInstance/ReadReplicaSourceDBInstanceIdentifier=arn:aws:rds:us-east-1:" + u.account + ":db:db")
		},
	},
	{
		name: "a replica of a cluster", setup: having(newCluster, newMember),
		call: "CreateDBInstanceReadReplica?DBInstanceIdentifier=copy&SourceDBClusterIdentifier=aura",
		want: []string{"DBInstance/ReadReplicaSourceDBClusterIdentifier=aura", "DBInstance/Engine=postgres"},
		after: func(u *user) {
			u.settle()
			u.do(showAll + "aura").has("DBClusters/DBCluster/ReadReplicaIdentifiers/ReadReplicaIdentifier=copy")
			u.try("StopDBCluster?DBClusterIdentifier=aura").is("InvalidDBClusterStateFault", "read replicas")
		},
	},
	{
		name: "promotion", setup: having(newDB, newReplica, "ModifyDBInstance?DBInstanceIdentifier=copy&PreferredMaintenanceWindow=mon:10:00-mon:10:30"), call: promote + "&BackupRetentionPeriod=3&PreferredBackupWindow=04:00-04:30",
		want: []string{"DBInstance/DBInstanceStatus=modifying", "!DBInstance/ReadReplicaSourceDBInstanceIdentifier", "DBInstance/BackupRetentionPeriod=3"},
		after: func(u *user) {
			u.settle()
			u.try(promote).is(badState, "not a read replica")
			u.do(showDB).has("DBInstances/DBInstance/ReadReplicaDBInstanceIdentifiers/ReadReplicaDBInstanceIdentifier#0")
		},
	},
	{
		name: "a deleted source leaves its replica independent", setup: having(newDB, newReplica), call: dropDB,
		after: func(u *user) {
			u.settle()
			u.do(with(showDB, "DBInstanceIdentifier=copy")).has("!DBInstances/DBInstance/ReadReplicaSourceDBInstanceIdentifier",
				"DBInstances/DBInstance/DBInstanceStatus=available")
		},
	},
	{
		name: "a source cannot go while its replica copies it", setup: func(u *user) { u.do(newDB); u.settle(); u.do(newReplica) },
		call: dropDB, code: badState, message: "copy",
	},
	{
		name: "a replica goes without a word on snapshots", setup: having(newDB, newReplica), call: "DeleteDBInstance?DBInstanceIdentifier=copy",
		want: []string{"DBInstance/DBInstanceStatus=deleting"},
	},
	{
		name: "a replica has no password of its own", setup: having(newDB, newReplica),
		call: "ModifyDBInstance?DBInstanceIdentifier=copy&MasterUserPassword=" + password, code: badMix, message: "source",
	},
	{name: "a source that is being created", setup: makeOnly(newDB), call: newReplica, code: badState},
	{name: "a source that is stopped", setup: having(newDB, stopDB), call: newReplica, code: badState},
	{name: "a member as source", setup: having(newCluster, newMember), call: with(newReplica, "SourceDBInstanceIdentifier=aura-1"), code: badMix, message: "SourceDBClusterIdentifier"},
	{name: "a cluster without instances as source", setup: having(newCluster), call: "CreateDBInstanceReadReplica?DBInstanceIdentifier=copy&SourceDBClusterIdentifier=aura", code: "InvalidDBClusterStateFault"},
	{name: "promotion while creating", setup: func(u *user) { u.do(newDB); u.settle(); u.do(newReplica) }, call: promote, code: badState},
	{name: "promotion of nothing", call: promote, code: "DBInstanceNotFound"},
	{name: "promotion with bad days", setup: having(newDB, newReplica), call: promote + "&BackupRetentionPeriod=99", code: badValue},
	{
		name: "fifteen are enough", setup: func(u *user) {
			u.do(newDB)
			u.settle()
			for n := range look.MaxFollowers {
				u.do(with(newReplica, "DBInstanceIdentifier=copy"+string(rune('a'+n))))
			}
		}, call: newReplica, code: "InstanceQuotaExceeded", message: "15 read replicas",
	},
}, refusals(having(newDB), newReplica, []refusal{
	{"-DBInstanceIdentifier", missing, "DBInstanceIdentifier"},
	{"-SourceDBInstanceIdentifier", badMix, "Exactly one"},
	{"SourceDBClusterIdentifier=aura", badMix, "Exactly one"},
	{"SourceDBInstanceIdentifier=nowhere", "DBInstanceNotFound", "nowhere"},
	{"-SourceDBInstanceIdentifier&SourceDBClusterIdentifier=nowhere", "DBClusterNotFoundFault", "nowhere"},
	{"DBInstanceIdentifier=db", "DBInstanceAlreadyExists", ""},
	{"DBInstanceIdentifier=1", badValue, "DBInstanceIdentifier"},
	{"DBInstanceClass=huge", badValue, "huge"},
	{"AllocatedStorage=10", badMix, "at least that of its source"},
	{"Port=1", badValue, "1150"},
	{"AvailabilityZone=mars", badValue, "mars"},
	{"ReplicaMode=mounted", badMix, "ReplicaMode"},
	{"DBParameterGroupName=mine", "DBParameterGroupNotFound", "mine"},
	{"OptionGroupName=mine", "OptionGroupNotFoundFault", "mine"},
})...)
