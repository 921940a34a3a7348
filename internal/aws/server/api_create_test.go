package server

import (
	"strings"
	"testing"

	"howdah/internal/model/spec"
)

const (
	badValue = "InvalidParameterValue"
	badMix   = "InvalidParameterCombination"
	missing  = "MissingParameter"
	badState = "InvalidDBInstanceState"
)

var createScenarios = append(append([]scenario{
	{
		name: "an instance with defaults", call: newDB,
		want: []string{
			"DBInstance/DBInstanceStatus=creating", "DBInstance/DBInstanceIdentifier=db", "DBInstance/Engine=postgres",
			"DBInstance/EngineVersion=15.18", "DBInstance/MasterUsername=boss", "DBInstance/StorageType=gp2",
			"DBInstance/AllocatedStorage=20", "DBInstance/MultiAZ=false", "DBInstance/BackupRetentionPeriod=0",
			"DBInstance/DBParameterGroups/DBParameterGroup/DBParameterGroupName=default.postgres15",
			"DBInstance/OptionGroupMemberships/OptionGroupMembership/OptionGroupName=default:postgres-15",
			"DBInstance/DBSubnetGroup/Subnets/Subnet#3", "!DBInstance/Endpoint", "!DBInstance/PendingModifiedValues/Port",
			"DBInstance/ReadReplicaDBInstanceIdentifiers#1", "DBInstance/CACertificateIdentifier=howdah-ca",
		},
		after: func(u *user) {
			u.settle()
			u.do(showDB).has("DBInstances/DBInstance/DBInstanceStatus=available", "DBInstances/DBInstance/Endpoint/Port=5432")
		},
	},
	{
		name: "names are kept in lower case", call: with(newDB, "DBInstanceIdentifier=DB"),
		want: []string{"DBInstance/DBInstanceIdentifier=db"},
		after: func(u *user) {
			u.try(newDB).is("DBInstanceAlreadyExists", "")
			u.do(with(showDB, "DBInstanceIdentifier=Db"))
		},
	},
	{
		name: "a name that is taken", setup: having(newDB), call: with(newDB, "MultiAZ=true"), code: "DBInstanceAlreadyExists", message: "DB instance already exists",
	},
	{
		name: "a name in another region", setup: having(newDB), call: showDB,
		after: func(u *user) {
			u.region = "eu-west-1"
			u.try(showDB).is("DBInstanceNotFound", "DBInstance db not found.")
			u.do(newDB).has("DBInstance/DBInstanceArn=arn:aws:rds:eu-west-1:" + u.account + ":db:db")
		},
	},
	{
		name:  "everything that can be asked for",
		setup: func(u *user) { u.securityGroup("sg-1") },
		call: with(newDB, "MultiAZ=true", "EngineVersion=15", "Port=6000", "DBName=shop", "StorageType=gp3", "AllocatedStorage=400", "Iops=12000",
			"StorageThroughput=500", "MaxAllocatedStorage=1000", "BackupRetentionPeriod=7", "PreferredBackupWindow=03:00-04:00",
			"PreferredMaintenanceWindow=Mon:05:00-Mon:06:00", "DeletionProtection=true", "CopyTagsToSnapshot=true",
			"EnableIAMDatabaseAuthentication=true", "StorageEncrypted=false",
			"MonitoringInterval=0", "EnablePerformanceInsights=false", "PromotionTier=3",
			"VpcSecurityGroupIds.VpcSecurityGroupId.1=sg-1", "Tags.Tag.1.Key=team", "Tags.Tag.1.Value=blue", "PubliclyAccessible=true",
			"AutoMinorVersionUpgrade=false"),
		want: []string{
			"DBInstance/MultiAZ=true", "DBInstance/StorageThroughput=500", "DBInstance/Iops=12000", "DBInstance/DBName=shop",
			"DBInstance/PreferredMaintenanceWindow=mon:05:00-mon:06:00", "DBInstance/TagList/Tag/Value=blue",
			"DBInstance/VpcSecurityGroups/VpcSecurityGroupMembership/VpcSecurityGroupId=sg-1", "DBInstance/MaxAllocatedStorage=1000",
			"!DBInstance/EnabledCloudwatchLogsExports", "DBInstance/PerformanceInsightsEnabled=false", "DBInstance/AutoMinorVersionUpgrade=false",
		},
		after: func(u *user) {
			u.settle()
			u.do(showDB).has("DBInstances/DBInstance/Endpoint/Port=6000", "DBInstances/DBInstance/SecondaryAvailabilityZone=us-east-1b",
				"DBInstances/DBInstance/AvailabilityZone=us-east-1a")
			u.do("DescribeEvents?SourceType=db-instance").has("Events/Event[1]/Message=Automated backups were asked for, and this home has no repository for them: nothing is backed up. See howdah repository add.")
		},
	},
	{
		name: "a zone of its own", call: with(newDB, "AvailabilityZone=us-east-1c"),
		after: func(u *user) {
			u.settle()
			u.do(showDB).has("DBInstances/DBInstance/AvailabilityZone=us-east-1c", "!DBInstances/DBInstance/SecondaryAvailabilityZone")
		},
	},
	{
		name: "unknown parameters do not matter", call: with(newDB, "NoSuchParameter=1", "Tags.Tag.1.Key=a", "Tags.Tag.1.Extra=b"),
	},
}, refusals(nil, newDB, []refusal{
	{"-DBInstanceIdentifier", missing, "DBInstanceIdentifier"},
	{"-DBInstanceClass", missing, "DBInstanceClass"},
	{"-Engine", missing, "Engine"},
	{"-AllocatedStorage", badValue, "storage size"},
	{"-MasterUsername", badValue, "The parameter MasterUsername must be provided and must not be blank."},
	{"-MasterUserPassword", badValue, "The parameter MasterUserPassword must be provided and must not be blank."},
	{"MasterUserPassword=", badValue, "MasterUserPassword"},
	{"DBInstanceIdentifier=", badValue, "DBInstanceIdentifier"},
	{"DBInstanceIdentifier=1a", badValue, "begin with a letter"},
	{"DBInstanceIdentifier=a--b", badValue, "consecutive hyphens"},
	{"DBInstanceIdentifier=a-", badValue, "end with a hyphen"},
	{"DBInstanceIdentifier=a_b", badValue, "ASCII letters"},
	{"DBInstanceIdentifier=" + strings.Repeat("a", 64), badValue, "DBInstanceIdentifier"},
	{"Engine=mysql", badValue, "Invalid DB engine: mysql"},
	{"Engine=aurora-postgresql", badMix, "DBClusterIdentifier"},
	{"DBClusterIdentifier=nowhere", "DBClusterNotFoundFault", "nowhere"},
	{"EngineVersion=14.1", badMix, "Cannot find version 14.1"},
	{"DBInstanceClass=db.z9.huge", badValue, "Invalid DB Instance class"},
	{"AllocatedStorage=19", badValue, "storage type gp2: 19"},
	{"StorageType=gp3&AllocatedStorage=19", badValue, "storage type gp3: 19"},
	{"StorageType=io1&AllocatedStorage=99&Iops=1000", badValue, "storage type io1: 99"},
	{"StorageType=standard&AllocatedStorage=4", badValue, "storage type standard: 4"},
	{"StorageType=standard&AllocatedStorage=3073", badValue, "storage type standard: 3073"},
	{"AllocatedStorage=65537", badValue, "65537"},
	{"AllocatedStorage=twenty", badValue, "AllocatedStorage"},
	{"AllocatedStorage=99999999999", badValue, "AllocatedStorage"},
	{"StorageType=floppy", badValue, "floppy"},
	{"StorageType=io1&AllocatedStorage=100", badMix, "Iops"},
	{"StorageType=gp2&Iops=1000", badMix, "Iops"},
	{"StorageThroughput=125", badMix, "StorageThroughput"},
	{"StorageType=io1&AllocatedStorage=100&Iops=10", badValue, "Iops"},
	{"MaxAllocatedStorage=10", badMix, "Max storage size must be greater than storage size"},
	{"MaxAllocatedStorage=21", badMix, "Invalid max storage size for engine name postgres and storage type"},
	{"MasterUsername=rdsadmin", badValue, "reserved"},
	{"MasterUsername=pg_boss", badValue, "reserved"},
	{"MasterUsername=1boss", badValue, "MasterUsername"},
	{"MasterUserPassword=short", badValue, "The parameter MasterUserPassword is not a valid password because it is shorter than 8 characters."},
	{"MasterUserPassword=with/slash." + marked, badValue, "printable"},
	{"MasterUserPassword=with%22quote." + marked, badValue, "printable"},
	{"Port=80", badValue, "1150"},
	{"Port=65536", badValue, "65535"},
	{"DBName=template1", badValue, "template1"},
	{"DBName=1shop", badValue, "1shop"},
	{"MultiAZ=maybe", badValue, "MultiAZ"},
	{"BackupRetentionPeriod=36", badValue, "36"},
	{"BackupRetentionPeriod=-1", badValue, "-1"},
	{"PreferredBackupWindow=3:00-4:00", badValue, "backup window"},
	{"PreferredBackupWindow=03:00-03:29", badValue, "30 minutes"},
	{"PreferredMaintenanceWindow=mon:03:00", badValue, "Should be specified as a range ddd:hh24:mi-ddd:hh24:mi (24H Clock UTC). Example: Sun:23:45-Mon:00:15"},
	{"PreferredMaintenanceWindow=sim:16:00-mon:16:30", badValue, "Invalid day:hour:minute value"},
	{"PreferredMaintenanceWindow=mon:16:00-mon:16:05", badValue, "The maintenance window must be at least 30 minutes."},
	{"PreferredMaintenanceWindow=mon:03:00-tue:03:00", badValue, "Maintenance window must be less than 24 hours."},
	{"PreferredBackupWindow=03:00-04:00&PreferredMaintenanceWindow=mon:03:30-mon:04:30", badValue, "overlap"},
	{"DBParameterGroupName=mine", "DBParameterGroupNotFound", "mine"},
	{"DBSubnetGroupName=mine", "DBSubnetGroupNotFoundFault", "mine"},
	{"OptionGroupName=mine", "OptionGroupNotFoundFault", "mine"},
	{"DBSecurityGroups.DBSecurityGroupName.1=old", "DBSecurityGroupNotFound", "old"},
	{"VpcSecurityGroupIds.VpcSecurityGroupId.1=default", badValue, "default"},
	{"AvailabilityZone=us-east-1z", badValue, "us-east-1z"},
	{"AvailabilityZone=eu-west-1a", badValue, "eu-west-1a"},
	{"AvailabilityZone=us-east-1a&MultiAZ=true", badMix, "Multi-AZ"},
	{"MonitoringInterval=7&MonitoringRoleArn=r", badValue, "MonitoringInterval"},
	{"MonitoringInterval=60", badMix, "MonitoringRoleARN"},
	{"MonitoringRoleArn=r", badMix, "MonitoringInterval"},
	{"NetworkType=DUAL", "NetworkTypeNotSupported", "DUAL"},
	{"NetworkType=IPX", badValue, "IPX"},
	{"CACertificateIdentifier=rds-ca-2019", "CertificateNotFound", "rds-ca-2019"},
	{"LicenseModel=bring-your-own-license", badMix, "license"},
	{"PromotionTier=16", badValue, "16"},
	{"EnableCloudwatchLogsExports.member.1=slowquery", badMix, "slowquery"},
	{"Tags.Tag.1.Key=aws:x&Tags.Tag.1.Value=y", badValue, "aws:"},
	{"Tags.Tag.1.Key=howdah:unknown&Tags.Tag.1.Value=y", badValue, "howdah:unknown"},
	{"Tags.Tag.1.Key=a&Tags.Tag.2.Key=a", badValue, "Duplicate"},
	{"ManageMasterUserPassword=true", badMix, "MasterUserPassword"},
	{"-MasterUserPassword&ManageMasterUserPassword=true&MasterUserSecretKmsKeyId=alias/mine", "KMSKeyNotAccessibleFault", "alias/mine"},
	{"-MasterUserPassword&ManageMasterUserPassword=false", badValue, "MasterUserPassword"},
	{"Domain=d-1", badMix, "Domain"},
	{"Timezone=UTC", badMix, "Timezone"},
	{"CharacterSetName=UTF8", badMix, "CharacterSetName"},
	{"DedicatedLogVolume=true", badMix, "DedicatedLogVolume"},
	{"MultiTenant=true", badMix, "MultiTenant"},
	{"ProcessorFeatures.ProcessorFeature.1.Name=coreCount&ProcessorFeatures.ProcessorFeature.1.Value=1", badMix, "ProcessorFeatures"},
})...), memberRefusals...)

