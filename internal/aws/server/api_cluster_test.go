package server

import (
	"slices"

	"howdah/internal/aws/rds/look"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
)

const (
	badCluster = "InvalidDBClusterStateFault"
	noCluster  = "DBClusterNotFoundFault"
	showAura   = showAll + "aura"
	second     = "CreateDBInstance?DBInstanceIdentifier=aura-2&DBInstanceClass=db.t3.micro&Engine=aurora-postgresql&DBClusterIdentifier=aura&PromotionTier=0"
	dropAura   = "DeleteDBCluster?DBClusterIdentifier=aura&SkipFinalSnapshot=true"
	failover   = "FailoverDBCluster?DBClusterIdentifier=aura"
	stopAura   = "StopDBCluster?DBClusterIdentifier=aura"
	startAura  = "StartDBCluster?DBClusterIdentifier=aura"
	modifyAura = "ModifyDBCluster?DBClusterIdentifier=aura"
)

var clusterScenarios = slices.Concat([]scenario{
	{
		name: "a cluster exists before it has instances", call: newCluster + "&DatabaseName=app",
		want: []string{
			"DBCluster/Status=creating", "DBCluster/Engine=aurora-postgresql", "DBCluster/EngineMode=provisioned", "DBCluster/Port=5432",
			"DBCluster/DBClusterParameterGroup=default.aurora-postgresql15", "DBCluster/BackupRetentionPeriod=1", "DBCluster/MultiAZ=false",
			"DBCluster/AvailabilityZones/AvailabilityZone#3", "DBCluster/DBClusterMembers#1", "!DBCluster/PendingModifiedValues",
		},
		after: func(u *user) {
			u.do(showAura).has("DBClusters/DBCluster/Status=available")
			u.told("DB cluster created")
		},
	},
	{
		name: "the first instance is the writer", setup: having(newCluster, newMember), call: second,
		want: []string{"DBInstance/DBClusterIdentifier=aura", "DBInstance/DBInstanceStatus=creating", "DBInstance/PromotionTier=0", "DBInstance/StorageType=aurora", "!DBInstance/Endpoint"},
		after: func(u *user) {
			u.settle()
			u.do(showAura).has("DBClusters/DBCluster/DBClusterMembers/DBClusterMember#2",
				"DBClusters/DBCluster/DBClusterMembers/DBClusterMember[1]/IsClusterWriter=true",
				"DBClusters/DBCluster/DBClusterMembers/DBClusterMember[2]/IsClusterWriter=false", "DBClusters/DBCluster/MultiAZ=true")
			u.do(with(showDB, "DBInstanceIdentifier=aura-2")).has("DBInstances/DBInstance/Endpoint/Port=5432", "DBInstances/DBInstance/DBInstanceStatus=available")
			u.told("DB instance created", "Cluster topology is updated.")
		},
	},
	{
		name: "an instance that is available has an endpoint at once", setup: having(newCluster), call: newMember,
		want: []string{"DBInstance/DBInstanceStatus=creating", "!DBInstance/Endpoint"},
		after: func(u *user) {
			u.see("aura", nil)
			u.do(with(showDB, "DBInstanceIdentifier=aura-1")).has("DBInstances/DBInstance/DBInstanceStatus=available", "DBInstances/DBInstance/Endpoint/Port=5432")
		},
	},
	{name: "a name that is taken", setup: having(newCluster), call: newCluster, code: "DBClusterAlreadyExistsFault"},
	{name: "a member's name that is taken", setup: having(newCluster, newMember), call: newMember, code: "DBInstanceAlreadyExists"},
	{
		name: "zones of its own", call: newCluster + "&AvailabilityZones.AvailabilityZone.1=us-east-1c",
		want: []string{"DBCluster/AvailabilityZones/AvailabilityZone=us-east-1c"},
		after: func(u *user) {
			u.do(newMember)
			u.settle()
			u.do(with(showDB, "DBInstanceIdentifier=aura-1")).has("DBInstances/DBInstance/AvailabilityZone=us-east-1c")
		},
	},
	{
		name: "sixteen instances are enough", setup: func(u *user) {
			u.do(newCluster)
			for n := range look.MaxFollowers + 1 {
				u.do(with(newMember, "DBInstanceIdentifier=aura-"+string(rune('a'+n))))
			}
		}, call: newMember, code: "InstanceQuotaExceeded",
	},
	{
		name: "a failover to the instance that was asked for", setup: having(newCluster, newMember, second), call: failover + "&TargetDBInstanceIdentifier=aura-2",
		want: []string{"DBCluster/Status=failing-over"},
		after: func(u *user) {
			u.try(failover).is(badCluster, "failing-over")
			u.try(modifyAura+"&Port=6000").is(badCluster, "")
			u.settle()
			u.see("aura", func(s *scene) { s.promote("m2") })
			u.do(showAura).has("DBClusters/DBCluster/DBClusterMembers/DBClusterMember[2]/IsClusterWriter=true")
			u.do(failover)
		},
	},
	{
		name: "a failover to one on the writer's host, which stands aside", setup: func(u *user) {
			having(newCluster, newMember, second)(u)
			u.see("aura", func(s *scene) {
				s.sync = nil
				s.layout.Members[1].NoSync = true
			})
		}, call: failover + "&TargetDBInstanceIdentifier=aura-2", want: []string{"DBCluster/Status=failing-over"},
	},
	{
		name: "a failover just before the reader is in sync", setup: func(u *user) {
			having(newCluster, newMember, second)(u)
			u.see("aura", func(s *scene) { s.sync = nil })
		}, call: failover, want: []string{"DBCluster/Status=failing-over"},
	},
	{
		name: "a failover to a reader that does not receive", setup: func(u *user) {
			having(newCluster, newMember, second)(u)
			u.see("aura", func(s *scene) {
				s.sync = nil
				s.each(func(r *member.Report) { r.Streaming = false })
			})
		}, call: failover, code: badCluster, message: "no reader",
	},
	{
		name: "a failover to one that leaves", setup: func(u *user) {
			having(newCluster, newMember, second)(u)
			u.see("aura", func(s *scene) {
				s.sync = nil
				s.layout.Members[1].NoSync, s.layout.Members[1].Going = true, plan.Replaced
			})
		}, call: failover, code: badCluster, message: "no reader",
	},
	{name: "a failover without readers", setup: having(newCluster, newMember), call: failover, code: badCluster, message: "no reader"},
	{name: "a failover without instances", setup: having(newCluster), call: failover, code: badCluster},
	{name: "a failover to the writer", setup: having(newCluster, newMember, second), call: failover + "&TargetDBInstanceIdentifier=aura-1", code: badState, message: "already the writer"},
	{name: "a failover to nobody", setup: having(newCluster, newMember), call: failover + "&TargetDBInstanceIdentifier=nobody", code: "DBInstanceNotFound"},
	{name: "a failover to a stranger", setup: having(newCluster, newMember, newDB), call: failover + "&TargetDBInstanceIdentifier=db", code: badState, message: "not in the DB cluster"},
	{
		name: "a failover to one that must not", setup: having(newCluster, newMember, second+"&Tags.Tag.1.Key=howdah:promotable&Tags.Tag.1.Value=false"),
		call: failover + "&TargetDBInstanceIdentifier=aura-2", code: badState, message: "howdah:promotable",
		after: func(u *user) { u.try(failover).is(badCluster, "no reader") },
	},
	{
		name: "a failover to one that is down", setup: func(u *user) {
			having(newCluster, newMember, second)(u)
			u.see("aura", func(s *scene) {
				s.each(func(r *member.Report) { r.Ready = r.Ready && !r.InRecovery })
			})
		}, call: failover + "&TargetDBInstanceIdentifier=aura-2", code: badState, message: "available",
	},
	{
		name: "one instance reboots", setup: having(newCluster, newMember, second), call: "RebootDBInstance?DBInstanceIdentifier=aura-2",
		want: []string{"DBInstance/DBInstanceStatus=rebooting"},
		after: func(u *user) {
			u.do(with(showDB, "DBInstanceIdentifier=aura-1")).has("DBInstances/DBInstance/DBInstanceStatus=available")
		},
	},
	{name: "a member has no failover of its own", setup: having(newCluster, newMember), call: "RebootDBInstance?DBInstanceIdentifier=aura-1&ForceFailover=true", code: badMix},
	{name: "RebootDBCluster is for the other kind", setup: having(newCluster), call: "RebootDBCluster?DBClusterIdentifier=aura", code: badMix},
	{
		name: "stop and start", setup: having(newCluster, newMember, second), call: stopAura, want: []string{"DBCluster/Status=stopping"},
		after: func(u *user) {
			u.try(newCluster).is("DBClusterAlreadyExistsFault", "")
			u.settle()
			u.do(with(showDB, "DBInstanceIdentifier=aura-2")).has("DBInstances/DBInstance/DBInstanceStatus=stopped")
			for _, call := range []string{stopAura, failover, dropAura, modifyAura + "&Port=6000", with(newMember, "DBInstanceIdentifier=aura-3")} {
				u.try(call).is(badCluster, "stopped")
			}
			u.try("DeleteDBInstance?DBInstanceIdentifier=aura-2").is(badCluster, "stopped")
			u.do(startAura).has("DBCluster/Status=starting")
			u.settle()
			u.try(startAura).is(badCluster, "available")
		},
	},
	{
		name: "stop while an instance is busy", setup: func(u *user) { having(newCluster, newMember)(u); u.do(second) }, call: stopAura, code: badState, message: "aura-2",
	},
	{
		name: "delete with instances", setup: having(newCluster, newMember), call: dropAura, code: badCluster, message: "still contains DB instances",
		after: func(u *user) {
			u.do("DeleteDBInstance?DBInstanceIdentifier=aura-1")
			u.settle()
			u.do(dropAura).has("DBCluster/Status=deleting")
			u.try(dropAura).is(badCluster, "")
			u.try(newMember).is(badCluster, "deleting")
			u.settle()
			u.try(showAura).is(noCluster, "DBCluster aura not found.")
		},
	},
	{name: "delete a protected one", setup: having(newCluster + "&DeletionProtection=true"), call: dropAura, code: badMix, message: "protected"},
	{name: "delete without a word on snapshots", setup: having(newCluster), call: with(dropAura, "-SkipFinalSnapshot"), code: badMix},
	{name: "delete a member with a snapshot", setup: having(newCluster, newMember), call: "DeleteDBInstance?DBInstanceIdentifier=aura-1&FinalDBSnapshotIdentifier=s", code: badMix},
	{name: "nothing there", call: showAura, code: noCluster},
	{name: "nothing to stop", call: stopAura, code: noCluster},
	{name: "nothing to start", call: startAura, code: noCluster},
	{name: "nothing to delete", call: dropAura, code: noCluster},
	{name: "nothing to fail over", call: failover, code: noCluster},
	{name: "nothing to modify", call: modifyAura + "&Port=6000", code: noCluster},
}, refusals(nil, newCluster, []refusal{
	{"-DBClusterIdentifier", missing, "DBClusterIdentifier"},
	{"-Engine", missing, "Engine"},
	{"-MasterUsername", badValue, "The parameter MasterUsername must be provided and must not be blank."},
	{"-MasterUserPassword", badValue, "The parameter MasterUserPassword must be provided and must not be blank."},
	{"Engine=nonsense", badValue, "Invalid DB engine: nonsense"},
	{"Engine=aurora-mysql", badValue, "aurora-mysql"},
	{"DBClusterIdentifier=-", badValue, "DBClusterIdentifier"},
	{"EngineVersion=9.6", badMix, "9.6"},
	{"DBClusterParameterGroupName=mine", "DBClusterParameterGroupNotFound", "mine"},
	{"DBSubnetGroupName=mine", "DBSubnetGroupNotFoundFault", "mine"},
	{"OptionGroupName=mine", "OptionGroupNotFoundFault", "mine"},
	{"Port=1", badValue, "1150"},
	{"BackupRetentionPeriod=0", badValue, "0"},
	{"StorageType=gp3", badValue, "gp3"},
	{"DBClusterInstanceClass=db.m5.large", badMix, "DBClusterInstanceClass"},
	{"AllocatedStorage=100", badMix, "AllocatedStorage"},
	{"Iops=1000", badMix, "Iops"},
	{"AvailabilityZones.AvailabilityZone.1=mars", badValue, "mars"},
	{"AvailabilityZones.AvailabilityZone.1=a&AvailabilityZones.AvailabilityZone.2=b&AvailabilityZones.AvailabilityZone.3=c&AvailabilityZones.AvailabilityZone.4=d", badValue, "three"},
	{"ServerlessV2ScalingConfiguration.MinCapacity=0.5", badMix, "ServerlessV2"},
	{"EngineMode=serverless", badMix, "EngineMode"},
	{"GlobalClusterIdentifier=g", badMix, "GlobalClusterIdentifier"},
	{"BacktrackWindow=60", badMix, "BacktrackWindow"},
	{"EnableHttpEndpoint=true", badMix, "EnableHttpEndpoint"},
	{"ReplicationSourceIdentifier=arn", badMix, "ReplicationSourceIdentifier"},
	{"EnableCloudwatchLogsExports.member.1=audit", badMix, "audit"},
	{"VpcSecurityGroupIds.VpcSecurityGroupId.1=x", badValue, "x"},
}))

