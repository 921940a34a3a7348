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
	s.backups()
	having(newSnap, newAuraSnap)(s.user)
}

var validOfBackups = map[string]string{
	"CreateDBSnapshot": with(newSnap, "DBSnapshotIdentifier=odd"), "CreateDBClusterSnapshot": with(newAuraSnap, "DBClusterSnapshotIdentifier=odd"),
	"DescribeDBSnapshots": "DescribeDBSnapshots?", "DescribeDBClusterSnapshots": "DescribeDBClusterSnapshots?",
	"CopyDBSnapshot": copySnap, "CopyDBClusterSnapshot": copyAuraSnap, "ModifyDBSnapshot": "ModifyDBSnapshot?DBSnapshotIdentifier=snap",
	"DeleteDBSnapshot": with(dropSnap, "DBSnapshotIdentifier=none"), "DeleteDBClusterSnapshot": with(dropAuraSnap, "DBClusterSnapshotIdentifier=none"),
	"DescribeDBSnapshotAttributes":        "DescribeDBSnapshotAttributes?DBSnapshotIdentifier=snap",
	"DescribeDBClusterSnapshotAttributes": "DescribeDBClusterSnapshotAttributes?DBClusterSnapshotIdentifier=asnap",
	"ModifyDBSnapshotAttribute":           shareSnap, "ModifyDBClusterSnapshotAttribute": "ModifyDBClusterSnapshotAttribute?DBClusterSnapshotIdentifier=asnap&AttributeName=restore",
	"RestoreDBInstanceFromDBSnapshot": fromSnap,
}

var rightOfBackups = map[string]string{"DeleteDBSnapshot": dropSnap, "DeleteDBClusterSnapshot": dropAuraSnap}

// takesOfBackups are conditions that nothing meets.
var takesOfBackups = map[string][]string{
	"DescribeDBSnapshots DBInstanceIdentifier": {"odd"}, "DescribeDBSnapshots DbiResourceId": {"odd"},
	"DescribeDBClusterSnapshots DBClusterIdentifier": {"odd"}, "DescribeDBClusterSnapshots DbClusterResourceId": {"odd"},
}