// memberRefusals: what belongs to the cluster is refused of its members.
var memberRefusals = refusals(having(newCluster), newMember, []refusal{
	{"Engine=postgres", badMix, "doesn't match the engine name"},
	{"MasterUsername=me", badMix, "master username"},
	{"MasterUserPassword=" + password, badMix, "master user password"},
	{"BackupRetentionPeriod=3", badMix, "backup retention"},
	{"MultiAZ=true", badMix, "Multi-AZ"},
	{"EngineVersion=14", badMix, "engine version"},
	{"DBName=shop", badMix, "database name"},
	{"Port=9999", badMix, "port"},
	{"StorageEncrypted=true", badMix, "storage encryption"},
	{"PromotionTier=16", badValue, "16"},
	{"DBInstanceClass=huge", badValue, "huge"},
	{"DBInstanceIdentifier=1", badValue, "DBInstanceIdentifier"},
	{"AvailabilityZone=us-east-1x", badValue, "us-east-1x"},
	{"DBParameterGroupName=mine", "DBParameterGroupNotFound", "mine"},
})

// TestNoRoom: without overcommit, what no host has room for is refused at once,
// and a lost host has room for nothing.
func TestNoRoom(t *testing.T) {
	w := newWorld(t)
	w.server.looks.Policy.Overcommit = false
	u := w.user(t)
	u.try(with(newDB, "DBInstanceClass=db.m5.2xlarge")).is("InsufficientDBInstanceCapacity", "too few CPUs")
	u.try(with(newDB, "DBInstanceClass=db.r5.large")).is("InsufficientDBInstanceCapacity", "too little memory")
	w.lose("b")
	w.lose("c")
	u.try(with(newDB, "MultiAZ=true")).is("InsufficientDBInstanceCapacity", "host-b is lost")
	u.try(newTrio).is("InsufficientDBInstanceCapacity", "host-c is lost")
	u.do(newDB)
	u.settle()
	u.try("ModifyDBInstance?DBInstanceIdentifier=db&MultiAZ=true").is("InsufficientDBInstanceCapacity", "host-b is lost")
	u.try("ModifyDBInstance?DBInstanceIdentifier=db&DBInstanceClass=db.r5.large").is("InsufficientDBInstanceCapacity", "memory")
	w.lose("a")
	u.try(with(newDB, "DBInstanceIdentifier=other")).is("InsufficientDBInstanceCapacity", "host-a is lost")
}