var modifyClusterScenarios = slices.Concat([]scenario{
	{
		name: "a password at once", setup: having(newCluster, newMember), call: modifyAura + "&MasterUserPassword=second." + marked,
		want: []string{"DBCluster/Status=resetting-master-credentials", "DBCluster/PendingModifiedValues/MasterUserPassword=****"},
	},
	{
		name: "a port moves all endpoints", setup: having(newCluster, newMember), call: modifyAura + "&Port=6000", want: []string{"DBCluster/Status=modifying", "DBCluster/Port=6000"},
		after: func(u *user) {
			u.settle()
			u.do(with(showDB, "DBInstanceIdentifier=aura-1")).has("DBInstances/DBInstance/Endpoint/Port=6000")
		},
	},
	{
		name: "a new name", setup: having(newCluster, newMember), call: modifyAura + "&NewDBClusterIdentifier=corona&ApplyImmediately=true",
		want: []string{"DBCluster/DBClusterIdentifier=corona", "DBCluster/Status=renaming"},
		after: func(u *user) {
			u.settle()
			u.do(with(showDB, "DBInstanceIdentifier=aura-1")).has("DBInstances/DBInstance/DBClusterIdentifier=corona")
			u.told("Renamed cluster from aura to corona.")
			u.do(newCluster)
			u.try(modifyAura+"&NewDBClusterIdentifier=corona").is("DBClusterAlreadyExistsFault", "")
			u.do(modifyAura + "&NewDBClusterIdentifier=later").has("DBCluster/PendingModifiedValues/DBClusterIdentifier=later")
		},
	},
	{
		name: "settings at once", setup: having(newCluster),
		call: modifyAura + "&DeletionProtection=true&BackupRetentionPeriod=9&StorageType=aurora-iopt1&ApplyImmediately=true&CopyTagsToSnapshot=true",
		want: []string{"DBCluster/Status=available", "DBCluster/DeletionProtection=true", "DBCluster/BackupRetentionPeriod=9", "DBCluster/StorageType=aurora-iopt1"},
	},
	{
		name: "the class of a member", setup: having(newCluster, newMember, second), call: "ModifyDBInstance?DBInstanceIdentifier=aura-2&DBInstanceClass=db.t3.medium&ApplyImmediately=true",
		want: []string{"DBInstance/DBInstanceStatus=modifying", "DBInstance/DBInstanceClass=db.t3.micro", "DBInstance/PendingModifiedValues/DBInstanceClass=db.t3.medium"},
		after: func(u *user) {
			u.settle()
			u.do(with(showDB, "DBInstanceIdentifier=aura-2")).has("DBInstances/DBInstance/DBInstanceStatus=available", "DBInstances/DBInstance/DBInstanceClass=db.t3.medium")
		},
	},
}, refusals(having(newCluster), modifyAura, []refusal{
	{"ApplyImmediately=true", badMix, "No modifications"},
	{"Port=1", badValue, "1150"},
	{"MasterUserPassword=short", badValue, "shorter than 8 characters."},
	{"BackupRetentionPeriod=0", badValue, "0"},
	{"NewDBClusterIdentifier=a--b", badValue, "NewDBClusterIdentifier"},
	{"EngineVersion=16.1", badMix, "Cannot upgrade"},
	{"DBClusterParameterGroupName=mine", "DBClusterParameterGroupNotFound", "mine"},
	{"DBInstanceParameterGroupName=mine", "DBParameterGroupNotFound", "mine"},
	{"OptionGroupName=mine", "OptionGroupNotFoundFault", "mine"},
	{"DBClusterInstanceClass=db.m5.large", badMix, "DBClusterInstanceClass"},
	{"StorageType=gp3", "StorageTypeNotSupported", "gp3"},
	{"ServerlessV2ScalingConfiguration.MaxCapacity=1", badMix, "ServerlessV2"},
	{"EnableHttpEndpoint=true", badMix, "EnableHttpEndpoint"},
	{"CloudwatchLogsExportConfiguration.EnableLogTypes.member.1=audit", badMix, "audit"},
}), memberModifications)

