package server

import (
	"slices"
	"testing"

	"howdah/internal/control/plan"
)

const modifyDB = "ModifyDBInstance?DBInstanceIdentifier=db"

var modifyScenarios = slices.Concat(modifyOutcomes, modifyStates, refusals(having(newDB), modifyDB, []refusal{
	{"DBInstanceIdentifier=nowhere&MultiAZ=true", "DBInstanceNotFound", "nowhere"},
	{"-DBInstanceIdentifier&MultiAZ=true", missing, "DBInstanceIdentifier"},
	{"ApplyImmediately=true", badMix, "No modifications"},
	{"DBInstanceClass=huge", badValue, "huge"},
	{"AllocatedStorage=10", badMix, "storage size"},
	{"AllocatedStorage=x", badValue, "AllocatedStorage"},
	{"Iops=1000", badMix, "Iops"},
	{"StorageType=io2", badValue, "storage size"},
	{"MaxAllocatedStorage=10", badMix, "Max storage"},
	{"MaxAllocatedStorage=21", badMix, "Invalid max storage size for engine name postgres and storage type"},
	{"MasterUserPassword=short", badValue, "shorter than 8 characters."},
	{"DBPortNumber=80", badValue, "1150"},
	{"NewDBInstanceIdentifier=a--b", badValue, "NewDBInstanceIdentifier"},
	{"BackupRetentionPeriod=40", badValue, "40"},
	{"EngineVersion=16.1", badMix, "Cannot upgrade"},
	{"Engine=oracle-ee", badMix, "Engine"},
	{"DBParameterGroupName=mine", "DBParameterGroupNotFound", "mine"},
	{"OptionGroupName=mine", "OptionGroupNotFoundFault", "mine"},
	{"DBSubnetGroupName=mine", "DBSubnetGroupNotFoundFault", "mine"},
	{"PreferredBackupWindow=99:00-99:30", badValue, "backup window"},
	{"PreferredMaintenanceWindow=someday", badValue, "maintenance window"},
	{"MonitoringInterval=60", badMix, "MonitoringRoleARN"},
	{"PromotionTier=99", badValue, "99"},
	{"LicenseModel=mine", badMix, "license"},
	{"NetworkType=DUAL", "NetworkTypeNotSupported", "DUAL"},
	{"CACertificateIdentifier=mine", "CertificateNotFound", "mine"},
	{"CloudwatchLogsExportConfiguration.EnableLogTypes.member.1=audit", badMix, "audit"},
	{"VpcSecurityGroupIds.VpcSecurityGroupId.1=x", badValue, "x"},
	{"DBSecurityGroups.DBSecurityGroupName.1=x", "DBSecurityGroupNotFound", "x"},
	{"ManageMasterUserPassword=true&MasterUserPassword=another1", badMix, "MasterUserPassword"},
	{"ManageMasterUserPassword=false", badMix, "not currently managed"},
	{"RotateMasterUserPassword=true&ApplyImmediately=true", badMix, "not managed"},
	{"Domain=d-1", badMix, "Domain"},
	{"ReplicaMode=mounted", badMix, "ReplicaMode"},
}))