// TestNoHosts: a home that nobody has joined says so.
func TestNoHosts(t *testing.T) {
	w := newWorld(t)
	for _, zone := range []string{"a", "b", "c"} {
		w.unhost(zone)
	}
	u := w.user(t)
	u.try(newDB).is("ServiceUnavailable", "No host has joined yet")
	u.do("DescribeDBInstances").has("DBInstances/DBInstance#0")
}

// TestAddressesRunOut: an answer, not a failure, and a deleted resource gives its
// address back.
func TestAddressesRunOut(t *testing.T) {
	w := newWorld(t)
	w.server.pools.Private = mustPool(t, "127.77.1.0/30")
	u := w.user(t)
	u.do(newDB)
	u.do(with(newDB, "DBInstanceIdentifier=two"))
	u.try(with(newDB, "DBInstanceIdentifier=three")).is("ServiceUnavailable", "127.77.1.0/30")
	u.do(dropDB)
	u.settle()
	u.do(with(newDB, "DBInstanceIdentifier=three"))
	seen := map[string]bool{}
	for _, name := range []string{"two", "three"} {
		seen[u.instanceRecord(name).Address] = true
	}
	if len(seen) != 2 || seen[""] {
		t.Errorf("addresses %v", seen)
	}
	if (u.instanceRecord("two").Scope != spec.Scope{Account: u.account, Region: testRegion}) {
		t.Error("a record in another scope")
	}
}