// memberModifications: what a member has of its cluster is changed there.
var memberModifications = refusals(having(newCluster, newMember), "ModifyDBInstance?DBInstanceIdentifier=aura-1", []refusal{
	{"MasterUserPassword=" + password, badMix, "master user password"},
	{"DBPortNumber=6000", badMix, "port"},
	{"BackupRetentionPeriod=3", badMix, "backup retention"},
	{"AllocatedStorage=100", badMix, "storage"},
	{"EngineVersion=15", badMix, "engine version"},
	{"MultiAZ=true", badMix, "Multi-AZ"},
	{"DeletionProtection=true", badMix, "deletion protection"},
})

var trioScenarios = slices.Concat([]scenario{
	{
		name: "three instances by itself", call: newTrio,
		want: []string{"DBCluster/Status=creating", "DBCluster/MultiAZ=true", "DBCluster/DBClusterInstanceClass=db.m5.large", "DBCluster/StorageType=io1", "DBCluster/Iops=1000"},
		after: func(u *user) {
			u.settle()
			u.do(showAll+"trio").has("DBClusters/DBCluster/Status=available", "DBClusters/DBCluster/DBClusterMembers/DBClusterMember#3")
			u.do("DescribeDBInstances?Filters.Filter.1.Name=db-cluster-id&Filters.Filter.1.Values.Value.1=trio").has("DBInstances/DBInstance#3",
				"DBInstances/DBInstance[3]/DBInstanceIdentifier=trio-instance-3", "DBInstances/DBInstance[3]/DBInstanceClass=db.m5.large")
			u.try("DeleteDBInstance?DBInstanceIdentifier=trio-instance-1&SkipFinalSnapshot=true").is(badState, "delete the cluster")
			u.try("ModifyDBInstance?DBInstanceIdentifier=trio-instance-1&DBInstanceClass=db.m5.xlarge").is(badMix, "modify the cluster")
			u.try(with(newMember, "DBClusterIdentifier=trio", "Engine=postgres")).is(badMix, "three of its own")
			u.try("CreateDBClusterEndpoint?DBClusterIdentifier=trio&DBClusterEndpointIdentifier=e&EndpointType=ANY").is(badMix, "only available for Aurora")
		},
	},
	{
		name: "all reboot", setup: having(newTrio), call: "RebootDBCluster?DBClusterIdentifier=trio", want: []string{"DBCluster/Status=rebooting"},
		after: func(u *user) {
			u.try("RebootDBCluster?DBClusterIdentifier=trio").is(badCluster, "rebooting")
			u.settle()
			u.do(showAll + "trio").has("DBClusters/DBCluster/Status=available")
		},
	},
	{
		name: "a class for all", setup: having(newTrio), call: "ModifyDBCluster?DBClusterIdentifier=trio&DBClusterInstanceClass=db.m5.xlarge&ApplyImmediately=true",
		want: []string{"DBCluster/Status=modifying", "DBCluster/DBClusterInstanceClass=db.m5.large"},
		after: func(u *user) {
			u.settle()
			u.do(with(showDB, "DBInstanceIdentifier=trio-instance-2")).has("DBInstances/DBInstance/DBInstanceClass=db.m5.xlarge", "DBInstances/DBInstance/DBInstanceStatus=available")
		},
	},
	{
		name: "storage for all", setup: having(newTrio), call: "ModifyDBCluster?DBClusterIdentifier=trio&AllocatedStorage=200&Iops=2000&ApplyImmediately=true",
		want: []string{"DBCluster/AllocatedStorage=100", "DBCluster/PendingModifiedValues/AllocatedStorage=200", "DBCluster/PendingModifiedValues/Iops=2000"},
		after: func(u *user) {
			u.settle()
			u.do(with(showDB, "DBInstanceIdentifier=trio-instance-2")).has("DBInstances/DBInstance/AllocatedStorage=200", "DBInstances/DBInstance/Iops=2000")
		},
	},
	{
		name: "deleted with its instances", setup: having(newTrio), call: "DeleteDBCluster?DBClusterIdentifier=trio&SkipFinalSnapshot=true",
		want: []string{"DBCluster/Status=deleting"},
		after: func(u *user) {
			u.do(with(showDB, "DBInstanceIdentifier=trio-instance-2")).has("DBInstances/DBInstance/DBInstanceStatus=deleting")
			u.settle()
			u.do("DescribeDBInstances").has("DBInstances/DBInstance#0")
		},
	},
	{
		name: "an instance has one of its names", setup: having(with(newDB, "DBInstanceIdentifier=trio-instance-2")), call: newTrio,
		after: func(u *user) {
			u.do("DescribeDBClusters?DBClusterIdentifier=trio").has("DBClusters/DBCluster/DBClusterMembers/DBClusterMember#3",
				"DBClusters/DBCluster/DBClusterMembers/DBClusterMember[3]/DBInstanceIdentifier=trio-instance-4")
		},
	},
}, refusals(nil, newTrio, []refusal{
	{"-DBClusterInstanceClass", missing, "DBClusterInstanceClass"},
	{"-AllocatedStorage", missing, "AllocatedStorage"},
	{"DBClusterInstanceClass=huge", badValue, "huge"},
	{"AllocatedStorage=1", badValue, "1"},
	{"-Iops", badMix, "Iops"},
	{"StorageType=aurora", badValue, "aurora"},
	{"AvailabilityZones.AvailabilityZone.1=us-east-1a", badMix, "AvailabilityZones"},
	{"DBClusterIdentifier=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", badValue, "52"},
}))