var modifyOutcomes = []scenario{
	{
		name: "a class waits for the window", setup: having(newDB), call: with(modifyDB, "DBInstanceClass=db.t3.small"),
		want: []string{
			"DBInstance/DBInstanceStatus=available", "DBInstance/DBInstanceClass=db.t3.micro",
			"DBInstance/PendingModifiedValues/DBInstanceClass=db.t3.small",
		},
		after: func(u *user) {
			u.do(with(modifyDB, "DBInstanceClass=db.t3.micro")).has("!DBInstance/PendingModifiedValues/DBInstanceClass")
		},
	},
	{
		name: "what waits is applied with the next change at once", setup: having(newDB, with(modifyDB, "DBInstanceClass=db.t3.small")),
		call: with(modifyDB, "AllocatedStorage=40", "ApplyImmediately=true"),
		want: []string{
			"DBInstance/DBInstanceStatus=modifying", "DBInstance/DBInstanceClass=db.t3.micro", "DBInstance/AllocatedStorage=20",
			"DBInstance/PendingModifiedValues/DBInstanceClass=db.t3.small", "DBInstance/PendingModifiedValues/AllocatedStorage=40",
		},
		after: func(u *user) {
			u.try(with(modifyDB, "MultiAZ=true")).is(badState, "available state")
			u.settle()
			u.do(showDB).has("DBInstances/DBInstance/DBInstanceClass=db.t3.small", "DBInstances/DBInstance/AllocatedStorage=40",
				"!DBInstances/DBInstance/PendingModifiedValues/DBInstanceClass")
			u.told("Applying modification to database instance class", "Applying modification to allocated storage")
		},
	},
	{
		name: "storage grows by a tenth at least", setup: having(with(newDB, "AllocatedStorage=1000")),
		call: with(modifyDB, "AllocatedStorage=1001", "ApplyImmediately=true"), want: []string{"DBInstance/PendingModifiedValues/AllocatedStorage=1100"},
	},
	{
		name: "iops need the size too", setup: having(with(newDB, "AllocatedStorage=100", "StorageType=io1", "Iops=1000")),
		call: with(modifyDB, "Iops=2000"), code: badMix, message: "both the storage size and iops",
	},
	{
		name: "Multi-AZ on", setup: having(newDB), call: with(modifyDB, "MultiAZ=true", "ApplyImmediately=true"),
		want: []string{"DBInstance/DBInstanceStatus=modifying", "DBInstance/MultiAZ=false", "DBInstance/PendingModifiedValues/MultiAZ=true"},
		after: func(u *user) {
			u.settle()
			u.do(showDB).has("DBInstances/DBInstance/MultiAZ=true", "DBInstances/DBInstance/SecondaryAvailabilityZone=us-east-1b")
			u.do(with(modifyDB, "MultiAZ=false", "ApplyImmediately=true"))
			u.settle()
			u.do(showDB).has("DBInstances/DBInstance/MultiAZ=false", "!DBInstances/DBInstance/SecondaryAvailabilityZone")
			u.told("Applying modification to convert to a Multi-AZ DB Instance", "Applying modification to convert to a standard (Single-AZ) DB Instance")
		},
	},
	{
		name: "a password at once, and never shown", setup: having(newDB), call: with(modifyDB, "MasterUserPassword=second."+marked),
		want: []string{"DBInstance/DBInstanceStatus=resetting-master-credentials", "DBInstance/PendingModifiedValues/MasterUserPassword=****"},
		after: func(u *user) {
			before := u.instanceRecord("db").Verifier
			u.settle()
			u.do(with(modifyDB, "MasterUserPassword=third."+marked))
			if u.instanceRecord("db").Verifier == before {
				u.Error("the verifier is the old one")
			}
		},
	},
	{
		name: "a port at once", setup: having(newDB), call: with(modifyDB, "DBPortNumber=6543"),
		want: []string{"DBInstance/DBInstanceStatus=modifying", "DBInstance/PendingModifiedValues/Port=6543", "DBInstance/Endpoint/Port=6543"},
	},
	{
		name: "a new name waits, and is taken at once when asked for", setup: having(newDB),
		call: with(modifyDB, "NewDBInstanceIdentifier=other", "ApplyImmediately=true"),
		want: []string{"DBInstance/DBInstanceIdentifier=other", "DBInstance/DBInstanceStatus=renaming"},
		after: func(u *user) {
			u.settle()
			u.try(showDB).is("DBInstanceNotFound", "db")
			u.do(with(showDB, "DBInstanceIdentifier=other")).has("DBInstances/DBInstance/DBInstanceStatus=available")
			u.told("Renamed DB instance from db to other.")
			u.do(newDB)
			u.settle()
			u.do(with(modifyDB, "NewDBInstanceIdentifier=third")).has("DBInstance/DBInstanceIdentifier=db", "DBInstance/PendingModifiedValues/DBInstanceIdentifier=third")
			u.try(with(modifyDB, "NewDBInstanceIdentifier=other")).is("DBInstanceAlreadyExists", "")
		},
	},
	{
		name: "settings at once", setup: having(newDB),
		call: with(modifyDB, "DeletionProtection=true", "CopyTagsToSnapshot=true", "EnablePerformanceInsights=false", "PubliclyAccessible=true",
			"MonitoringInterval=0", "MaxAllocatedStorage=500", "PreferredBackupWindow=01:00-01:30",
			"PreferredMaintenanceWindow=sun:02:00-sun:02:30"),
		want: []string{
			"DBInstance/DBInstanceStatus=available", "DBInstance/DeletionProtection=true", "DBInstance/MaxAllocatedStorage=500",
			"!DBInstance/EnabledCloudwatchLogsExports", "DBInstance/PreferredBackupWindow=01:00-01:30",
		},
		after: func(u *user) {
			u.do(with(modifyDB, "MonitoringInterval=0", "CloudwatchLogsExportConfiguration.DisableLogTypes.member.1=postgresql")).
				has("DBInstance/MonitoringInterval=0", "!DBInstance/MonitoringRoleArn", "!DBInstance/EnabledCloudwatchLogsExports")
		},
	},
	{
		name: "backups begin and end", setup: having(newDB), call: with(modifyDB, "BackupRetentionPeriod=7"),
		want: []string{"DBInstance/BackupRetentionPeriod=0", "DBInstance/PendingModifiedValues/BackupRetentionPeriod=7"},
		after: func(u *user) {
			u.do(with(modifyDB, "BackupRetentionPeriod=7", "ApplyImmediately=true")).has("DBInstance/BackupRetentionPeriod=7")
			u.do(with(modifyDB, "BackupRetentionPeriod=8")).has("DBInstance/BackupRetentionPeriod=8")
			u.do(with(modifyDB, "BackupRetentionPeriod=0", "ApplyImmediately=true")).has("DBInstance/BackupRetentionPeriod=0")
			u.told("nothing is backed up", "Disabled automated backups.")
		},
	},
}

