package server

import "maps"

// The calls of actions on backups, for the sweeps of bad and of odd input: see valid, right and
// takes.
func init() {
	maps.Copy(valid, validOfBackups)
	maps.Copy(right, rightOfBackups)
	for parameter, kinds := range takesOfBackups {
		if takes[parameter] == nil {
			takes[parameter] = map[string]bool{}
		}
		for _, kind := range kinds {
			takes[parameter][kind] = true
		}
	}
}

// withBackups gives the home of a sweep backups, and a snapshot of each kind.
func (s *sweep) withBackups() {
	s.Helper()
	having(newSnap, newAuraSnap)(s.user)
	having(with(newDB, backed, "DBInstanceIdentifier=lost"), with(newCluster, "DBClusterIdentifier=gone"), with(newMember, "DBInstanceIdentifier=gone-1", "DBClusterIdentifier=gone"))(s.user)
	s.backedUp("lost", hour)
	s.automatedOf("lost")
	s.automatedOf("gone")
	having("DeleteDBInstance?DBInstanceIdentifier=gone-1&SkipFinalSnapshot=true")(s.user)
	id, cluster := s.instanceRecord("lost").ResourceID, s.clusterRecord("gone").ResourceID
	having("DeleteDBInstance?DBInstanceIdentifier=lost&SkipFinalSnapshot=true&"+keepBackups, "DeleteDBCluster?DBClusterIdentifier=gone&SkipFinalSnapshot=true&"+keepBackups)(s.user)
	rightOfRetained["DeleteDBInstanceAutomatedBackup"] = "DeleteDBInstanceAutomatedBackup?DbiResourceId=" + id
	rightOfRetained["DeleteDBClusterAutomatedBackup"] = "DeleteDBClusterAutomatedBackup?DbClusterResourceId=" + cluster
	maps.Copy(right, rightOfRetained)
	far := *s.user
	far.region = "us-west-2"
	having(with(newDB, backed, "DBInstanceIdentifier=faraway"), with(newDB, backed, "DBInstanceIdentifier=copied"))(&far)
	s.do(with(replicate, "SourceDBInstanceArn=arn:aws:rds:us-west-2:{account}:db:copied"))
	s.backedUp("db", hour)
	s.backedUp("aura", hour)
}

// rightOfRetained name backups that are known when the sweep begins.
var rightOfRetained = map[string]string{}

var validOfBackups = map[string]string{
	"CreateDBSnapshot": with(newSnap, "DBSnapshotIdentifier=odd"), "CreateDBClusterSnapshot": with(newAuraSnap, "DBClusterSnapshotIdentifier=odd"),
	"DescribeDBSnapshots": "DescribeDBSnapshots?", "DescribeDBClusterSnapshots": "DescribeDBClusterSnapshots?",
	"CopyDBSnapshot": copySnap, "CopyDBClusterSnapshot": copyAuraSnap, "ModifyDBSnapshot": "ModifyDBSnapshot?DBSnapshotIdentifier=snap",
	"DeleteDBSnapshot": with(dropSnap, "DBSnapshotIdentifier=none"), "DeleteDBClusterSnapshot": with(dropAuraSnap, "DBClusterSnapshotIdentifier=none"),
	"DescribeDBSnapshotAttributes":        "DescribeDBSnapshotAttributes?DBSnapshotIdentifier=snap",
	"DescribeDBClusterSnapshotAttributes": "DescribeDBClusterSnapshotAttributes?DBClusterSnapshotIdentifier=asnap",
	"ModifyDBSnapshotAttribute":           shareSnap, "ModifyDBClusterSnapshotAttribute": "ModifyDBClusterSnapshotAttribute?DBClusterSnapshotIdentifier=asnap&AttributeName=restore",
	"RestoreDBInstanceFromDBSnapshot": fromSnap, "RestoreDBInstanceToPointInTime": toLatest,
	"RestoreDBClusterFromSnapshot": aurasSnapshot, "RestoreDBClusterToPointInTime": aurasLatest,
	"DescribeDBInstanceAutomatedBackups": showBackups + "?", "DescribeDBClusterAutomatedBackups": showAuraBackups + "?",
	"DeleteDBInstanceAutomatedBackup":            "DeleteDBInstanceAutomatedBackup?DbiResourceId=db-NONE",
	"DeleteDBClusterAutomatedBackup":             "DeleteDBClusterAutomatedBackup?DbClusterResourceId=cluster-NONE",
	"StartDBInstanceAutomatedBackupsReplication": with(replicate, "SourceDBInstanceArn=arn:aws:rds:us-west-2:{account}:db:faraway"),
	"StopDBInstanceAutomatedBackupsReplication":  with(stopThat, "SourceDBInstanceArn=arn:aws:rds:us-west-2:{account}:db:copied"),
}

var rightOfBackups = map[string]string{"DeleteDBSnapshot": dropSnap, "DeleteDBClusterSnapshot": dropAuraSnap}

// takesOfBackups are conditions that nothing meets.
var takesOfBackups = map[string][]string{
	"DescribeDBSnapshots DBInstanceIdentifier": {"odd"}, "DescribeDBSnapshots DbiResourceId": {"odd"},
	"DescribeDBInstanceAutomatedBackups DBInstanceIdentifier": {"odd"}, "DescribeDBClusterAutomatedBackups DBClusterIdentifier": {"odd"},
	"DescribeDBClusterSnapshots DBClusterIdentifier": {"odd"}, "DescribeDBClusterSnapshots DbClusterResourceId": {"odd"},
}