// modifyStates: what an instance is like when it must not be changed.
var modifyStates = []scenario{
	{name: "while creating", setup: func(u *user) { u.do(newDB) }, call: with(modifyDB, "AllocatedStorage=40"), code: badState},
	{name: "while deleting", setup: func(u *user) { u.do(newDB); u.settle(); u.do(dropDB) }, call: with(modifyDB, "AllocatedStorage=40"), code: badState},
	{name: "while stopped", setup: having(newDB, "StopDBInstance?DBInstanceIdentifier=db"), call: with(modifyDB, "AllocatedStorage=40"), code: badState},
	{
		name: "without a primary",
		setup: func(u *user) {
			u.do(newDB)
			u.settle()
			u.see("db", func(s *scene) { s.down() })
		},
		call: with(modifyDB, "AllocatedStorage=40"), code: badState,
	},
	{
		name: "with a full disk, which is how it is mended",
		setup: func(u *user) {
			u.do(newDB)
			u.settle()
			u.see("db", full)
			u.do(showDB).has("DBInstances/DBInstance/DBInstanceStatus=" + plan.StorageFull)
		},
		call: with(modifyDB, "AllocatedStorage=40", "ApplyImmediately=true"), want: []string{"DBInstance/PendingModifiedValues/AllocatedStorage=40"},
	},
}

// TestWindow: what waits is applied when the window opens, not before, and once.
func TestWindow(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	monday := at(t, "2026-11-23T04:59:00Z")
	w.at(monday)
	u.do(with(newDB, "PreferredMaintenanceWindow=mon:05:00-mon:06:00", "PreferredBackupWindow=01:00-02:00"))
	u.do(newCluster)
	u.settle()
	u.do(with(modifyDB, "DBInstanceClass=db.t3.small", "NewDBInstanceIdentifier=later"))
	u.do("ModifyDBCluster?DBClusterIdentifier=aura&NewDBClusterIdentifier=corona&PreferredMaintenanceWindow=mon:05:00-mon:06:00&PreferredBackupWindow=01:00-02:00")
	w.server.rds.Upkeep.House().Keep(t.Context())
	u.do(showDB).has("DBInstances/DBInstance/DBInstanceClass=db.t3.micro")

	w.at(monday.Add(minute))
	w.server.rds.Upkeep.House().Keep(t.Context())
	u.do(with(showDB, "DBInstanceIdentifier=later")).has("DBInstances/DBInstance/DBInstanceStatus=modifying")
	u.do(showAll + "corona")
	u.settle()
	restarts := u.instanceRecord("later").Restart
	w.server.rds.Upkeep.House().Keep(t.Context())
	if got := u.instanceRecord("later"); got.Restart != restarts || got.Pending != nil || got.Class != "db.t3.small" {
		t.Errorf("after the window: %+v", got)
	}
}

// TestWindowThatCannot: a change that became impossible while it waited is told in
// the log, once, and goes on waiting.
func TestWindowThatCannot(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	w.at(at(t, "2026-11-23T05:30:00Z"))
	u.do(with(newDB, "PreferredMaintenanceWindow=tue:05:00-tue:06:00", "PreferredBackupWindow=01:00-02:00"))
	u.settle()
	u.do(with(modifyDB, "NewDBInstanceIdentifier=taken"))
	u.do(with(newDB, "DBInstanceIdentifier=taken"))
	w.at(at(t, "2026-11-24T05:30:00Z"))
	house := w.server.rds.Upkeep.House()
	for range 3 {
		house.Keep(t.Context())
	}
	if len(house.Failed) != 1 || u.instanceRecord("db").Pending == nil {
		t.Errorf("failed: %v", house.Failed)
	}
}
